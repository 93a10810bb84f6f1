"""Where a command writes: what it means that a file, a device or a directory is the target."""

from __future__ import annotations

import posixpath
import re

from corral.record import Record
from corral.risk.levels import CAUTION, DANGEROUS, Finding, Level
from corral.risk.marks import HOLE, MAYBE, SHUT, STAR
from corral.risk.words import show

DISK = (
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|r?disk|loop|md|dm-|nbd|rbd|drbd|pmem|bcache|dasd|ram|zram|mapper/"
    r"|zvol/|"
    r"disk/|block/|mem\b|kmem\b|port\b)"
)


class Place(Record):
    """A row: paths that match, and what writing there means."""

    pattern: str
    level: Level
    reason: str
    hardline: bool = False


HARMLESS = re.compile(r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty|fd/\d+)|/proc/self/fd/\d+|&?\d+|-")

PLACES = (
    Place(DISK + ".*", DANGEROUS, "writes to a raw disk or to memory", hardline=True),
    Place(r"/proc/sysrq-trigger", DANGEROUS, "stops the machine", hardline=True),
    Place(r"/dev/shm/.*", CAUTION, "writes a file"),
    Place(r"/dev/(?:tcp|udp)/.*", DANGEROUS, "opens a network connection"),
    Place(r"/dev/.*", DANGEROUS, "writes to a device"),
    Place(
        r"/(?:etc|private/etc|boot|proc|sys|usr|bin|sbin|lib|lib32|lib64|libx32)(?:/.*)?",
        DANGEROUS,
        "writes to the system",
    ),
    Place(r"/var/spool/cron(?:/.*)?", DANGEROUS, "writes what the system starts later"),
    Place(r"(?:.*/)?\.git/(?:hooks(?:/.*)?|config(?:\.worktree)?)", DANGEROUS, "writes what git runs later"),
    Place(r"(?:.*/)?\.ssh(?:/.*)?|(?:.*/)?authorized_keys", DANGEROUS, "writes to the SSH keys and settings"),
    Place(
        r"(?:.*/)?\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv"
        r"|zprofile|zlogin|"
        r"zlogout|kshrc|cshrc|tcshrc|login|inputrc|xprofile|xinitrc|xsession|envrc|pythonrc|Rprofile|vimrc"
        r"|emacs)",
        DANGEROUS,
        "writes a start-up file",
    ),
    Place(
        r"~/\.config/(?:autostart|systemd|fish|environment\.d|git)/.*|~/Library/Launch(?:Agents|Daemons)/.*"
        r"|~/\.gitconfig|"
        r"~/\.local/share/systemd/.*",
        DANGEROUS,
        "writes what your session starts or git runs later",
    ),
    Place(
        r"(?:.*/)?\.(?:netrc|pgpass|npmrc|pypirc|git-credentials)|"
        r"~/\.(?:aws|gnupg|kube|docker|azure)(?:/.*)?|~/\.config/(?:gh|gcloud)(?:/.*)?",
        DANGEROUS,
        "writes credentials",
    ),
)
_PATTERNS = [(re.compile(place.pattern), place) for place in PLACES]

ROOTS = re.compile(
    r"/|/\*|(?:/(?:home|root|etc|usr|var|bin|sbin|boot|lib|lib32|lib64|opt|srv|Users|dev|proc|sys|System"
    r"|Library)|"
    r"/(?:home|Users)/[^/]+|~)(?:/\*)?"
)
"""What must never be wiped: the root, the system's directories, homes."""

HOMES = re.compile(r"/(?:home|root|Users|opt|srv)(?:/.*)?|~(?:/.*)?")
"""Of those, what a person may rightly give another owner or mode."""

_HOME = re.compile(r"/(?:home|Users)/[^/]+(?=/)|/root(?=/)")
_PROC_ROOT = re.compile(r"/proc/(?:self|thread-self|\d+)/(?:root|cwd)(?=/|\Z)")


def tidy(path: str) -> str:
    """A path without detours: ``//``, ``/./``, ``/x/..``, trailing slash, ``/proc/self/root``."""
    path = path.replace(MAYBE, "").replace(STAR, "*")
    path = _PROC_ROOT.sub("", path) or "/"
    if not path:
        return path
    clean = posixpath.normpath(path)
    return "/" + clean.lstrip("/") if clean.startswith("//") else clean


def is_root_or_home(path: str) -> bool:
    return HOLE not in path and SHUT not in path and ROOTS.fullmatch(tidy(path)) is not None


def is_home(path: str) -> bool:
    return HOMES.fullmatch(tidy(path)) is not None


def written(path: str) -> Finding | None:
    """What writing there means; None where nothing changes."""
    clean = tidy(path)
    if HARMLESS.fullmatch(clean):
        return None
    home = _HOME.sub("~", clean, count=1)
    for pattern, place in _PATTERNS:
        if pattern.fullmatch(clean) or pattern.fullmatch(home):
            return Finding(place.level, f"{place.reason}: {show(path)}", (), place.hardline)
    return None


def target(path: str, what: str = "writes a file") -> Finding | None:
    """Like `written`, with caution for an ordinary file."""
    if HARMLESS.fullmatch(tidy(path)):
        return None
    return written(path) or Finding(CAUTION, f"{what}: {show(path)}")
