"""The lines that run before the agent: every value arrives as it was given, whatever is in it."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from corral import PolicyError
from corral.workspace import Identity, Workspace, bootstrap
from corral.workspace.bootstrap import quoted

WORKSPACE = Workspace(
    "fix",
    "/work/it's $HOME",
    "/repo/.git",
    "/repo/.git/worktrees/fix",
    "corral/fix/work",
    "",
    Identity(),
    ("/a b/bin", "/m"),
)
NASTY = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=40)


@case("hive-8")
def test_path_identity_and_trust_are_set() -> None:
    lines = bootstrap(WORKSPACE, ["true"]).splitlines()
    assert lines[0] == "export PATH='/a b/bin:/m':\"$PATH\""
    assert "export GIT_AUTHOR_NAME='Claude (corral)'" in lines
    assert "export GIT_COMMITTER_EMAIL='claude-corral@localhost'" in lines
    assert "export MISE_YES=1" in lines
    assert "export MISE_TRUSTED_CONFIG_PATHS='/work/it'\\''s $HOME'" in lines


@case("hive-11", "hive-12")
def test_the_directory_comes_before_the_command_and_each_word_is_quoted() -> None:
    lines = bootstrap(WORKSPACE, ["claude", "-p", "--model", "it's"]).splitlines()
    assert lines[-2:] == [
        "cd -- '/work/it'\\''s $HOME' || exit 125",
        "exec 'claude' '-p' '--model' 'it'\\''s'",
    ]
    assert bootstrap(WORKSPACE, ["-a", "x"]).splitlines()[-1] == "exec -- '-a' 'x'"


@pytest.mark.parametrize("name", ["", "A B", "A=B", "1A", "A;touch x", "A\nB", "Ä"])
def test_a_name_that_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="not a variable name"):
        bootstrap(WORKSPACE, ["true"], [(name, "x")])


def test_no_command_and_nul_bytes_are_refused() -> None:
    for command in ([], [""], ["true", "a\0b"]):
        with pytest.raises(PolicyError):
            bootstrap(WORKSPACE, command)
    with pytest.raises(PolicyError):
        bootstrap(WORKSPACE, ["true"], [("A", "\0")])


@settings(max_examples=20, deadline=None)
@given(st.lists(NASTY, min_size=50, max_size=50))
def test_a_thousand_values_arrive_as_they_are(values: list[str]) -> None:
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {' '.join(map(quoted, values))}"],
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/x"},
    ).stdout
    assert printed == os.fsencode("".join(value + "\0" for value in values))


def test_variables_and_words_arrive_through_the_whole_script(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("it's $(touch x) `y`")
    workspace = WORKSPACE.replace(path=str(place), path_prepend=())
    values = [
        "$HOME",
        "${X:-y}",
        "`id`",
        "$(id)",
        "a'b\"c",
        "new\nline",
        "tab\t",
        "\\",
        "!!",
        "%s",
        "é",
        "*",
        "~",
        "",
    ]
    variables = [(f"V{n}", value) for n, value in enumerate(values)]
    program = (
        "import os, sys; seen = [os.environ[f'V{n}'] for n in range(int(sys.argv[1]))]; "
        "print(repr((seen, sys.argv[2:], os.getcwd())))"
    )
    script = bootstrap(workspace, ["python3", "-c", program, str(len(values)), *values], variables)
    said = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )
    assert said.stdout.decode().strip() == repr((values, values, str(place)))
    assert os.listdir(place) == []
