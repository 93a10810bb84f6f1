"""What a shell does with other files and names; the languages themselves are in `corral.risk.interpreters`."""

from __future__ import annotations

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, Finding
from corral.risk.table import Base, Call, Look


def _loader(call: Call) -> list[Finding]:
    """The dynamic loader runs whatever program it is given."""
    call.runs.append([word for word in call.words if not word.startswith("-")])
    return [Finding(DANGEROUS, "starts a program through the loader", (EXEC,))]


def sourced(call: Call) -> list[Finding]:
    operands = call.operands()
    if len(operands) == 1 and operands[0].endswith("/bin/activate") and not operands[0].startswith("/tmp/"):
        return [Finding(CAUTION, "enters a Python environment")]
    return [Finding(DANGEROUS, "runs a file inside this shell", (EXEC,))]


TABLE = (
    Base("source .", CAUTION, "runs a file inside this shell"),
    Look("source .", sourced),
    Base("ld.so", DANGEROUS, "starts a program through the loader"),
    Look("ld.so", _loader),
)
