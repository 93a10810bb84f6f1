"""The line of every key, whatever the TOML around it looks like."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from config.desk import PROPERTY
from corral.config.lines import key_lines

TEXT = '''\
# a comment with [brackets] and "quotes"
top = 1
"quoted key" = 'x # no comment'
"esc\\"aped" = "a \\" ] b"
dotted . inner = 5   # three

long = """
[not.a.table]
fake = 1
quotes at the end """""
literal = \'\'\'
it's = "x"\'\'\'
list = [
    "a", # ]
    [1,
     2],
    { x = 1, y.z = "}" },
]
empty = []
after = 2020-01-01 00:00:00

[table]
key = true
[table.sub."dot.ted"]
key = 1.5
[[grant]]
path = "a"
[[grant]]
path = "b"
[grant.more]
deep = 1
[[grant.inner]]
x = 1
[[grant.inner]]
x = 2
[last]'''


def test_every_key_has_its_line() -> None:
    lines = key_lines(TEXT)
    expected = {
        ("top",): 2,
        ("quoted key",): 3,
        ('esc"aped',): 4,
        ("dotted",): 5,
        ("dotted", "inner"): 5,
        ("long",): 7,
        ("literal",): 11,
        ("list",): 13,
        ("list", 0): 14,
        ("list", 1): 15,
        ("list", 1, 0): 15,
        ("list", 1, 1): 16,
        ("list", 2): 17,
        ("list", 2, "x"): 17,
        ("list", 2, "y"): 17,
        ("list", 2, "y", "z"): 17,
        ("empty",): 19,
        ("after",): 20,
        ("table",): 22,
        ("table", "key"): 23,
        ("table", "sub"): 24,
        ("table", "sub", "dot.ted"): 24,
        ("table", "sub", "dot.ted", "key"): 25,
        ("grant",): 26,
        ("grant", 0): 26,
        ("grant", 0, "path"): 27,
        ("grant", 1): 28,
        ("grant", 1, "path"): 29,
        ("grant", 1, "more"): 30,
        ("grant", 1, "more", "deep"): 31,
        ("grant", 1, "inner"): 32,
        ("grant", 1, "inner", 0): 32,
        ("grant", 1, "inner", 0, "x"): 33,
        ("grant", 1, "inner", 1): 34,
        ("grant", 1, "inner", 1, "x"): 35,
        ("last",): 36,
    }
    assert lines == expected
    assert set(paths_of(tomllib.loads(TEXT))) == set(expected)


def paths_of(value: object, where: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every key path in parsed data."""
    found = [where] if where else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        found += paths_of(part, (*where, key))
    return found


SCALARS = (
    "1",
    "true",
    '"a]b"',
    "'}{'",
    '"""x\n[y]\nz = 1"""',
    "'''\n#'''",
    '"\\\\"',
    "1979-05-27",
    '""',
    "''",
)
SPACES = st.sampled_from(("", " ", "\t"))
BREAKS = st.sampled_from(("", "\n", " # ] } , =\n", "\n\n"))


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    kind = draw(st.sampled_from(("scalar", "list", "table") if depth else ("scalar",)))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "list":
        items = [
            f"{draw(BREAKS)}{draw(nested(depth - 1))}{draw(BREAKS)}" for _ in range(draw(st.integers(0, 3)))
        ]
        return f"[{','.join(items)}{draw(BREAKS)}]"
    pairs = [
        f"{draw(SPACES)}k{n}{draw(SPACES)}= {draw(nested(depth - 1))}" for n in range(draw(st.integers(0, 3)))
    ]
    return "{" + ",".join(pairs) + "}"


@PROPERTY
@given(st.lists(nested(), max_size=6))
def test_no_value_hides_a_key_that_comes_after_it(values: list[str]) -> None:
    text, starts = "", {}
    for n, value in enumerate(values):
        starts[(f"key{n}",)] = text.count("\n") + 1
        text += f"key{n} = {value}\n"
    lines = key_lines(text)
    assert set(lines) == set(paths_of(tomllib.loads(text)))
    assert {where: line for where, line in lines.items() if len(where) == 1} == starts
