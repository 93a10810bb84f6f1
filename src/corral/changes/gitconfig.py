"""Programs that a git config names. Read without git: its config is what is not trusted."""

from __future__ import annotations

import re

# What may be given as "section.key", lower case; a star stands for any subsection.
PROGRAMS = frozenset(
    (
        *("browser.*.cmd", "browser.*.path", "core.alternaterefscommand", "core.askpass"),
        *("core.attributesfile", "core.editor", "core.excludesfile", "core.fsmonitor", "core.gitproxy"),
        *("core.hookspath", "core.pager", "core.sshcommand", "core.worktree", "credential.*.helper"),
        *("credential.helper", "diff.*.command", "diff.*.textconv", "diff.external", "difftool.*.cmd"),
        *("difftool.*.path", "extensions.worktreeconfig", "filter.*.clean", "filter.*.process"),
        *("filter.*.smudge", "gc.recentobjectshook", "gpg.*.program", "gpg.program"),
        *("gpg.ssh.defaultkeycommand", "guitool.*.cmd", "hook.*.command", "http.proxy", "http.sslcapath"),
        *("imap.tunnel", "include.path", "includeif.*.path", "init.templatedir", "instaweb.httpd"),
        *("interactive.difffilter", "maintenance.*.command", "man.*.cmd", "man.*.path", "merge.*.driver"),
        *("mergetool.*.cmd", "mergetool.*.path", "pager.*", "protocol.*.allow", "remote.*.proxy"),
        *("remote.*.receivepack", "remote.*.uploadpack", "remote.*.vcs", "safe.directory"),
        *("sendemail.*.sendmailcmd", "sendemail.*.smtpserver", "sendemail.cccmd", "sendemail.headercmd"),
        *("sendemail.sendmailcmd", "sendemail.smtpserver", "sendemail.tocmd", "sequence.editor"),
        *("submodule.*.update", "svn.authorsprog", "tar.*.command", "trailer.*.cmd", "trailer.*.command"),
        *("uploadpack.packobjectshook", "url.*.insteadof", "url.*.pushinsteadof", "web.browser"),
    )
)
_SECTION = re.compile(rb'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_ESCAPED = re.compile(rb"\\(.)")
_KEY = re.compile(rb"\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")


def programs_in(config: bytes) -> list[tuple[str, str]] | None:
    """Every setting that names a program, or more settings, with its value. None: it cannot be read."""
    settings = _settings(config)
    if settings is None:
        return None
    return [(name, value) for name, value in settings if _names_a_program(name, value)]


def _names_a_program(name: str, value: str) -> bool:
    section, _, rest = name.partition(".")
    subsection, _, key = rest.rpartition(".")
    if section == "alias":
        return value.lstrip().startswith("!")
    plain = f"{section}.*.{key}" if subsection else f"{section}.{key}"
    return plain in PROGRAMS or f"{section}.*" in PROGRAMS


def _settings(config: bytes) -> list[tuple[str, str]] | None:
    found: list[tuple[str, str]] = []
    section = ""
    text = config.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    at = 0
    while at < len(text):
        if text[at : at + 1] in b" \t\n":
            at += 1
        elif text[at : at + 1] in b"#;":
            at = _end_of_line(text, at)
        elif text[at : at + 1] == b"[":
            head = _SECTION.match(text, at)
            if head is None:
                return None
            section = _joined(head)
            at = head.end()
        else:
            key = _KEY.match(text, at)
            if key is None or not section:
                return None
            value, at = _value(text, key.end()) if key[2] else ("true", key.end())
            found.append((f"{section}.{key[1].decode().lower()}", value))
    return found


def _joined(head: re.Match[bytes]) -> str:
    section = head[1].decode().lower()
    if head[2] is None:
        return section
    subsection = _ESCAPED.sub(rb"\1", head[2]).decode(errors="surrogateescape")
    return f"{section}.{subsection}"


def _value(text: bytes, at: int) -> tuple[str, int]:
    """Quotes, escapes, comments and continued lines, as git reads them."""
    out = bytearray()
    quoted = False
    while at < len(text):
        char = text[at : at + 1]
        if char == b"\n":
            break
        if char == b"\\":
            following = text[at + 1 : at + 2]
            if following != b"\n":
                out += {b"n": b"\n", b"t": b"\t", b"b": b"\b"}.get(following, following)
            at += 2
            continue
        if char == b'"':
            quoted = not quoted
        elif char in b"#;" and not quoted:
            at = _end_of_line(text, at)
            break
        else:
            out += char
        at += 1
    return bytes(out).strip().decode(errors="surrogateescape"), at


def _end_of_line(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end
