"""RecordingEnvironment: a local environment that writes down what it is asked for, and does it."""

from __future__ import annotations

import functools
import threading

from corral.environment.local import LocalEnvironment
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RECORDED = (
    *("read_file", "read_bytes", "open", "write_file", "remove_file", "remove_tree", "rename", "make_dir"),
    *("list_dir", "walk", "stat", "glob", "run", "shell", "exec_command", "start", "background", "add_root"),
)


class Call(Record):
    """One call: the method, what it was given, and what it gave back or raised."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    result: object = None
    error: BaseException | None = None


class RecordingEnvironment(LocalEnvironment):
    """For tests of what is built on an environment: :attr:`calls` has every call from outside in the order in which
    they ended."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.calls: list[Call] = []
        self._inside = threading.local()
        super().__init__(*args, **options)

    def called(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]


def _recorded(name: str, method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    def record(self: RecordingEnvironment, *args: object, **options: object) -> object:
        if getattr(self._inside, "yes", False):  # `shell` calls `run`
            return method(self, *args, **options)
        self._inside.yes = True
        try:
            result = method(self, *args, **options)
        except BaseException as error:
            self.calls.append(Call(name, args, options, error=error))
            raise
        finally:
            self._inside.yes = False
        self.calls.append(Call(name, args, options, result))
        return result

    return record


for _name in RECORDED:
    setattr(RecordingEnvironment, _name, _recorded(_name, getattr(LocalEnvironment, _name)))
