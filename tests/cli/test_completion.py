"""Completion in the real shells: what is offered after a line, and that every option of every command is."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.typed import CORRAL
from corral.cli.manual import entries
from corral.policy import BACKENDS, MODES
from hostfacts import skip_unless_host

VERBS = {"list", "diff", "apply", "discard"}

# What is typed, and some of what must be offered; nothing may be offered that does not begin like the last word.
LINES = {
    "corral ": {"run", "doctor", "completion"},
    "corral run --mo": {"--mode"},
    "corral run --mode ": set(MODES),
    "corral run -m st": {"strict"},
    "corral run --mode=st": {"strict"},
    "corral explain --backend ": set(BACKENDS),
    "corral run -q --network ": {"off", "open"},
    "corral run --limit m": {"memory="},
    "corral run -j ": {"web", "build"},
    "corral down -j w": {"web"},
    "corral jails rm ": {"web", "build"},
    "corral run --profile ": {"look"},
    "corral changes ": VERBS,
    "corral changes -j web ": VERBS,
    "corral changes apply ./": {"./notes.txt"},
    "corral run --cd ./": {"./src"},
    "corral doctor --mo": {"--mode"},
}
# Options end at the command and after two dashes: these are the command's own words.
NOT_OURS = ["corral run cat --mo", "corral run -- --mo"]


def in_bash(place: Path, line: str) -> set[str]:
    (place / "corral.bash").write_text(script("bash"))
    # Bash takes an equals sign for a word of its own.
    words = line.replace("=", " = ").split(" ")
    call = 'source ./corral.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _corral; printf "%s\\n" "${COMPREPLY[@]}"'
    return lines_of(place, ["bash", "--norc", "-uc", call, "bash", *words])


def in_zsh(place: Path, line: str) -> set[str]:
    (place / "_corral").write_text(script("zsh"))
    head = line.rpartition(" ")[2].rpartition("/")
    offered = lines_of(place, ["zsh", "-f", str(Path(__file__).with_name("offers.zsh")), line])
    return {head[0] + head[1] + word for word in offered}


def in_fish(place: Path, line: str) -> set[str]:
    (place / "corral.fish").write_text(script("fish"))
    offered = lines_of(place, ["fish", "--no-config", "-c", "source corral.fish; complete -C $argv[1]", line])
    words = {word.partition("\t")[0].rstrip("/") for word in offered}
    return {word.partition("=")[2] if word.startswith("--mode=") else word for word in words}


SHELLS: dict[str, Callable[[Path, str], set[str]]] = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


@pytest.fixture(params=SHELLS)
def offers(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], set[str]]:
    shell = str(request.param)
    if shell != "bash":
        skip_unless_host(f"no-{shell}")
    for jail in ("web", "build"):
        (tmp_path / "state/jails" / jail).mkdir(parents=True)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/corral.toml").write_text("[profile.look]\nmode = 'read-only'\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "notes.txt").touch()
    return lambda line: SHELLS[shell](tmp_path, line)


def test_what_fits_is_offered(offers: Callable[[str], set[str]]) -> None:
    for line, expected in LINES.items():
        found = offers(line)
        assert expected <= found, line
        begun = line.rpartition(" ")[2].rpartition("=")[2]
        assert all(word.startswith(begun) for word in found), (line, found)


def test_the_command_s_own_words_are_not_ours(offers: Callable[[str], set[str]]) -> None:
    for line in NOT_OURS:
        assert "--mode" not in offers(line), line


def test_every_option_of_every_command_is_in_every_script() -> None:
    scripts = {shell: script(shell) for shell in SHELLS}
    for entry in entries():
        assert entry.summary
        for option in entry.options:
            for name in option.names:
                for shell, text in scripts.items():
                    shown = name
                    if shell == "fish":
                        shown = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                    assert shown in text, (shell, entry.name, name)


def test_a_shell_that_there_is_not_is_refused_in_one_line() -> None:
    done = subprocess.run([CORRAL, "completion", "fisch"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "corral: corral completion takes one of bash, zsh, fish, not 'fisch' (did you mean fish?)\n"
    )


@functools.cache
def script(shell: str) -> str:
    return subprocess.check_output([CORRAL, "completion", shell], text=True)


def lines_of(place: Path, command: list[str]) -> set[str]:
    variables = {
        "PATH": f"{Path(CORRAL).parent}:/usr/bin:/bin",
        "HOME": str(place),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "CORRAL_STATE_DIR": str(place / "state"),
        "CORRAL_CONFIG_DIR": str(place / "config"),
    }
    done = subprocess.run(
        command,
        cwd=place,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n")) - {""}
