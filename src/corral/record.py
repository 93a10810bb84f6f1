"""Frozen value classes without the cost of :mod:`dataclasses`.

Importing :mod:`dataclasses` takes about 19 ms on the path of every ``corral run``, twice the start of the
interpreter itself. This is the small part of it we use: fields from annotations, keyword or positional
construction, no change afterwards, equality, hash, ``replace`` and pickling.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        return lambda cls: cls


@dataclass_transform(frozen_default=True, eq_default=True)
class Record:
    """Base of a frozen value. Fields are the annotations of the class, in order; defaults are class attributes."""

    _fields: tuple[str, ...]
    _names: frozenset[str]
    _defaults: dict[str, Any]

    def __init_subclass__(cls) -> None:
        own = [name for name in cls.__dict__.get("__annotations__", {}) if not name.startswith("_")]
        inherited = [name for name in getattr(cls, "_fields", ()) if name not in own]
        cls._fields = (*inherited, *own)
        cls._names = frozenset(cls._fields)
        cls._defaults = {name: getattr(cls, name) for name in cls._fields if hasattr(cls, name)}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = self._fields
        if not args and kwargs.keys() == self._names:
            self.__dict__.update(kwargs)
        elif not kwargs and len(args) == len(fields):
            self.__dict__.update(zip(fields, args, strict=True))
        else:
            values = {**self._defaults, **dict(zip(fields, args, strict=False)), **kwargs}
            if (
                values.keys() != self._names
                or len(args) > len(fields)
                or any(n in kwargs for n in fields[: len(args)])
            ):
                raise TypeError(self._wrong(args, kwargs))
            self.__dict__.update(values)
        self.__post_init__()

    def _wrong(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """What is wrong with these arguments."""
        name, fields = type(self).__name__, self._fields
        if len(args) > len(fields):
            return f"{name} takes {len(fields)} fields, {len(args)} were given"
        for given in kwargs:
            if given not in fields:
                return f"{name} has no field {given!r}; it has {', '.join(fields)}"
            if given in fields[: len(args)]:
                return f"{name} got {given!r} twice"
        missing = [f for f in fields[len(args) :] if f not in kwargs and f not in self._defaults]
        return f"{name} needs {', '.join(missing)}"

    def __post_init__(self) -> None:
        """Where a subclass checks its fields; raise to refuse."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use .replace({name}=…)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def _values(self) -> tuple[Any, ...]:
        return tuple(map(self.__dict__.__getitem__, self._fields))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed, checked like any other."""
        return type(self)(**dict(zip(self._fields, self._values(), strict=True)) | changes)
