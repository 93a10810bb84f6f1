"""What an exit status means, and what a person would try next. Two tables."""

from __future__ import annotations

from corral.record import Record

SUCCESS, EXPECTED, ERROR, TIMEOUT, SIGNAL = "success", "expected_nonzero", "error", "timeout", "signal"
EXIT_TIMEOUT = 124
FIRST_SIGNAL = 128

# program, exit status → class, what it means. A status that is no failure of the program.
STATUSES: dict[tuple[str, int], tuple[str, str]] = {
    **{(program, 1): (EXPECTED, "no lines matched") for program in ("grep", "egrep", "fgrep", "rg", "ag")},
    **{(program, 1): (EXPECTED, "the files differ") for program in ("diff", "cmp")},
    **{(program, 1): (EXPECTED, "the condition is false") for program in ("test", "[")},
    ("curl", 22): (EXPECTED, "the server answered with an error status"),
    ("ssh", 255): (ERROR, "the connection failed"),
}

# What stands in the output of a failed command (without case), and a hint. The first one decides.
HINTS: tuple[tuple[str, str], ...] = (
    (
        "command not found",
        "the program is not installed or not in PATH; look for another one with `command -v`",
    ),
    ("no module named", "the Python module is missing in this environment; look which interpreter runs"),
    ("modulenotfounderror", "the Python module is missing in this environment; look which interpreter runs"),
    ("cannot find module", "the package is not installed, or the path of the import is wrong"),
    ("missing script:", "package.json has no such script; look at its scripts"),
    ("go.mod file not found", "go commands must run in a directory with a go.mod"),
    ("could not find `cargo.toml`", "cargo commands must run in a directory with a Cargo.toml"),
    ("eaddrinuse", "the port is in use; choose another one"),
    ("address already in use", "the port is in use; choose another one"),
    ("connection refused", "nothing listens there, or the network is off in this jail"),
    ("could not resolve host", "names cannot be resolved: the network may be off in this jail"),
    ("temporary failure in name resolution", "names cannot be resolved: the network may be off in this jail"),
    (
        "certificate verify failed",
        "the server's certificate was not accepted; look at the date and the CA bundle",
    ),
    ("certificate problem", "the server's certificate was not accepted; look at the date and the CA bundle"),
    ("no space left on device", "the disk is full; remove what is not needed"),
    ("too many open files", "the limit of open files is reached; close some or work in smaller batches"),
    ("cannot allocate memory", "memory ran out; work on less at once"),
    ("out of memory", "memory ran out; work on less at once"),
    ("permission denied", "the file's mode or the jail forbids it; do not work around it"),
    ("eacces", "the file's mode or the jail forbids it; do not work around it"),
    ("no such file or directory", "a path is wrong; list_dir or find_files shows what is there"),
    ("killed", "something ended the process; it may have used too much memory"),
)


class Outcome(Record):
    kind: str
    reason: str


def classify(programs: tuple[str, ...], exit_code: int, *, timed_out: bool, signal: int | None) -> Outcome:
    """``programs``: of the parts of the line that can have set the status; the last one is asked first."""
    if timed_out:
        return Outcome(TIMEOUT, "the time was up; the command and all it started were ended")
    if exit_code == 0:
        return Outcome(SUCCESS, "exit status 0")
    if signal is not None or exit_code > FIRST_SIGNAL:
        return Outcome(SIGNAL, f"ended by {_signal_name(signal or exit_code - FIRST_SIGNAL)}")
    for program in programs[-1:]:
        known = STATUSES.get((program, exit_code))
        if known is not None:
            return Outcome(known[0], f"{program}: {known[1]}")
    return Outcome(ERROR, f"exit status {exit_code}")


def hint_for(output: str) -> str:
    lowered = output.lower()
    return next((hint for text, hint in HINTS if text in lowered), "")


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
