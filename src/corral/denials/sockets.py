"""Complaints about the network: how tools say that a connection, or the look-up of a name, did not work."""

from __future__ import annotations

import re

from corral.denials.complaint import Complaint, symbol_of, texts_of

_WHY = f"(?i:{texts_of(('EACCES', 'ENETUNREACH', 'ECONNREFUSED', 'EAFNOSUPPORT', 'EAI_AGAIN'))})"
_SYMBOL = "EACCES|EPERM|ENETUNREACH|ECONNREFUSED|EAFNOSUPPORT"
_HOST = r"\[?(?P<host>[\w.:%-]*\w)\]?"

# One row a form: what it stands for if it does not say `why` itself. The first row that is found decides, so those
# that name an address stand before those that do not.
FORMS: tuple[tuple[str, str], ...] = (
    ("EAI_AGAIN", rf"Could not resolve host(?:name)?:? {_HOST}"),  # curl, git, ssh
    ("EAI_AGAIN", rf"unable to resolve host address [‘'`]{_HOST}"),  # wget
    ("EAI_AGAIN", rf"^Resolving {_HOST}.*\.\.\. failed: "),
    ("EAI_AGAIN", rf"getaddrinfo (?:EAI_AGAIN|ENOTFOUND) {_HOST}"),  # Node
    ("EAI_AGAIN", rf"unable to look up {_HOST} \(port (?P<port>\d+)\)"),  # git
    ("EAI_AGAIN", rf"Failed to open TCP connection to {_HOST}:(?P<port>\d+) \(getaddrinfo"),  # Ruby
    ("ECONNREFUSED", rf"Failed to open TCP connection to {_HOST}:(?P<port>\d+)"),
    ("", rf"Failed to connect to {_HOST} port (?P<port>\d+)"),  # curl, which says nothing of the reason
    ("", rf"connect to host {_HOST} port (?P<port>\d+): (?:failure|(?P<why>{_WHY}))"),  # ssh
    ("", rf"Connecting to (?:\S+ \(\S+\)\|)?{_HOST}\|?:(?P<port>\d+)\.\.\. failed: (?P<why>{_WHY})"),  # wget
    ("", rf"connect (?P<why>{_SYMBOL}) {_HOST}:(?P<port>\d+)"),  # Node
    ("", rf'(?P<why>{_WHY}) - (?:connect|socket)\(2\) for "{_HOST}" port (?P<port>\d+)'),  # Ruby
    ("", rf"/dev/(?:tcp|udp)/{_HOST}/(?P<port>\d+): (?P<why>{_WHY})"),  # bash
    ("", rf'connection to server at "{_HOST}".* port (?P<port>\d+) failed: (?P<why>{_WHY})'),  # PostgreSQL
    ("", rf"host='{_HOST}', port=(?P<port>\d+).*(?P<why>{_WHY})"),  # requests
    ("", rf"connecting to {_HOST}:(?P<port>\d+)\W+(?P<why>{_WHY})"),  # redis
    ("EAI_AGAIN", rf"^[^:]+: (?:line \d+: )?{_HOST}: Temporary failure in name resolution$"),  # bash
    ("", rf"\bIO::Socket::\w+: (?:connect: )?(?P<why>{_WHY})"),  # Perl
    ("", rf"^(?:\S+: )?(?:socket|connect): (?P<why>{_WHY})$"),  # bash, ssh
    ("", r"(?P<why>(?i:Network is unreachable|Temporary failure in name resolution))"),
    ("", r"(?P<why>(?i:Address family not supported by protocol|Connection refused))"),
)
_FORMS = tuple((reason, re.compile(form)) for reason, form in FORMS)

# Python says no more than "Permission denied" when a socket cannot be made; the frame above says where.
_PYTHON_SOCKET = re.compile(
    r'File "[^"\n]*\bsocket\.py", line \d+, in \w+\n(?:[ \t][^\n]*\n){0,3}'
    r"PermissionError: \[Errno (?:13|1)\] (?:Permission denied|Operation not permitted)\s*(?:\n|$)"
)
_LOOPBACK_IN_TEXT = re.compile(r"\b(127(?:\.\d+){3}|localhost|\[?::1\]?)['\"]?[:,]\s?(\d{1,5})\b")


def read_socket_complaint(line: str) -> Complaint | None:
    for reason, form in _FORMS:
        found = form.search(line)
        if found is not None:
            groups = found.groupdict()
            why = symbol_of(groups.get("why") or reason)
            return Complaint(why, "connect", host=groups.get("host") or "", port=groups.get("port") or "")
    return None


def refused_python_socket(text: str) -> bool:
    return _PYTHON_SOCKET.search(text) is not None


def loopback_addresses(text: str) -> list[tuple[str, str]]:
    """Addresses of this machine that a text mentions: where a bare "Connection refused" may have been aimed."""
    return [(host.strip("[]"), port) for host, port in _LOOPBACK_IN_TEXT.findall(text)]


def listens_here(port: str) -> bool:
    """Whether a server of the host has this TCP port open. Read from a table; nothing is connected to."""
    wanted = f":{int(port):04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as rows:
                cells = [row.split() for row in rows]
        except OSError:
            continue
        if any(cell[1].endswith(wanted) and cell[3] == "0A" for cell in cells[1:]):
            return True
    return False
