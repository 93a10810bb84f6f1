"""Programs that only read, as far as their options let them."""

from __future__ import annotations

from collections.abc import Iterator

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE, WRITE, Finding
from corral.risk.looks import FOUND
from corral.risk.table import Base, Call, Look, Sharp

SHELL = (
    "(( : [ test true false cd pushd popd dirs pwd echo printf type help jobs times wait return break "
    "continue shift getopts read mapfile readarray exit logout sleep"
)
FILES = (
    "ls dir vdir cat head tail wc stat file nl tac rev cut tr paste fold fmt expand unexpand comm join "
    "cmp diff diff3 sdiff od hexdump strings base32 base64 basenc tsort shuf numfmt factor seq basename "
    "dirname readlink realpath pathchk md5sum sha1sum sha224sum sha256sum sha384sum sha512sum sha3sum "
    "b2sum cksum sum zcat bzcat xzcat zstdcat column colrm look locate iconv sort tree find sed"
)
SEARCH = "grep egrep fgrep rg ag ack zgrep zegrep bzgrep xzgrep fd fdfind jq yq tokei cloc scc"
MACHINE = (
    "which whereis whoami id groups logname users who w last lastb uname arch uptime free df du nproc "
    "locale tty printenv getent getconf lsof ps pstree pmap pgrep pidof vmstat iostat mpstat top htop "
    "lscpu lsblk lsusb lspci lsmod lsns sensors acpi blkid findmnt netstat ss dmesg journalctl history "
    "cal ncal"
)
TEXTS = "less more most bat man info apropos whatis"
BINARIES = "ldd nm objdump readelf size addr2line c++filt pkg-config pkgconf identify ffprobe pdfinfo"


def pdf_to_standard_output(call: Call) -> Iterator[Finding]:
    if call.operands()[-1:] != ["-"]:
        yield Finding(CAUTION, "writes a text file")


def found_files(call: Call) -> Iterator[Finding]:
    """``fd -x PROGRAM …`` runs it on every file."""
    for at, word in enumerate(call.words):
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            call.runs.append([part.replace("{}", FOUND) for part in call.words[at + 1 :]])
            yield Finding(CAUTION, "runs a program on every file", (EXEC,))
            return


TABLE = (
    Base("exiftool", SAFE, "reads tags", only="-a -G -s -j -n -q"),
    Base("exiftool", CAUTION, "may write tags"),
    Base("pdftotext", SAFE, "prints the text of a PDF"),
    Base(
        "nvidia-smi",
        SAFE,
        "reads the state of the graphics card",
        only="-q -L -x -a -l= -i= --query-gpu= --query-compute-apps= --format= --list-gpus --loop= --id=",
    ),
    Base("nvidia-smi", CAUTION, "changes the graphics card or writes a file"),
    Base(
        "update-alternatives",
        SAFE,
        "reads a system link",
        needs="--display --list --query --get-selections",
        only="--display --list --query --get-selections",
    ),
    Base("update-alternatives", DANGEROUS, "changes a system link"),
    Base(" ".join((SHELL, FILES, SEARCH, MACHINE, TEXTS, BINARIES)), SAFE, "only reads"),
    Sharp("exiftool", DANGEROUS, "runs Perl code", options="-if -config -api", forms=(EXEC,)),
    Sharp("file", CAUTION, "writes a file", options="-C --compile"),
    Sharp("tree", CAUTION, "writes a file in every directory", options="-R"),
    Sharp("nm objdump size strings addr2line readelf", DANGEROUS, "loads foreign code", options="--plugin"),
    Sharp("ag ack", CAUTION, "runs a pager", options="--pager --ackrc"),
    Sharp(
        "cloc",
        DANGEROUS,
        "runs a program",
        options="--extract-with --vcs --diff-alignment --config",
        forms=(EXEC,),
    ),
    Sharp(
        "cloc scc tokei",
        CAUTION,
        "writes a file",
        options="-o --out --output --report-file --sql",
        forms=(WRITE,),
    ),
    Sharp("identify", CAUTION, "writes a file", options="-write", forms=(WRITE,)),
    Sharp("identify", CAUTION, "names a reader that may do more than read", args=r"[A-Za-z0-9]{2,}:.*"),
    Sharp("ffprobe", CAUTION, "writes a file", options="-report -o"),
    Sharp("info", CAUTION, "writes a file", options="-o --output --dribble", forms=(WRITE,)),
    Sharp("man apropos whatis", CAUTION, "reads settings that may name programs", options="-C --config-file"),
    Sharp(
        "dmesg",
        CAUTION,
        "changes the kernel's log",
        options="-n -D -E --console-level --console-off --console-on",
    ),
    Sharp(
        "journalctl",
        CAUTION,
        "changes the journal",
        options="--flush --sync --relinquish-var --setup-keys --update-catalog",
    ),
    Look("pdftotext", pdf_to_standard_output),
    Look("fd fdfind", found_files),
)
