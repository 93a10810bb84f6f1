"""Commands as a person writes them into a config: literal words, and nothing that bash would read otherwise."""

from __future__ import annotations

from corral.errors import PolicyError

# An allowed beginning with one of these programs would allow everything: their arguments are programs.
_RUN_THEIR_ARGUMENTS = (
    "sh bash zsh dash ksh mksh ash fish csh tcsh rbash yash "
    "python pypy ipython node nodejs perl ruby jruby php lua luajit Rscript R julia osascript "
    "pwsh powershell cmd tclsh wish expect guile scheme racket sbcl clisp ghci runghc runhaskell "
    "scala jshell groovy swipl bc dc awk gawk mawk nawk sed tee tar bsdtar dd source . "
    "builtin busybox toybox bwrap catchsegv chroot chrt command coproc dbus-run-session doas env "
    "eval exec fakechroot fakeroot firejail flock gtime gtimeout gxargs ionice linux32 linux64 "
    "ltrace nice nocorrect noglob nohup nsenter parallel perf pkexec proot rr runuser script "
    "setarch setsid ssh stdbuf strace su sudo systemd-run taskset time timeout trap unbuffer "
    "unshare valgrind watch xargs xvfb-run -"
)
_RESERVED = "if then else elif fi do done case esac while until for select function time in coproc"
NEVER_ALLOWED = frozenset(_RUN_THEIR_ARGUMENTS.split())
RESERVED = frozenset(_RESERVED.split())
LONGEST_COMMAND = 10_000
_ESCAPED = " '\"\\"


def allowed_words(entry: object) -> tuple[str, ...]:
    """The words of an entry of `allow`; a PolicyError if it could allow what it does not show."""
    words = plain_words(entry) if isinstance(entry, str) else None
    if words is None:
        raise PolicyError(f"{entry!r} is not the beginning of one plain command", rule="allow")
    program = words[0].rpartition("/")[2]
    if program in NEVER_ALLOWED or program.rstrip("0123456789.-") in NEVER_ALLOWED:
        raise PolicyError(
            f"{entry!r} would allow everything: arguments of {program} are programs", rule="allow"
        )
    return words


def plain_words(text: str) -> tuple[str, ...] | None:
    """The words of one command that says exactly what it is: literal text and quotes. None for anything else."""
    if not text.strip() or len(text) > LONGEST_COMMAND or "`" in text:  # the parser is sure of no backtick
        return None
    words: list[str] = []
    word: str | None = None
    quoted = False  # any part of the first word
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t":
            if word is not None:
                words.append(word)
            word, at = None, at + 1
            continue
        read = _piece(text, at, word is None)
        if read is None:
            return None
        piece, end = read
        quoted = quoted or (not words and char in "'\"\\")
        if char == "=" and (not words or word is None or not word.isascii()):
            return None
        word, at = (word or "") + piece, end
    if word is not None:
        words.append(word)
    if not words[0].strip() or (not quoted and words[0] in RESERVED):
        return None
    return tuple(words)


def _piece(text: str, at: int, begins_word: bool) -> tuple[str, int] | None:
    """One character or one quoted run from here, and where it ends; None where bash might read it otherwise."""
    char = text[at]
    if char == "'":
        end = text.find("'", at + 1)
        return None if end < 0 else _unlike_home(text[at + 1 : end], end + 1, begins_word)
    if char == '"':
        return _double_quoted(text, at + 1, begins_word)
    if char == "\\":
        following = text[at + 1 : at + 2]
        if following == ";" and begins_word and text[at + 2 : at + 3] in ("", " ", "\t"):
            return following, at + 2  # as find -exec ends
        # Of other characters that are special without it the parser is not sure, or takes them for another word.
        return (following, at + 2) if following and following in _ESCAPED else None
    if char == "~":
        return (char, at + 1) if begins_word and text[at + 1 : at + 2] in ("", "/", " ", "\t") else None
    if (
        (char.isascii() and char.isalnum())
        or char in "_@%+=:,./^-"
        or (ord(char) > 127 and char.isprintable())
    ):
        return char, at + 1
    return None


def _double_quoted(text: str, at: int, begins_word: bool) -> tuple[str, int] | None:
    found = ""
    while at < len(text) and text[at] != '"':
        if text[at] in "$`":
            return None
        if text[at] == "\\":
            following = text[at + 1 : at + 2]
            if following in ("", "\n"):
                return None
            found += following if following in '$`"\\' else "\\" + following
            at += 2
        else:
            found += text[at]
            at += 1
    return _unlike_home(found, at + 1, begins_word) if at < len(text) else None


def _unlike_home(piece: str, end: int, begins_word: bool) -> tuple[str, int] | None:
    """A quoted tilde is a name like any other; kept apart, because words are compared after their quotes are gone."""
    return None if begins_word and piece.startswith("~") else (piece, end)
