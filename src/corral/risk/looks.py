"""Sharp edges that a row cannot say: targets of writes, `find` expressions, options that hold commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.risk import places
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, SAFE, WRITE, Finding
from corral.risk.marks import SHUT, STAR
from corral.risk.table import Call
from corral.risk.words import UNKNOWN, may_be_option, show

FOUND = "./" + SHUT
"""What `find` puts for ``{}``: a path that starts with a start point, so never an option."""


def wiped_roots(call: Call) -> Iterator[Finding]:
    whole = call.has("-r -R --recursive")
    for path in call.operands():
        if not places.is_root_or_home(path):
            continue
        if call.verb == "mv":
            yield Finding(DANGEROUS, f"moves {places.tidy(path)} away", (), hardline=True)
        elif call.verb == "rm" and (whole or path.endswith(STAR)):
            yield Finding(DANGEROUS, f"wipes {places.tidy(path)}", (), hardline=True)
        elif whole:
            yield Finding(
                DANGEROUS, f"changes all of {places.tidy(path)}", (), hardline=not places.is_home(path)
            )


def last_operand(call: Call) -> Iterator[Finding]:
    targets = call.values("-t --target-directory") if call.verb in ("cp", "mv", "ln", "install") else []
    operands = call.operands()
    if call.verb == "mv":
        targets += operands
    elif operands:
        targets.append(operands[-1])
    for path in targets:
        if finding := places.written(path):
            yield finding


def every_operand(call: Call) -> Iterator[Finding]:
    operands = call.operands()
    if call.verb in ("chmod", "chown", "chgrp"):
        operands = operands[1:]
    for path in operands:
        if finding := places.written(path):
            yield finding


def edited_files(call: Call) -> Iterator[Finding]:
    if call.has("-i --in-place"):
        yield from every_operand(call)


def output_option(call: Call) -> Iterator[Finding]:
    for path in call.values("-o --output"):
        if finding := places.written(path):
            yield finding


def dd_output(call: Call) -> Iterator[Finding]:
    for word in call.words:
        if word.startswith("of=") and (finding := places.written(word[3:])):
            yield finding


def packed_file(call: Call) -> Iterator[Finding]:
    if any(":" in name.partition("/")[0] for name in call.values("-f --file")):
        yield Finding(CAUTION, "reads or writes an archive on another machine", (NETWORK,))
    for path in [
        *call.values("-f --file -F -O -C --directory"),
        *(call.operands()[:1] if call.verb in ("zip", "7z") else []),
    ]:
        if finding := places.written(path):
            yield finding


def alias_value(call: Call) -> Iterator[Finding]:
    for word in call.operands():
        name, equals, value = word.partition("=")
        if equals and value:
            call.shells.append(value)
            yield Finding(CAUTION, f"{name} now means another command")


def read_names(call: Call) -> Iterator[Finding]:
    if any(UNKNOWN.search(word) for word in call.operands()):
        yield Finding(CAUTION, "sets a variable that is not known before it runs")


def tested_variable(call: Call) -> Iterator[Finding]:
    if call.has("-v -R") and any(UNKNOWN.search(word) for word in call.words):
        yield Finding(CAUTION, "the subscript of a variable's name may run a command")


_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES = "-fprint -fprint0 -fprintf -fls"


def find_expression(call: Call) -> Iterator[Finding]:
    words = call.words
    at = 0
    removes = call.has("-delete")
    while at < len(words):
        if words[at] not in _FIND_RUNS:
            at += 1
            continue
        end = at + 1
        while end < len(words) and words[end] != ";" and not (words[end] == "+" and words[end - 1] == "{}"):
            end += 1
        payload = [word.replace("{}", FOUND) for word in words[at + 1 : end]]
        if payload:
            call.runs.append(payload)
            removes = removes or payload[0].rsplit("/", 1)[-1] == "rm"
        yield Finding(SAFE, "runs a program on what it finds", (EXEC,))
        at = end
    for path in call.values(_FIND_WRITES):
        if finding := places.written(path):
            yield finding
    unfiltered = not call.has(
        "-name -iname -path -ipath -regex -type -size -mtime -mmin -newer -user -maxdepth -empty"
    )
    if removes and unfiltered and any(places.is_root_or_home(word) for word in words if word[:1] in "/~"):
        yield Finding(DANGEROUS, "wipes all below a root", (), hardline=True)


_SSH_COMMANDS = re.compile(
    r"(?i)\s*(?:proxycommand|localcommand|knownhostscommand|remotecommand)[\s=]+(.*)", re.DOTALL
)
_SSH_LOADS = re.compile(r"(?i)\s*(?:pkcs11provider|securitykeyprovider|include|match)[\s=]")


def ssh_options(call: Call) -> Iterator[Finding]:
    for value in call.values("-o"):
        if match := _SSH_COMMANDS.match(value):
            yield from _connection_command(call, match.group(1))
        elif _SSH_LOADS.match(value) or may_be_option(value):
            yield Finding(DANGEROUS, "loads foreign code or settings", (EXEC,))
    if call.has("-F"):
        yield Finding(CAUTION, "reads settings that may name programs")


def _connection_command(call: Call, text: str) -> Iterator[Finding]:
    first = text.split(None, 1)[0].rsplit("/", 1)[-1] if text.split() else ""
    call.shells.append(text)
    known = first in ("ssh", "nc", "ncat", "cloudflared", "none")
    yield Finding(
        CAUTION if known else DANGEROUS, f"runs a program to connect: {show(text)}", (EXEC, NETWORK)
    )


def rsync_shell(call: Call) -> Iterator[Finding]:
    for text in call.values("-e --rsh"):
        yield from _connection_command(call, text)


_CURL_FILES = (
    "-o -D -c --output --dump-header --cookie-jar --trace --trace-ascii --stderr --hsts --alt-svc "
    "--libcurl --etag-save --output-dir"
)
_WGET_FILES = (
    "-O -o -a -P --output-document --output-file --append-output --directory-prefix "
    "--save-cookies --warc-file"
)
_CURL_FORMAT_FILE = re.compile(r"%output\{(?:>>)?([^}]*)\}")


def downloads(call: Call) -> Iterator[Finding]:
    for path in call.values(_CURL_FILES if call.verb == "curl" else _WGET_FILES):
        if finding := places.written(path):
            yield finding
    if call.verb == "curl":
        for text in call.values("-w --write-out"):
            for path in _CURL_FORMAT_FILE.findall(text):
                yield places.target(path) or Finding(CAUTION, "writes a file", (WRITE,))
        if any(value.upper() in ("POST", "PUT", "DELETE", "PATCH") for value in call.values("-X --request")):
            yield Finding(CAUTION, "changes something on another machine", (NETWORK,))
