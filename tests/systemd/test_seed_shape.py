"""The interface that the seed describes: names, arguments and the script, as they are started."""

from __future__ import annotations

import itertools
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from cases import case
from corral import Jail, Policy, PolicyError, RunOpts, UnknownBackend, open_jail
from systemd.testbed import HOME

if TYPE_CHECKING:
    from systemd.conftest import Bed

GRANTS = [
    (f"{HOME}/.claude", "rw", "skip"),
    *((f"{HOME}/.local/{name}", "ro", "skip") for name in ("bin", "share/mise", "share/claude")),
]


def arguments(answer: dict[str, Any]) -> list[str]:
    (client,) = answer["started"]
    found: list[str] = client["argv"]
    return found


def properties(argv: list[str], name: str) -> list[str]:
    given = [after for before, after in itertools.pairwise(argv) if before == "-p"]
    return [text.partition("=")[2] for text in given if text.startswith(f"{name}=")]


@case("hive-1")
def test_every_known_backend_but_the_mac_gives_a_jail_here() -> None:
    for backend in ("systemd-run", "landlock", "namespaces"):
        jail: Jail = open_jail(backend, Policy.workspace_write())
        assert jail.backend == backend


@case("hive-2")
@pytest.mark.parametrize("name", ["docker", "podman", ""])
def test_an_unknown_backend_is_a_typed_error_with_the_known_names(name: str) -> None:
    with pytest.raises(UnknownBackend, match=f'unknown jail backend: "{name}"') as refused:
        open_jail(name)
    assert isinstance(refused.value, PolicyError)
    assert refused.value.known == ("namespaces", "landlock", "systemd-run", "seatbelt")


@case("hive-3")
def test_the_program_is_systemd_run_of_the_user_with_pipes_and_no_terminal(bed: Bed) -> None:
    answer = bed.jail(["true"])
    argv = arguments(answer)
    assert argv[0] == "systemd-run"
    assert answer["started"][0]["path"] == "/usr/bin/systemd-run"
    options = argv[: argv.index("--")]
    assert {"--user", "--pipe", "--collect"} <= set(options)
    assert not any(word.startswith(("--pty", "-t")) for word in options)
    assert any(word.startswith("--unit=corral-") for word in options)


@case("hive-4")
def test_the_four_properties_of_the_seed_and_those_that_make_failure_loud_are_always_there(bed: Bed) -> None:
    for policy in ({}, {"mode": "read-only"}, {"network": "open"}):
        argv = arguments(bed.jail(["true"], policy=policy))
        assert properties(argv, "TemporaryFileSystem")[0] == f"{HOME}:mode=0755"
        assert properties(argv, "ProtectSystem") == ["strict"]
        assert properties(argv, "PrivateTmp") == ["yes"]
        assert properties(argv, "NoNewPrivileges") == ["yes"]
        assert properties(argv, "PrivateUsers") == ["yes"]
        assert "/run/user:mode=0755" in properties(argv, "TemporaryFileSystem")


@case("hive-5")
def test_the_workspace_and_what_is_granted_are_bound_writable(bed: Bed) -> None:
    argv = arguments(bed.jail(["true"], policy={"grants": GRANTS}))
    assert properties(argv, "BindPaths") == [f"-{HOME}/.claude", f"{HOME}/work"]


@case("hive-6")
def test_three_directories_of_programs_are_bound_read_only(bed: Bed) -> None:
    argv = arguments(bed.jail(["true"], policy={"grants": GRANTS}))
    bound = properties(argv, "BindReadOnlyPaths")
    assert bound[:3] == [f"-{HOME}/.local/{name}" for name in ("bin", "share/mise", "share/claude")]


@case("hive-7")
def test_the_arguments_end_with_bash_and_one_script_that_says_nothing_of_the_command(bed: Bed) -> None:
    argv = arguments(bed.jail(["echo", "a word that is not there"]))
    assert argv[-4:-1] == ["--", "/bin/bash", "-c"]
    assert shlex.split(argv[-1])[:2] == ["exec", "-c"]
    assert "a word that is not there" not in " ".join(argv)


@case("hive-13")
def test_capturing_has_the_same_shape_and_gives_back_what_was_printed_as_bytes(bed: Bed) -> None:
    captured = bed.script("echo out; echo err >&2")
    attached = bed.script("echo out; echo err >&2", attached=True)

    def shape(answer: dict[str, Any]) -> list[str]:
        private = ("--unit=", "BindReadOnlyPaths=/tmp/")
        return [word for word in arguments(answer) if not word.startswith(private)]

    assert shape(captured) == shape(attached)
    assert (captured["stdout"], captured["terminal"], captured["stderr"]) == ("out\n", "", "err\n")
    assert (attached["stdout"], attached["terminal"], attached["stderr"]) == ("", "out\n", "err\n")


def test_options_never_show_a_value_when_they_are_printed() -> None:
    opts = RunOpts(None, ["true"], ["TOKEN=hush"], api_key="sesame")
    assert "hush" not in repr(opts)
    assert "sesame" not in repr(opts)


@pytest.mark.parametrize("command", ["true", [], ()])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    with pytest.raises(PolicyError):
        RunOpts(None, command)
