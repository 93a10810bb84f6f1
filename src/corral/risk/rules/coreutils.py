"""Files, text and the everyday tools around them."""

from __future__ import annotations

from corral.risk import looks, programs
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, OPENS, SAFE, WRITE
from corral.risk.table import Base, Look, Sharp

ROWS = (
    Base("env", SAFE, "prints the environment", most=0),
    Base("date", SAFE, "prints the date"),
    Base(
        "hostname",
        SAFE,
        "prints the host name",
        only="-f -s -i -I -d -a -A -y --fqdn --short --ip-address --all-ip-addresses",
        most=0,
    ),
    Base("hostname domainname", CAUTION, "sets the host name"),
    Base(
        "uniq",
        SAFE,
        "reads",
        only="-c -d -D -u -i -z -f= -s= -w= --count --repeated --unique --ignore-case",
        most=1,
    ),
    Base("uniq", CAUTION, "writes its second operand"),
    Base("csplit", CAUTION, "writes files"),
    Base("xxd", SAFE, "dumps a file", only="-a -b -C -c= -e -g= -i -l= -n= -o= -p -ps -s= -u -E -R=", most=1),
    Base("xxd", CAUTION, "writes its second operand"),
    Base("less more most bat man info", SAFE, "shows a text"),
    Base(
        "set shopt umask ulimit export declare typeset readonly local unset", SAFE, "changes only this shell"
    ),
    Base(
        "cp mv install ln link mkdir mkfifo mknod touch chmod chown chgrp rename ed ex",
        CAUTION,
        "changes files",
    ),
    Base("tee", CAUTION, "writes files"),
    Base(
        "tar bsdtar cpio pax zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd 7z 7za rar unrar ar",
        CAUTION,
        "packs or unpacks files",
    ),
    Base("split patch dos2unix unix2dos mktemp truncate shred", CAUTION, "writes files"),
    Base("unzip", CAUTION, "unpacks files"),
    Base("awk gawk mawk nawk", CAUTION, "runs an awk program"),
    Base("rm rmdir unlink", DANGEROUS, "deletes files"),
    Base("let", CAUTION, "calculates, which may run what a variable holds"),
    Base("alias hash bind enable complete compgen", CAUTION, "changes what names mean in this shell"),
    Base("vi vim nvim nano emacs code", CAUTION, "edits files"),
    Sharp("truncate shred wipe srm", DANGEROUS, "destroys the content of a file"),
    Sharp("rm", DANGEROUS, "deletes whole trees or without asking", options="-r -R -f --recursive --force"),
    Sharp("date", CAUTION, "sets the clock", options="-s --set"),
    Sharp("date", CAUTION, "sets the clock", args=r"\d{8,12}(?:\.\d\d)?"),
    Sharp("find", DANGEROUS, "deletes what it finds", options="-delete"),
    Sharp("find", CAUTION, "writes a file", options="-fprint -fprint0 -fprintf -fls", forms=(WRITE,)),
    Sharp("sort", CAUTION, "writes a file", options="-o --output", forms=(WRITE,)),
    Sharp("sort", DANGEROUS, "runs a program to compress", options="--compress-program", forms=(EXEC,)),
    Sharp("tree", CAUTION, "writes a file", options="-o --output", forms=(WRITE,)),
    Sharp("sed", CAUTION, "edits files in place", options="-i --in-place", forms=(WRITE,)),
    Sharp("sed", CAUTION, "reads its script from a file", options="-f --file"),
    Sharp("yq", CAUTION, "edits files in place", options="-i --inplace", forms=(WRITE,)),
    Sharp("tee", CAUTION, "writes files", args=r"[^-].*", forms=(WRITE,)),
    Sharp("rg", DANGEROUS, "runs a program on every file", options="--pre --hostname-bin", forms=(EXEC,)),
    Sharp("split", DANGEROUS, "runs a program on every piece", options="--filter", forms=(EXEC,)),
    Sharp(
        "tar bsdtar",
        DANGEROUS,
        "runs a program",
        options="--to-command --checkpoint-action --use-compress-program -I --info-script "
        "--new-volume-script -F --rsh-command --rmt-command",
        forms=(EXEC,),
    ),
    Sharp(
        "tar bsdtar",
        DANGEROUS,
        "deletes what it packs",
        options="--remove-files --recursive-unlink --unlink-first",
    ),
    Sharp("zip", DANGEROUS, "runs a program", options="-TT --unzip-command", forms=(EXEC,)),
    Sharp(
        "man",
        DANGEROUS,
        "runs a pager or a browser of its own",
        options="-P --pager -H --html",
        forms=(EXEC,),
    ),
    Sharp(
        "less",
        CAUTION,
        "writes a log file or runs a command",
        options="-o -O -k --log-file --LOG-FILE --lesskey-file",
        forms=(WRITE,),
    ),
    Sharp(
        "less more most vi vim nvim ed ex",
        DANGEROUS,
        "runs a command of its own",
        args=r"\+.*!.*",
        forms=(EXEC,),
    ),
    Sharp("vi vim nvim ex", DANGEROUS, "runs a command of its own", options="-c -S --cmd", forms=(EXEC,)),
    Sharp("bat", DANGEROUS, "runs a pager of its own", options="--pager", forms=(EXEC,)),
    Sharp("diff sdiff", DANGEROUS, "runs a program", options="--diff-program", forms=(EXEC,)),
    Sharp("sdiff", CAUTION, "writes a file", options="-o --output", forms=(WRITE,)),
    Sharp("dmesg", DANGEROUS, "clears the kernel's log", options="-C -c --clear --read-clear"),
    Sharp(
        "journalctl", DANGEROUS, "deletes logs", options="--vacuum-size --vacuum-time --vacuum-files --rotate"
    ),
    Sharp("ss", DANGEROUS, "closes connections", options="-K --kill"),
    Sharp("printf", CAUTION, "sets a variable", options="-v"),
    Sharp("jobs", DANGEROUS, "runs a command", options="-x", forms=(EXEC,)),
    Sharp(
        "declare typeset local readonly export", CAUTION, "changes how a variable is read", options="-i -n"
    ),
    Sharp("wait", CAUTION, "sets a variable", options="-p"),
    Look("unset getopts mapfile readarray wait", looks.read_names),
    Look("test", looks.tested_variable),
    Sharp("history", CAUTION, "changes the history", options="-c -d -w -a -r -n"),
    Sharp("history", CAUTION, "changes the history", options="-s -p"),
    Sharp("enable", DANGEROUS, "loads foreign code into the shell", options="-f"),
    Sharp(
        "complete bind mapfile readarray", CAUTION, "runs a command later", options="-C -x -F", forms=(EXEC,)
    ),
    Sharp("hash", DANGEROUS, "gives a name another program", options="-p"),
    Sharp("set shopt", CAUTION, "changes how the rest is read", args=r"expand_aliases|posix"),
    Sharp("jq", CAUTION, "reads its program from a file", options="-f --from-file"),
    Sharp("yq", CAUTION, "may read the environment or files", options="--split-exp -s"),
    Sharp("iconv", CAUTION, "writes a file", options="-o --output", forms=(WRITE,)),
    Sharp("shuf", CAUTION, "writes a file", options="-o --output", forms=(WRITE,)),
    Look("rm rmdir unlink mv chmod chown chgrp", looks.wiped_roots),
    Look("find", looks.find_expression),
    Look("sed", programs.sed_script),
    Look("awk gawk mawk nawk", programs.awk_program),
    Look("cp mv install ln rsync scp link", looks.last_operand),
    Look("tee touch mkdir truncate shred chmod chown chgrp", looks.every_operand),
    Look("sed", looks.edited_files),
    Look("dd", looks.dd_output),
    Look("tar bsdtar zip 7z cpio", looks.packed_file),
    Look("sort tree shuf", looks.output_option),
    Look("alias", looks.alias_value),
    Look("read", looks.read_names),
)

LIST_ONLY = (
    Base(
        "tar bsdtar",
        SAFE,
        "lists an archive",
        needs="-t --list",
        only="-t -v -z -j -J -f= --list --file= -a --verbose",
    ),
    Base("unzip", SAFE, "lists an archive", needs="-l -v -Z -t", only="-l -v -t -Z -q"),
    Base(
        "gzip xz zstd", SAFE, "lists an archive", needs="-l --list -t --test", only="-l -v -t --list --test"
    ),
    Base("jar", SAFE, "lists an archive", sub="tf"),
    Base("jar", CAUTION, "packs or unpacks files"),
)

OPENING = (
    Sharp(
        "chown chgrp",
        DANGEROUS,
        "gives a whole tree to root",
        options="-R --recursive",
        args=r"(?:root|0)(?::.*)?",
    ),
    Sharp(
        "chmod",
        CAUTION,
        "opens files to every user",
        args=r"0?(?:777|666)|(?:[ug]*[ao][ugoa]*)[+=][rxX]*w[rwxX]*",
        forms=(OPENS,),
    ),
    Sharp(
        "chmod",
        DANGEROUS,
        "lets others run it with its owner's rights",
        args=r"0?[4-7][0-7]{3}|[ugoa]*[+=][rwxX]*s[rwxXst]*",
    ),
)

TABLE = (*LIST_ONLY, *ROWS, *OPENING)
