"""Arguments of a tool, typed. A subclass is at once the schema, the help and the validation.

    class ReadFile(Arguments):
        path: str = arg("the file")
        tail: int = arg("only so many lines, from the end", 0, least=0)

Types are read from the annotations as they are written (they are strings at run time): ``str``, ``int``, ``float``,
``bool``, ``Literal["a", "b"]``, ``list[T]``, ``dict[str, T]``, another subclass of Arguments, and ``T | None``,
``S | T``. Nothing of :mod:`typing` is imported for it.
"""

from __future__ import annotations

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from corral.tools.kinds import Kind

REQUIRED = object()


class Arg:
    """What an annotation does not say: what it is for, its default, and its range (of a number, or of the number of
    characters or entries)."""

    __slots__ = ("default", "help", "least", "most")

    def __init__(self, help: str, default: Any, least: float | None, most: float | None) -> None:
        self.help = help
        self.default = default
        self.least = least
        self.most = most


def arg(help: str, default: Any = REQUIRED, *, least: float | None = None, most: float | None = None) -> Any:
    """One argument; without a default it must be given."""
    return Arg(help, default, least, most)


class Field:
    """An argument with its type understood."""

    __slots__ = ("arg", "kind", "name")

    def __init__(self, name: str, kind: Kind, arg: Arg) -> None:
        self.name = name
        self.kind = kind
        self.arg = arg

    @property
    def required(self) -> bool:
        return self.arg.default is REQUIRED


class Arguments(Record):
    _args: dict[str, Arg] = {}  # noqa: RUF012 - replaced, never changed
    _understood: dict[str, Field] | None = None

    def __init_subclass__(cls) -> None:
        args = dict(cls._args)
        for name in cls.__dict__.get("__annotations__", {}):
            found = cls.__dict__.get(name)
            if isinstance(found, Arg):
                args[name] = found
                if found.default is REQUIRED:
                    delattr(cls, name)
                else:
                    setattr(cls, name, found.default)
        super().__init_subclass__()
        cls._args, cls._understood = args, None

    @classmethod
    def fields(cls) -> dict[str, Field]:
        if cls._understood is None:
            from corral.tools.kinds import kind_of

            found = {}
            for name in cls._fields:
                home = next(base for base in cls.__mro__ if name in base.__dict__.get("__annotations__", {}))
                spec = cls._args[name]
                found[name] = Field(name, kind_of(home.__annotations__[name], home.__module__, spec), spec)
            cls._understood = found
        return cls._understood

    @classmethod
    def decode(cls, given: Mapping[str, object], where: str = "") -> Self:
        """Checked strictly; a Failure says which argument is wrong and how. ``where``: the path to this object,
        with a dot at its end."""
        from corral.tools.failures import invalid

        fields = cls.fields()
        values: dict[str, Any] = {}
        for name, value in given.items():
            field = fields.get(name)
            if field is None:
                raise invalid(f"unknown argument {where}{name}{_near(name, fields)}", _known(fields))
            values[name] = field.kind.checked(value, where + name)
        if len(values) < len(fields):
            for name, field in fields.items():
                if field.required and name not in values:
                    raise invalid(f"{where}{name} is required", _known(fields))
        return cls(**values)


def _near(name: str, fields: Mapping[str, Field]) -> str:
    from corral.policy import nearest

    return nearest(name, fields)


def _known(fields: Mapping[str, Field]) -> str:
    return f"it takes {', '.join(fields)}" if fields else "it takes no arguments"
