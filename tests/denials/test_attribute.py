"""`attribute`: a denial from text alone, judged by a policy. Every row of the notes' table, and the texts for people
and for the model."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral import Grant, Policy
from corral.denials import WRITE_JAIL_HINT, Summary, attribute, find_denials
from corral.denials.finding import denials_in
from jail.world import World

pytestmark = pytest.mark.jail

# The rows of the table that upstream's expression was tried on, and what is right: the path, or nothing.
ROWS: dict[str, str | None] = {
    "bash: line 1: /usr/local/x-denials: Permission denied": "/usr/local/x-denials",
    "Permission denied @ rb_sysopen - /etc/x-denials": "/etc/x-denials",
    "[Errno 13] Permission denied: '/etc/x-denials'": "/etc/x-denials",
    "EACCES: permission denied, open '/etc/x-denials'": "/etc/x-denials",
    "touch: cannot touch '/opt/x-denials': Permission denied": "/opt/x-denials",
    "touch: cannot touch ‘/opt/x-denials’: Permission denied": "/opt/x-denials",
    "mkdir: cannot create directory '/opt/x-denials': Permission denied": "/opt/x-denials",
    "rm: cannot remove '/opt/x-denials': Permission denied": "/opt/x-denials",
    "cp: cannot create regular file '/opt/x-denials': Permission denied": "/opt/x-denials",
    "cat: /root/secret: Permission denied": None,
    "bash: sub/locked.txt: Permission denied": None,
    "Permission denied (publickey). see https://docs.example.com/x": None,
    "git@example.com: Permission denied (publickey).": None,
    "bash: /opt/my dir/x: Permission denied": "/opt/my dir/x",
    "touch: cannot touch '/opt/x-denials': Read-only file system": "/opt/x-denials",
    "mv: cannot move 'mine' to '/opt/x-denials': Invalid cross-device link": "/opt/x-denials",
    "touch: cannot touch '/opt/x-denials': Operation not permitted": "/opt/x-denials",
    # and some of our own that look alike
    "scp: /etc/x-denials: Permission denied": None,
    "fatal: unable to access 'https://example.com/x/': Permission denied": None,
    "bash: fork: Permission denied": None,
    "make: *** [makefile:2: all] Error 1": None,
    "see https://example.com/a: Permission denied": None,
    "zsh: permission denied: /opt/x-denials": "/opt/x-denials",
    "open /opt/x-denials: permission denied": "/opt/x-denials",
    "java.io.FileNotFoundException: /opt/x-denials (Permission denied)": "/opt/x-denials",
    "error: could not write /opt/x-denials: Permission denied (os error 13)": "/opt/x-denials",
}


@pytest.mark.parametrize("text", ROWS)
def test_every_row_of_the_notes_is_right(world: World, backend: str, text: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    denial = attribute(f"before\n{text}\nafter\n", policy, cwd=str(world.workspace))
    assert (denial.what if denial is not None else None) == ROWS[text]
    assert (WRITE_JAIL_HINT in denial.model_text()) if denial is not None else True


def test_the_hint_is_the_seeds_but_for_the_name_of_the_key() -> None:
    assert WRITE_JAIL_HINT == "(blocked by the workspace write-jail — sandbox; write inside the workspace)"


def test_nothing_is_attributed_without_text_without_a_jail_or_inside_a_root(world: World) -> None:
    refused = f"touch: cannot touch '{world.outside}/x': Permission denied"
    inside = f"touch: cannot touch '{world.workspace}/x': Permission denied"
    policy, cwd = Policy.workspace_write(), str(world.workspace)
    assert attribute(refused, policy, cwd) is not None
    for nothing in ("", b"", None, "all is well", inside):
        assert attribute(nothing, policy, cwd) is None
    assert attribute(refused, Policy.off(), cwd) is None
    assert attribute(refused, policy.allow(Grant.rw(str(world.outside))), cwd) is None
    assert attribute(refused, policy, "/nonexistent/directory") is None


def test_a_root_that_is_not_the_working_directory_can_be_named(world: World) -> None:
    (world.workspace / "sub").mkdir()
    text = "touch: cannot touch '../x': Permission denied"
    policy, sub = Policy.workspace_write(), str(world.workspace / "sub")
    assert attribute(text, policy, sub) is not None
    assert attribute(text, policy, sub, root=str(world.workspace)) is None


def test_one_line_for_people_has_the_path_the_rule_and_the_grant_three_times(world: World) -> None:
    policy = Policy.workspace_write()
    denial = attribute(
        f"touch: cannot touch '{world.outside}/x': Permission denied", policy, str(world.workspace)
    )
    assert denial is not None
    line = denial.text()
    assert "\n" not in line
    for part in (
        f"{world.outside}/x",
        "`outside`",
        f"--rw {world.outside}",
        f'rw = ["{world.outside}"]',
        "Grant.rw(",
    ):
        assert part in line


def test_the_model_is_told_not_to_work_around_it(world: World) -> None:
    policy = Policy.workspace_write()
    texts = {
        "write": (f"touch: cannot touch '{world.outside}/x': Permission denied", WRITE_JAIL_HINT),
        "connect": ("curl: (6) Could not resolve host: name.example", "(blocked by the jail — network;"),
    }
    for operation, (text, hint) in texts.items():
        denial = attribute(text, policy, str(world.workspace))
        assert denial is not None
        assert denial.operation == operation
        told = denial.model_text()
        assert told.startswith(hint)
        assert "do not work around it" in told
        assert "say so and stop" in told


def test_a_path_cannot_put_control_characters_or_lines_into_a_text(world: World) -> None:
    text = f"touch: cannot touch '{world.outside}/a'$'\\n\\033[31m''b': Permission denied"
    denial = attribute(text, Policy.workspace_write(), str(world.workspace))
    assert denial is not None
    assert denial.what == f"{world.outside}/a\n\x1b[31mb"
    assert denial.text().isprintable()
    assert all(line.isprintable() for line in denial.model_text().split("\n"))


JAIL = Summary("workspace-write", "namespaces", "off", ("/w",), writable=("/w",), private=("/tmp",))
PIECES = st.sampled_from(
    [
        *(
            "'",
            '"',
            "‘",
            "’",
            "$'",
            "\\",
            "\\377",
            ": ",
            " -> ",
            "/",
            "/etc/x",
            "~",
            "touch: cannot touch ",
            "[Errno 13] ",
        ),
        *(
            "Permission denied",
            "Read-only file system",
            "EACCES: ",
            " @ rb - ",
            "\n",
            "\udcff",
            "\x00",
            "b'",
            "(",
            ")",
        ),
        *(
            "Network is unreachable",
            "Connection refused",
            "connect to host ",
            " port 22: ",
            "127.0.0.1:80",
            "make: ",
        ),
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_text_makes_it_raise(text: str) -> None:
    denials_in("", text, JAIL, "/w")
    denials_in(text.encode("utf-8", "surrogateescape"), b"", JAIL, "/w", argv=[text])


def test_a_flood_of_output_is_looked_at_in_little_time(world: World) -> None:
    import time

    flood = b"x" * 5_000_000 + b"\n" + b"a: b: c Permission denied\n" * 200_000
    end = os.fsencode(f"touch: cannot touch '{world.outside}/x': Permission denied\n")
    started = time.process_time()
    found = find_denials(flood + end, b"(" * 10_000_000, JAIL, "/w")
    assert [d.what for d in found] == [f"{world.outside}/x"]
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's", "$HOME", "caf\u00e9", "line\nbreak", "\x1b[31m", "byte\udcff\\'"]
)
def test_the_flag_means_the_path_to_a_shell(world: World, name: str) -> None:
    directory = world.outside / name
    directory.mkdir()
    text = f"PermissionError: [Errno 13] Permission denied: {str(directory / 'x')!r}"
    denial = attribute(text, Policy.workspace_write(), str(world.workspace))
    assert denial is not None
    assert denial.grant is not None
    shell = ["bash", "-c", f"printf '%s\\n--end' {denial.grant.flag.removeprefix('--rw ')}"]
    printed = subprocess.run(shell, stdout=subprocess.PIPE, check=True).stdout
    assert printed == os.fsencode(f"{directory}\n--end")
    assert denial.grant.api == f"policy.allow(Grant.rw({str(directory)!r}))"
