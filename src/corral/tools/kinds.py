"""Kinds of values: an annotation understood, as a check of a decoded JSON value and as JSON Schema."""

from __future__ import annotations

import sys

from corral.tools.failures import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.arguments import Arg, Arguments
    from corral.tools.failures import Failure

EXACT = 2**53  # beyond it a JSON number is not what was written


class Kind:
    """``name``: as a person says it."""

    name = "anything"

    def checked(self, value: object, where: str) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {}

    def wrong(self, value: object, where: str) -> Failure:
        return invalid(f"{where} must be {self.name}, not {_called(value)}")


class Plain(Kind):
    """Null, and booleans."""

    def __init__(self, name: str, type: type, word: str) -> None:
        self.name = name
        self._type = type
        self._word = word

    def checked(self, value: object, where: str) -> Any:
        if type(value) is not self._type:
            raise self.wrong(value, where)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": self._word}


class Text(Kind):
    name = "a string"

    def __init__(self, arg: Arg) -> None:
        self._least, self._most = arg.least, arg.most

    def checked(self, value: object, where: str) -> str:
        if type(value) is not str:
            raise self.wrong(value, where)
        if self._least is not None and len(value) < self._least:
            raise invalid(f"{where} must not be empty" if self._least == 1 else f"{where} is too short")
        if self._most is not None and len(value) > self._most:
            raise invalid(f"{where} has {len(value)} characters; {self._most:g} are allowed")
        return value

    def schema(self) -> dict[str, Any]:
        return _bounded({"type": "string"}, "minLength", self._least, "maxLength", self._most)


class Number(Kind):
    def __init__(self, arg: Arg, whole: bool) -> None:
        self._least, self._most, self._whole = arg.least, arg.most, whole
        self.name = "an integer" if whole else "a number"

    def checked(self, value: object, where: str) -> Any:
        if type(value) is float and self._whole and value.is_integer():
            value = int(value)
        if type(value) is not int and (self._whole or type(value) is not float):
            raise self.wrong(value, where)
        if self._least is not None and value < self._least:
            raise invalid(f"{where} must be at least {self._least:g}, not {value}")
        if value > (EXACT if self._most is None else self._most) or value < -EXACT:
            raise invalid(f"{where} must be at most {EXACT if self._most is None else self._most:g}")
        return value

    def schema(self) -> dict[str, Any]:
        word = "integer" if self._whole else "number"
        return _bounded({"type": word}, "minimum", self._least, "maximum", self._most)


class OneOf(Kind):
    def __init__(self, choices: tuple[str, ...]) -> None:
        self._choices = choices
        self.name = f"one of {', '.join(choices)}"

    def checked(self, value: object, where: str) -> str:
        if type(value) is not str or value not in self._choices:
            raise invalid(f"{where} must be {self.name}, not {_shown(value)}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self._choices)}


class ListOf(Kind):
    def __init__(self, inner: Kind, arg: Arg) -> None:
        self._inner, self._least, self._most = inner, arg.least, arg.most
        self.name = "a list"

    def checked(self, value: object, where: str) -> list[Any]:
        if type(value) is not list and type(value) is not tuple:
            raise self.wrong(value, where)
        if self._least is not None and len(value) < self._least:
            raise invalid(f"{where} must have at least {self._least:g} of them, not {len(value)}")
        if self._most is not None and len(value) > self._most:
            raise invalid(f"{where} must have at most {self._most:g} of them, not {len(value)}")
        inner = self._inner
        return [inner.checked(one, f"{where}[{i}]") for i, one in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        made = {"type": "array", "items": self._inner.schema()}
        return _bounded(made, "minItems", self._least, "maxItems", self._most)


class MapOf(Kind):
    name = "an object"

    def __init__(self, inner: Kind) -> None:
        self._inner = inner

    def checked(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(value, where)
        return {
            key: self._inner.checked(one, f"{where}.{key}")
            for key, one in value.items()
            if _is_text(key, where)
        }

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self._inner.schema()}


class Object(Kind):
    name = "an object"

    def __init__(self, arguments: type[Arguments]) -> None:
        self.arguments = arguments

    def checked(self, value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise self.wrong(value, where)
        return self.arguments.decode(value, where + ".")

    def schema(self) -> dict[str, Any]:
        from corral.tools.schema import schema_of

        return schema_of(self.arguments)


class AnyOf(Kind):
    def __init__(self, kinds: list[Kind]) -> None:
        self._kinds = kinds
        self.name = " or ".join(kind.name for kind in kinds if kind.name != "null")

    def checked(self, value: object, where: str) -> Any:
        from corral.tools.failures import Failure

        failures = []
        for kind in self._kinds:
            try:
                return kind.checked(value, where)
            except Failure as failure:
                failures.append(failure)
        # The one that got past the type knows best what is wrong.
        told = [failure for failure in failures if " must be " not in failure.message]
        raise told[0] if told else self.wrong(value, where)

    def schema(self) -> dict[str, Any]:
        kinds = [kind.schema() for kind in self._kinds if kind.name != "null"]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def kind_of(annotation: str, module: str, arg: Arg) -> Kind:
    """An annotation as it is written in a module."""
    parts = _split(annotation, "|")
    if len(parts) > 1:
        return AnyOf([kind_of(part, module, arg) for part in parts])
    name, bracket, rest = annotation.strip().partition("[")
    inner = rest.rpartition("]")[0]
    match name:
        case "str":
            return Text(arg)
        case "int" | "float":
            return Number(arg, name == "int")
        case "bool":
            return Plain("a boolean", bool, "boolean")
        case "None":
            return Plain("null", type(None), "null")
        case "Literal":
            return OneOf(tuple(word.strip().strip("\"'") for word in _split(inner, ",")))
        case "list":
            return ListOf(kind_of(inner, module, _unbounded(arg)), arg)
        case "dict":
            return MapOf(kind_of(_split(inner, ",")[1], module, _unbounded(arg)))
    if bracket:
        raise TypeError(f"{annotation} is no type that arguments have")
    return Object(vars(sys.modules[module])[name])


def _unbounded(arg: Arg) -> Arg:
    """A range is that of the list, not of what is in it."""
    return type(arg)(arg.help, arg.default, None, None)


def _split(text: str, separator: str) -> list[str]:
    """At the separators that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == separator and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _bounded(
    schema: dict[str, Any], low: str, least: float | None, high: str, most: float | None
) -> dict[str, Any]:
    if least is not None:
        schema[low] = least
    if most is not None:
        schema[high] = most
    return schema


def _is_text(key: object, where: str) -> bool:
    if type(key) is not str:
        raise invalid(f"{where} has a key that is no string")
    return True


CALLED = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
}


def _called(value: object) -> str:
    return "null" if value is None else CALLED.get(type(value), type(value).__name__)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) and len(value) < 40 else _called(value)
