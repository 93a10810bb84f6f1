"""Record: frozen values without dataclasses."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from corral.record import Record


class Point(Record):
    x: int
    y: int = 2
    _private: int = 0


class Named(Point):
    name: str = "origin"


class Positive(Record):
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")


def test_fields_come_by_position_by_name_and_by_default() -> None:
    assert (Point(1).x, Point(1).y) == (1, 2)
    assert Point(1, 3) == Point(x=1, y=3) == Point(1, y=3)
    assert Point._fields == ("x", "y")


def test_a_subclass_adds_its_fields_behind() -> None:
    assert Named._fields == ("x", "y", "name")
    assert (Named(1, 2, name="a").name, Named(1).name) == ("a", "origin")


@pytest.mark.parametrize(
    ("args", "fields", "message"),
    [
        ((), {}, "Point needs x"),
        ((1, 2, 3), {}, "takes 2 fields, 3 were given"),
        ((1,), {"z": 1}, "has no field 'z'; it has x, y"),
        ((1,), {"x": 1}, "got 'x' twice"),
        ((1,), {"_private": 1}, "has no field '_private'"),
    ],
)
def test_wrong_fields_are_a_type_error_that_names_them(
    args: tuple[int, ...], fields: dict[str, int], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Point(*args, **fields)


def test_a_value_does_not_change() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match=r"use .replace\(x=…\)"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        point.other = 2
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert point == Point(1)


def test_equal_values_are_equal_and_hash_alike_and_other_classes_are_not() -> None:
    assert Point(1) == Point(1, 2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2)
    assert Named(1) != Point(1)
    assert Point(1) != (1, 2)
    assert len({Point(1), Point(1, 2), Named(1), Point(2)}) == 3


def test_replace_makes_a_checked_copy() -> None:
    point = Point(1)
    assert point.replace(y=5) == Point(1, 5)
    assert point == Point(1)
    with pytest.raises(TypeError, match="no field 'z'"):
        point.replace(z=1)
    with pytest.raises(ValueError, match="negative"):
        Positive(1).replace(value=-1)


def test_a_check_refuses_before_a_value_exists() -> None:
    with pytest.raises(ValueError, match="negative"):
        Positive(-1)


def test_values_travel_by_pickle() -> None:
    for value in (Point(1), Named(1, name="a"), Positive(3)):
        assert pickle.loads(pickle.dumps(value)) == value


def test_repr_names_every_field() -> None:
    assert repr(Named(1)) == "Named(x=1, y=2, name='origin')"


def test_the_values_of_the_policy_do_not_import_dataclasses() -> None:
    """It alone would double the start of `corral run`."""
    code = "import sys, corral.policy, corral.jail.plan; sys.exit('dataclasses' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"], timeout=30
        ).returncode
        == 0
    )
