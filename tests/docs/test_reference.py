"""The reference is made from the code: every command, option, key, tool, error, name and claim is in it."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

import corral
from corral import claims, errors
from corral.cli.manual import entries
from corral.config.schema import KEYS, SETTINGS
from corral.policy import MODES
from corral.tools.registry import NAMES
from docs.blocks import ROOT


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_is_whole(reference: ModuleType) -> None:
    page = reference.command_line()
    for entry in entries():
        assert f"## corral {entry.name}\n" in page
        for option in entry.options:
            assert all(f"`{name}`" in page for name in option.names)


def test_the_keys_are_whole(reference: ModuleType) -> None:
    page = reference.config_keys()
    assert all(f"| `{key}` |" in page for key in (*KEYS, *SETTINGS))


def test_the_tools_are_whole(reference: ModuleType) -> None:
    page = reference.tools()
    assert all(f"## {name}\n" in page for name in NAMES)
    assert "| `path` | string | required |" in page


def test_the_errors_are_whole(reference: ModuleType) -> None:
    page = reference.errors()
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(f"`{kind.__name__}`" in page for kind in kinds)


def test_the_names_are_whole(reference: ModuleType) -> None:
    page = reference.api()
    for name in corral.__all__:
        kind = getattr(corral, name)
        if not (isinstance(kind, type) and issubclass(kind, corral.CorralError)):
            assert f"## {name}\n" in page
    assert "`run(argv: Sequence[str], *, cwd: str \\| None = None" in page


def test_the_table_of_protection_says_what_each_tier_does_not_hold(reference: ModuleType) -> None:
    page = reference.protection()
    assert all(f"## {mode}\n" in page for mode in MODES)
    part = page.partition("## workspace-write\n")[2].partition("\n## ")[0]
    rows = {
        claim: row for row in part.splitlines() for claim in claims.CLAIMS if row.endswith(f"`{claim}` |")
    }
    assert set(rows) == set(claims.CLAIMS)
    assert "| yes | **no** |" in rows["keys"]
    assert "| yes | from 6.12 on |" in rows["signals"]
