"""A set of changes to files, made one after the other. If one fails, those before it are taken back as far as the
files are still as we left them, and the rest is named."""

from __future__ import annotations

import os
from functools import partial

from corral.errors import FileTooLarge
from corral.record import Record
from corral.tools.failures import Failure, told
from corral.tools.limits import EDIT_FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.tools.call import Call

    Kept = dict[str, str]


class Change(Record):
    """``before`` and ``after`` are whole contents; None: there is no such file. ``unknown``: it is there, and too
    large, or not to be read, so that it cannot be taken back."""

    path: str
    before: bytes | None
    after: bytes | None
    unknown: bool = False


def content_before(call: Call, path: str) -> Change:
    """What stands there now, as a change that is yet to be filled in; StaleFile if the client knows something else."""
    try:
        return Change(path, call.files.read_to_change(path, limit=EDIT_FILE_BYTES), None)
    except FileNotFoundError:
        return Change(path, None, None)
    except FileTooLarge:
        return Change(path, None, None, unknown=True)
    except PermissionError as error:
        if type(error) is not PermissionError:  # a refusal of ours is a subclass
            raise
        return Change(path, None, None, unknown=True)


def place_of(call: Call, path: str) -> str:
    """Where that is, as an absolute path. A change goes through no links, so names are enough."""
    wanted = os.path.expanduser(path) if path == "~" or path.startswith("~/") else path
    return os.path.normpath(os.path.join(call.workspace, wanted))


def make(call: Call, changes: Sequence[Change]) -> list[Kept]:
    """All of them, or a Failure. For each, what is kept for undo."""
    done: list[tuple[Change, Kept]] = []
    for change in changes:
        kept = _keep(call, change)
        try:
            call.check_canceled()
            _put(call, change, partial(call.history.settle, kept))
            call.history.settle(kept)  # a host that opens files itself may not ask whether it is time
        except Exception as error:  # noqa: BLE001 - whatever it was, what was done before is taken back
            call.history.drop(kept)
            raise _taken_back(call, change, error, done) from None
        done.append((change, kept))
    return [kept for _, kept in done]


def _keep(call: Call, change: Change) -> Kept:
    if change.unknown:
        return {"skipped": "too large, or not to be read"}
    return call.history.keep(call.tool, change.path, place_of(call, change.path), change.before)


def _put(call: Call, change: Change, settle: Callable[[], None]) -> None:
    """``settle`` is called before anything of it can be seen."""
    if change.after is None:
        settle()
        call.files.remove_file(change.path)
    elif change.before is None and not change.unknown:
        call.files.write_file(change.path, change.after, existing="refuse", ready=settle)
    else:
        call.files.write_file(change.path, change.after, ready=settle)


def _taken_back(call: Call, change: Change, error: Exception, done: list[tuple[Change, Kept]]) -> Failure:
    failure = told(error, change.path)
    if not done:
        return failure
    back, left = [], []
    for earlier, kept in reversed(done):
        if _take_back(call, earlier):
            back.append(earlier.path)
            call.history.drop(kept)
        else:
            left.append(earlier.path)
    told_back = f"; taken back: {', '.join(reversed(back))}" if back else ""
    told_left = (
        f"; not taken back, changed by others or not kept: {', '.join(reversed(left))}" if left else ""
    )
    return Failure(
        f"{change.path}: {failure.message}{told_back}{told_left}",
        failure.code,
        failure.suggestion,
        meta={"failed": change.path, "rolled_back": back[::-1], "left": left[::-1]},
    )


def _take_back(call: Call, change: Change) -> bool:
    """Whether it is again as it was. Never over what somebody else wrote."""
    files = call.files
    try:
        if change.after is None:
            if change.before is None:
                return False
            files.write_file(change.path, change.before, existing="refuse")
            return True
        if files.read_to_change(change.path) != change.after:
            return False
        if change.before is None:
            if change.unknown:
                return False
            files.remove_file(change.path)
        else:
            files.write_file(change.path, change.before)
    except OSError:
        return False
    return True
