"""A reader of sandbox profiles: just enough of the language to say what a profile decides, and an error for all else.

What it takes for granted is what Apple's own profiles and those who took them apart agree on: the last rule whose
operation and filters match decides, several filters of one rule are alternatives, and `default` decides where none
does, but for a few operations that are open unless they are named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Every operation that a profile may name, with the group names that end in a star.
OPERATIONS = (
    *("file-read-data", "file-read-metadata", "file-read-xattr", "file-ioctl"),
    *("file-write-create", "file-write-data", "file-write-flags", "file-write-mode", "file-write-owner"),
    *("file-write-times", "file-write-unlink", "file-write-xattr"),
    *(
        "process-exec",
        "process-exec-interpreter",
        "process-fork",
        "process-info-listpids",
        "process-info-pidinfo",
    ),
    *("signal", "sysctl-read", "sysctl-write", "mach-lookup", "mach-register", "mach-priv-task-port"),
    *("ipc-posix-sem", "ipc-posix-shm-read-data", "ipc-posix-shm-write-data", "ipc-sysv-shm", "ipc-sysv-sem"),
    *(
        "network-bind",
        "network-inbound",
        "network-outbound",
        "system-socket",
        "pseudo-tty",
        "nvram-get",
        "nvram-set",
    ),
    *("iokit-open", "appleevent-send", "job-creation", "user-preference-write"),
)
TARGETS = ("self", "same-sandbox", "others")
VNODE_TYPES = ("REGULAR-FILE", "DIRECTORY", "SYMLINK", "CHARACTER-DEVICE", "BLOCK-DEVICE")


# What `(deny default)` does not close.
STRAGGLERS = ("process-info-listpids", "process-info-pidinfo", "nvram-get", "nvram-set")


class NotAProfile(Exception):
    """A form that this reader does not know, or that is none."""


@dataclass(frozen=True)
class Operation:
    """Something a program does. ``path`` of a unix socket too; other sockets have none."""

    name: str
    path: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    decision: str
    operations: tuple[str, ...]
    filters: tuple[Any, ...]


class Evaluator:
    def __init__(self, text: str, parameters: Mapping[str, str]) -> None:
        self.parameters = dict(parameters)
        self.rules: list[Rule] = []
        self.default: str | None = None
        self._used: set[str] = set()
        forms = read(text)
        if not forms or forms[0] != [Symbol("version"), 1]:
            raise NotAProfile("a profile begins with (version 1)")
        for form in forms[1:]:
            self._take(form)
        if self.default is None:
            self.default = "allow"  # what a profile that says nothing means
        for rule in self.rules:
            for one in rule.filters:
                self._check(one)
        unused = self.parameters.keys() - self._used
        if unused:
            raise NotAProfile(f"parameters that no rule uses: {sorted(unused)}")

    def _take(self, form: Any) -> None:
        if not isinstance(form, list) or not form or form[0] not in (Symbol("allow"), Symbol("deny")):
            raise NotAProfile(f"unknown form {form}")
        decision = str(form[0])
        operations = [str(word) for word in form[1:] if isinstance(word, Symbol)]
        filters = [word for word in form[1:] if isinstance(word, list)]
        if len(operations) + len(filters) != len(form) - 1 or not operations:
            raise NotAProfile(f"not a rule: {form}")
        if operations == ["default"]:
            if filters:
                raise NotAProfile("default takes no filter")
            self.default = decision
            return
        for name in operations:
            if not any(covers(name, known) for known in OPERATIONS):
                raise NotAProfile(f"unknown operation {name}")
        self.rules.append(Rule(decision, tuple(operations), tuple(filters)))

    def decides(self, operation: Operation) -> str:
        if operation.name not in OPERATIONS:
            raise NotAProfile(f"unknown operation {operation.name}")
        decision = "allow" if operation.name in STRAGGLERS else str(self.default)
        for rule in self.rules:
            if self.applies(rule, operation):
                decision = rule.decision
        return decision

    def applies(self, rule: Rule, operation: Operation) -> bool:
        if not any(covers(name, operation.name) for name in rule.operations):
            return False
        return not rule.filters or any(self._matches(one, operation) for one in rule.filters)

    def _matches(self, form: Any, operation: Operation) -> bool:
        match form:
            case [Symbol("subpath"), operand]:
                top = self._string(operand)
                path = operation.path
                return path is not None and (path == top or path.startswith(top.rstrip("/") + "/"))
            case [Symbol("literal"), operand]:
                return operation.path == self._string(operand)
            case [Symbol("regex"), re.Pattern() as pattern]:
                return operation.path is not None and pattern.search(operation.path) is not None
            case [Symbol("vnode-type"), Symbol() as kind] if kind in VNODE_TYPES:
                return operation.facts.get("vnode-type") == kind
            case [Symbol("target"), Symbol() as target] if target in TARGETS:
                return operation.facts.get("target") == target
            case [Symbol("extension"), str() as name]:
                return operation.facts.get("extension") == name
            case [Symbol("global-name"), str() as name]:
                return operation.facts.get("global-name") == name
            case [Symbol("sysctl-name-prefix"), str() as prefix]:
                return operation.facts.get("sysctl-name", "").startswith(prefix)
            case [Symbol("require-all"), *inner] if inner:
                return all(self._matches(one, operation) for one in inner)
            case [Symbol("require-any"), *inner] if inner:
                return any(self._matches(one, operation) for one in inner)
            case [Symbol("require-not"), inner]:
                return not self._matches(inner, operation)
        raise NotAProfile(f"unknown filter {form}")

    def _check(self, form: Any) -> None:
        """Every filter once, so that nothing unknown hides behind another that decides first."""
        self._matches(form, Operation("file-read-data", "/", {}))
        for inner in form[1:] if form[0].startswith("require-") else ():
            self._check(inner)

    def _string(self, operand: Any) -> str:
        match operand:
            case [Symbol("param"), str() as name]:
                if name not in self.parameters:
                    raise NotAProfile(f"no parameter {name}")
                self._used.add(name)
                return self.parameters[name]
            case str() if not isinstance(operand, Symbol):
                return operand
        raise NotAProfile(f"not a string: {operand}")


def covers(name: str, operation: str) -> bool:
    return operation == name or (name.endswith("*") and operation.startswith(name[:-1].rstrip("-")))


# ---- reading ----


class Symbol(str):
    """A word without quotes."""

    __slots__ = ()
    __match_args__ = ("text",)

    @property
    def text(self) -> str:
        return str(self)


_TOKEN = re.compile(
    r"""\s+|;[^\n]*|(?P<open>\()|(?P<close>\))|#"(?P<regex>[^"]*)"|"(?P<string>(?:[^"\\]|\\.)*)"|"""
    r"""(?P<word>[^\s()"#;']+)"""
)


def read(text: str) -> list[Any]:
    stack: list[list[Any]] = [[]]
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise NotAProfile(f"cannot read {text[place : place + 20]!r}")
        place = found.end()
        if found["open"]:
            stack.append([])
        elif found["close"]:
            if len(stack) == 1:
                raise NotAProfile("one ) too many")
            done = stack.pop()
            stack[-1].append(done)
        elif found["regex"] is not None:
            stack[-1].append(re.compile(found["regex"]))
        elif found["string"] is not None:
            stack[-1].append(re.sub(r"\\(.)", r"\1", found["string"]))
        elif found["word"] is not None:
            word = found["word"]
            stack[-1].append(int(word) if word.isdigit() else Symbol(word))
    if len(stack) != 1:
        raise NotAProfile("a ( is never closed")
    return stack[0]
