"""A denial: one refusal as a value, and the only place where it becomes text."""

from __future__ import annotations

from corral.record import Record

# The seed's words, with our name of the key.
WRITE_JAIL_HINT = "(blocked by the workspace write-jail — sandbox; write inside the workspace)"
READ_HINT = "(blocked by the jail — sandbox; work without it)"
NETWORK_HINT = "(blocked by the jail — network; work without it)"

# The first word of a rule, and the sentence a person reads. What follows that word is the place the rule names.
RULES: dict[str, str] = {
    "outside": "it lies outside the places that may be written",
    "mode": "in mode read-only nothing but the private temp directory may be written",
    "writable": "it lies in the workspace, but in none of its writable globs",
    "ro": "it is granted read-only",
    "project-config": "the project's own corral.toml stays as it is while it binds the command",
    "protected": "the jail keeps it read-only",
    "keys": "key material is hidden",
    "hide": "the policy hides it",
    "own": "it is Corral's own",
    "root-keys": "password files and host keys are closed to a jail that root starts",
    "devices": "only harmless devices can be used",
    "shared-memory": "a jail without namespaces has no shared memory of its own",
    "private": "the jail has its own, and of the host's only what is granted",
    "crossing": "no rename or hard link leads from one granted place to another; a copy does",
    "copied": "a directory from before the run is not renamed in a copy, only copied: use mv",
    "capabilities": "a jail keeps none of root's capabilities, so owner and mode decide",
    "network": "the network is off",
}
DO_NOT_WORK_AROUND = (
    "This is the operator's policy, not a fault to repair: do not work around it (no chmod, no sudo, no other tool, "
    "no other path)."
)


class Remedy(Record):
    """The same grant three times: as a flag of `corral run`, a line of corral.toml, and a call in Python, where
    ``policy`` is the policy that refused. Empty where there is no such form."""

    flag: str
    config: str
    api: str

    def forms(self) -> tuple[str, ...]:
        return tuple(form for form in (self.flag, self.config, self.api) if form)


class Denial(Record):
    """``what``: the path, or host:port. ``operation``: write, remove, rename, link, read or connect. ``tier``: the
    mechanism that holds the rule. ``grant`` None: nothing allows it; ``note`` says why, or what else to know."""

    what: str
    operation: str
    rule: str
    tier: str
    grant: Remedy | None
    note: str = ""

    @property
    def reason(self) -> str:
        return RULES[self.rule.partition(" ")[0]]

    def text(self) -> str:
        """One line for people."""
        parts = [f"{self.what}: {self.operation} refused by rule `{self.rule}` ({self.tier}): {self.reason}"]
        if self.grant is not None:
            parts.append("to allow it: " + "  or  ".join(self.grant.forms()))
        elif not self.note:
            parts.append("nothing allows it")
        if self.note:
            parts.append(self.note)
        return printable("; ".join(parts))

    def model_text(self) -> str:
        """For the model that ran the command: what it was, and not to work around it."""
        hint = {"connect": NETWORK_HINT, "read": READ_HINT}.get(self.operation, WRITE_JAIL_HINT)
        lines = [hint, printable(f"{self.what}: {self.operation} refused: {self.reason}.")]
        ask = "If the task cannot be done without it, say so and stop; "
        if self.grant is not None:
            ask += printable(f"a person can allow it with: {self.grant.forms()[0]}")
        else:
            ask += "there is no grant for it."
        return "\n".join([*lines, f"{DO_NOT_WORK_AROUND} {ask}"])


def printable(text: str) -> str:
    """One line, and nothing in it that a terminal would obey: the path may be anything a command printed."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
