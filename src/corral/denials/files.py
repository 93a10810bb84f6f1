"""Complaints about files: how tools say that a path was refused. Tables first; one reader for all of them.

Nearly every tool writes `PROGRAM: what it tried NAME: REASON`. So the line is taken apart at the reason, the name is
found in what stands before it, and the words around the name say what was tried.
"""

from __future__ import annotations

import re

from corral.denials.complaint import FILE_REASONS, Complaint, symbol_of, texts_of
from corral.denials.names import QUOTED, python_literal, unquoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials.complaint import Operation

_WHY = f"(?i:{texts_of(FILE_REASONS)})"
_NAME = f"(?x:{QUOTED.pattern})"

# What was tried, by the words around the name; the first row that is found decides.
VERBS: tuple[tuple[str, Operation], ...] = (
    (r"for reading|for input", "read"),
    (r"hard link", "link"),
    (r"cannot move|inter-device move|\brename", "rename"),
    (r"lock config file|inplace edit|couldn't open temporary file|mkstemp|symbolic link|symlink", "replace"),
    (r"for writing|for output|output file|dependency file", "write"),
    (
        r"[Cc]annot (?:stat|access|read)|statx|open(?:ing)? directory|opendir|unable to access|can't read",
        "read",
    ),
    (r"link_stat|change_dir|send_files", "read"),
    (r"remov|unlink|delete|rmdir", "remove"),
    (r"creat|touch|mkdir|mkfifo|mknod|template|overwrite|truncat|\bcopy\b", "write"),
    (r"chang(?:e|ing)|sett?(?:ing)? (?:times|permissions|mode|owner)|preserving|utime|\bwrit", "write"),
    (r"cannot open\b", "read"),
)
# Programs that only ever read what they name, and programs whose message is not about a local file.
READERS = (
    *(
        "cat",
        "head",
        "tail",
        "tac",
        "less",
        "more",
        "nl",
        "od",
        "xxd",
        "hexdump",
        "strings",
        "wc",
        "stat",
        "file",
    ),
    *(
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "rg",
        "ls",
        "dir",
        "tree",
        "find",
        "du",
        "diff",
        "cmp",
        "comm",
        "jq",
    ),
    *(
        "sum",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "readlink",
        "realpath",
        "source",
        "cc1",
        "cc1plus",
    ),
)
NOT_FILES = (
    *(
        "ssh",
        "scp",
        "sftp",
        "ssh-add",
        "ssh-copy-id",
        "sudo",
        "su",
        "doas",
        "setpriv",
        "kill",
        "pkill",
        "killall",
    ),
    *(
        "mount",
        "umount",
        "fusermount",
        "fusermount3",
        "unshare",
        "nsenter",
        "chroot",
        "bwrap",
        "docker",
        "podman",
    ),
    "ping",
)
# Words that stand where a name would, and are system calls.
NOT_NAMES = (
    *("fork", "vfork", "clone", "exec", "execve", "socket", "connect", "bind", "listen", "kill", "ptrace"),
    *("setgroups", "setuid", "setgid", "seteuid", "setegid"),
)

# Forms that have the reason first. In each: `why`, `a`, perhaps `b`; `call` is looked up in CALLS.
REASON_FIRST: tuple[tuple[str, str], ...] = (
    ("python", rf"\[Errno -?\d+\] (?P<why>{_WHY}): (?P<a>{_NAME})(?: -> (?P<b>{_NAME}))?"),
    ("node", r"(?P<why>E[A-Z]+): [a-z -]+, (?P<call>\w+) '(?P<a>.+?)'(?: -> '(?P<b>.+?)')?\]?[\s{]*$"),
    (
        "ruby",
        rf"(?:in [`'](?:\w+[.#])?(?P<method>\w+)'.*)?(?P<why>{_WHY}) @ (?P<call>\w+) - (?P<a>.+?)(?: \(Errno::\w+\))?$",
    ),
    ("zsh", rf"^(?:zsh|[\w./-]+\.zsh)(?::\d+)?: (?P<why>{_WHY}): (?P<a>.+)$"),
)
CALLS: dict[str, Operation] = {
    # Node's system calls
    **dict.fromkeys(
        ("mkdir", "chmod", "fchmod", "chown", "utime", "mkdtemp", "copyfile", "ftruncate"), "write"
    ),
    **dict.fromkeys(("unlink", "rmdir", "rm"), "remove"),
    **dict.fromkeys(("scandir", "stat", "lstat", "access", "readlink", "opendir", "read", "watch"), "read"),
    "rename": "rename",
    "symlink": "replace",
    "link": "link",
    # Ruby's functions, and methods where one function serves several
    **dict.fromkeys(("dir_s_mkdir", "rb_file_s_mkfifo", "chown", "truncate"), "write"),
    **dict.fromkeys(("dir_s_rmdir", "delete"), "remove"),
    **dict.fromkeys(("dir_initialize", "rb_file_lstat", "rb_file_s_stat", "rb_readlink"), "read"),
    "rb_file_s_rename": "rename",
    "rb_file_s_symlink": "replace",
    "rb_file_s_link": "link",
}

_TAIL = r"['’)\]]*\.?(?: \((?:os error )?\d+\))?(?: at \S.* line \d+\.?)?$"
_REASON_LAST = re.compile(rf"^(?P<head>.+?)(?:: ['(]?| \()(?P<why>{_WHY}){_TAIL}")
_REASON_FIRST = tuple((style, re.compile(form)) for style, form in REASON_FIRST)
_PROGRAM = re.compile(r"^(?P<name>[^\s:'\"‘]+)(?: \(child\))?(?:\[\d+\])?: (?:line \d+: |\d+: )?(?=.)")
_VERB_BEHIND = re.compile(
    r"^(?P<a>.+): (?P<verb>Cannot (?:open|mkdir|create|unlink|hard link|change|utime|stat|rmdir|rename).*)$"
)
_PATH = re.compile(r"(?:^|(?<=[\s(=]))(?:~?/|\.\.?/)")
_BEHIND = re.compile(r":? (?:for (?:writing|reading|output|input)|failed)$")
_VERBS = tuple((re.compile(words), operation) for words, operation in VERBS)


def read_file_complaint(line: str) -> Complaint | None:
    for style, form in _REASON_FIRST:
        found = form.search(line)
        if found is not None:
            return _reason_first(style, found)
    found = _REASON_LAST.match(line)
    return None if found is None else _reason_last(found["head"], symbol_of(found["why"]))


def _reason_first(style: str, found: re.Match[str]) -> Complaint | None:
    groups = found.groupdict()
    reason = symbol_of(groups["why"])
    if reason not in FILE_REASONS:
        return None
    names = [groups["a"], *([groups["b"]] if groups.get("b") else [])]
    if style == "python":
        names = [python_literal(name) for name in names]
    elif style == "ruby" and names[0].startswith("(") and ", " in names[0]:
        names = list(names[0][1:].removesuffix(")").split(", ", 1))
    call = groups.get("call") or ""
    operation = CALLS.get(call) or CALLS.get(groups.get("method") or "", "")
    if len(names) == 2 and not operation:  # a rename or a link: either way the second is made
        operation = "rename" if reason == "EXDEV" else "replace"
    return Complaint(reason, operation, _decisive(names, operation))


def _reason_last(head: str, reason: str) -> Complaint | None:
    speaker = _PROGRAM.match(head)
    program = speaker["name"].rpartition("/")[2] if speaker is not None else ""
    rest = head[speaker.end() :] if speaker is not None else head
    if program in NOT_FILES:
        return None
    names, words = _names_in(rest)
    if not names:
        return None
    operation: Operation = next((verb for form, verb in _VERBS if form.search(words)), "")
    if not operation and program in READERS:
        operation = "read"
    return Complaint(reason, operation, _decisive(names, operation))


def _names_in(rest: str) -> tuple[list[str], str]:
    """The names in what a tool said before the reason, and the words without them."""
    verb_behind = _VERB_BEHIND.match(rest)
    if verb_behind is not None:
        return [unquoted(verb_behind["a"])], verb_behind["verb"]
    quoted = list(QUOTED.finditer(rest))
    if quoted:
        return [unquoted(match[0]) for match in quoted], QUOTED.sub("", rest)
    path = _PATH.search(rest)
    if path is not None:
        name = _BEHIND.sub("", rest[path.start() :])
        return [name], rest[: path.start()] + rest[path.start() + len(name) :]
    last = rest.rpartition(": ")[2]
    if " " in last:  # words, and at their end perhaps a name; a bare one cannot be told from a word
        last = last.rpartition(" ")[2]
        if "/" not in last or "://" in last:
            return [], rest
    if not last or last in NOT_NAMES:
        return [], rest
    return [last], rest[: -len(last)]


def _decisive(names: list[str], operation: str) -> tuple[str, ...]:
    """Of several names those that were to be changed: both ends of a move, else the last."""
    return tuple(names) if operation in ("rename", "link") else tuple(names[-1:])
