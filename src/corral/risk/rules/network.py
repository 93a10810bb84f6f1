"""Copying, fetching and asking over the network."""

from __future__ import annotations

from corral.risk import looks
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, SAFE
from corral.risk.table import Base, Look, Sharp

TABLE = (
    Sharp("ip", DANGEROUS, "runs a program in another network", args=r"exec", forms=(EXEC,)),
    Base("curl wget aria2c http https xh", CAUTION, "speaks to another machine"),
    Base("rsync", CAUTION, "copies files"),
    Base("scp sftp ftp", CAUTION, "copies files to or from another machine"),
    Base("ssh-keygen ssh-add ssh-copy-id", CAUTION, "changes SSH keys"),
    Base("nc ncat netcat socat telnet", CAUTION, "opens a network connection"),
    Base("ping ping6 traceroute tracepath mtr dig nslookup host whois", SAFE, "asks the network"),
    Base(
        "ip",
        SAFE,
        "prints network settings",
        only="-br -4 -6 -s -d -o -c -j -p -a -brief -details -stats -json",
        most=2,
    ),
    Base("ip", CAUTION, "changes network settings"),
    Sharp(
        "ip",
        CAUTION,
        "changes network settings",
        args=r"(?:add|del|delete|set|flush|change|replace|append|exec|netns)",
    ),
    Sharp(
        "curl",
        CAUTION,
        "sends data",
        options="-d -F -T --data --data-raw --data-binary --data-urlencode --form --upload-file --json",
        forms=(NETWORK,),
    ),
    Sharp("curl", CAUTION, "reads more options from a file", options="-K --config"),
    Sharp(
        "wget",
        CAUTION,
        "sends data",
        options="--post-data --post-file --body-data --body-file",
        forms=(NETWORK,),
    ),
    Sharp("wget", DANGEROUS, "runs a program", options="--use-askpass", forms=(EXEC,)),
    Sharp(
        "rsync",
        DANGEROUS,
        "deletes files at the target or the source",
        options="--delete --delete-before --delete-after --delete-during --delete-delay --delete-excluded "
        "--del --remove-source-files",
    ),
    Sharp("rsync", CAUTION, "names the program at the other end", options="--rsync-path", forms=(EXEC,)),
    Sharp("rsync scp", CAUTION, "copies to or from another machine", args=r"[^/-][^/]*:.*", forms=(NETWORK,)),
    Sharp("scp sftp", DANGEROUS, "runs a program", options="-S", forms=(EXEC,)),
    Sharp(
        "nc ncat netcat",
        DANGEROUS,
        "gives a program to the network",
        options="-e -c --exec --sh-exec",
        forms=(EXEC, NETWORK),
    ),
    Sharp(
        "socat",
        DANGEROUS,
        "gives a program to the network",
        args=r"(?i:.*(?:exec|system):.*)",
        forms=(EXEC, NETWORK),
    ),
    Sharp("ssh-keygen", DANGEROUS, "loads foreign code", options="-D", forms=(EXEC,)),
    Sharp("tcpdump", DANGEROUS, "runs a program", options="-z", forms=(EXEC,)),
    Look("ssh scp sftp", looks.ssh_options),
    Look("rsync", looks.rsync_shell),
    Look("curl wget", looks.downloads),
)
