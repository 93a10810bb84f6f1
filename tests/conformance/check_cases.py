"""Fails if a case of cases.toml has no test that carries its id, or a test carries an id that is not there.

Tests are read, not imported: `case("...")` counts as the decorator of a test or as a mark in a table of tests.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def carried_ids(tests: Path) -> Iterator[tuple[str, str]]:
    """Every id that a test carries, with the place where it does."""
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_bytes(), filename=str(path))
        on_other_things = set(decorators_of_what_is_no_test(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and is_case_mark(node.func) and node not in on_other_things:
                for argument in node.args:
                    yield literal_id(argument), f"{path.relative_to(tests)}:{node.lineno}"


def decorators_of_what_is_no_test(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            prefix = "Test" if isinstance(node, ast.ClassDef) else "test_"
            if not node.name.startswith(prefix):
                yield from node.decorator_list


def is_case_mark(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="case") | ast.Attribute(value=ast.Attribute(attr="mark"), attr="case"):
            return True
    return False


def literal_id(argument: ast.expr) -> str:
    match argument:
        case ast.Constant(value=str(text)):
            return text
    return f"<{ast.unparse(argument)} is not a literal>"


def complaints(tests: Path) -> list[str]:
    with (tests / "conformance/cases.toml").open("rb") as file:
        listed = tomllib.load(file)
    carried = list(carried_ids(tests))
    tested = {case_id for case_id, _ in carried}
    return [
        *(
            f"{case_id}: no test carries it ({text})"
            for case_id, text in listed.items()
            if case_id not in tested
        ),
        *(f"{place}: {case_id} is not in cases.toml" for case_id, place in carried if case_id not in listed),
    ]


def main() -> int:
    found = complaints(Path(__file__).parents[1])
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
