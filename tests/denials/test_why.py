"""`corral why`, outside from the policy and inside from the summary, against what really happens."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import corral
from corral import Grant, LocalEnvironment, Policy
from corral.cli import main
from corral.denials import Summary, summary_json, summary_of
from corral.denials.summary import PATH_INSIDE, read_summary
from corral.errors import PolicyError
from corral.jail.enclosure import Enclosure
from hostfacts import skip_unless_host
from jail.world import PYTHON, World

pytestmark = pytest.mark.jail


@pytest.fixture(autouse=True)
def in_the_workspace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.workspace)


def why(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["why", *words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    return code, {"what": answer["what"], **{told["operation"]: told for told in answer["answers"]}}


def test_a_path_in_the_workspace_is_allowed(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = why(capsys, "new/file", "-m", "workspace-write")
    assert code == 0
    assert answer["what"] == f"{world.workspace}/new/file"
    assert answer["read"]["allowed"]
    assert answer["write"]["allowed"]


def test_a_path_outside_may_be_read_and_the_grant_for_writing_is_named(
    world: World, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("-m", "workspace-write", "--backend", backend)
    code, answer = why(capsys, *options, f"{world.outside}/x")
    assert code == 1
    assert answer["read"]["allowed"]
    assert answer["write"]["rule"] == "outside"
    flag = answer["write"]["grant"]["flag"]
    assert flag == f"--rw {world.outside}"
    assert why(capsys, *options, *flag.split(), f"{world.outside}/x")[0] == 0


def test_options_may_stand_before_and_after(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert why(capsys, "-m", "read-only", "x")[0] == why(capsys, "x", "-m", "read-only")[0] == 1
    assert why(capsys, "x", "--rw", ".", "-m", "read-only")[0] == 0


def test_a_hidden_path_names_its_mask(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = why(capsys, "~/.ssh/id_test", "--backend", "namespaces")
    assert (code, answer["read"]["rule"]) == (1, "keys .ssh")
    assert why(capsys, "~/.ssh/id_test", "--unhide", ".ssh")[1]["read"]["allowed"]


def test_tmp_is_writable_and_its_own(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = why(capsys, "/tmp/x", "--backend", "namespaces")
    assert (answer["read"]["rule"], answer["write"]["allowed"]) == ("private /tmp", True)
    assert "gone with it" in answer["write"]["note"]


@pytest.mark.parametrize(
    "target", ["example.com:443", "[2001:db8::1]:80", "https://example.com/x", "ssh://git@example.com/x"]
)
def test_an_address_is_refused_with_the_network_off_and_allowed_with_it_open(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = why(capsys, target, "--network", "off")
    assert (code, answer["connect"]["rule"]) == (1, "network off")
    assert answer["connect"]["grant"]["flag"] == "--network open"
    assert why(capsys, target, "--network", "open")[0] == 0


def test_a_file_that_is_called_like_an_address_is_a_path(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (world.workspace / "name:80").touch()
    assert why(capsys, "name:80")[1]["what"] == f"{world.workspace}/name:80"
    assert "connect" in why(capsys, "other:80")[1]


def test_without_a_jail_all_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    for target in ("/etc/x", "example.com:80"):
        assert why(capsys, target, "-m", "off")[0] == 0


@pytest.mark.parametrize(
    "words",
    [[], ["a", "b"], [""], ["--no-such"], ["example.com:99999"], ["http://"], ["x", "--backend", "y"]],
)
def test_bad_usage_is_one_line_and_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", *words]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_the_text_is_readable_and_holds_all_three_forms(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", f"{world.outside}/x", "-m", "workspace-write", "--backend", "namespaces"]) == 1
    text = capsys.readouterr().out
    for part in (
        "read     allowed",
        "write    refused by rule `outside`",
        f"--rw {world.outside}",
        "rw = [",
        "Grant.rw(",
    ):
        assert part in text


def test_without_a_mode_it_is_about_the_one_that_run_would_take(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["why", f"{world.outside}/x"])
    text = capsys.readouterr().out
    if os.getuid() == 0:
        assert (code, "(mode workspace-write, " in text) == (1, True), text
        assert "write    refused by rule `outside`" in text
    else:
        assert (code, "(mode casual, " in text) == (0, True), text
        assert "write    allowed; it goes to the jail's copy; `corral changes` shows and applies it" in text
    assert main(["why", "/etc/x"]) == 1


def test_what_why_says_is_what_happens(world: World, backend: str) -> None:
    """A table of places, each really read and written in the jail."""
    (world.workspace / "kept").mkdir()
    (world.workspace / "corral.toml").write_text("")
    grants = (Grant.rw(str(world.granted)), *((Grant.ro("kept"),) if backend == "namespaces" else ()))
    agree(world, Policy.workspace_write(backend=backend, grants=grants))


@pytest.mark.parametrize("mode", ["casual", "bare", "strict"])
def test_what_why_says_is_what_happens_where_home_is_the_jails_own(world: World, mode: str) -> None:
    if mode != "strict":
        skip_unless_host("ordinary-user")
    (world.workspace / "kept").mkdir()
    (world.workspace / "corral.toml").write_text("")
    grants = (Grant.rw(str(world.granted)), Grant.ro("kept"))
    agree(world, Policy(mode=mode, jail="one", grants=grants))  # type: ignore[arg-type]
    assert (world.outside / "victim").read_text() == "untouched"
    assert not (world.outside / "new").exists()


def agree(world: World, policy: Policy) -> None:
    (world.granted / "file").write_text("x")
    places = [
        *("mine", "new", "kept/new", "corral.toml", f"{world.outside}/victim", f"{world.outside}/new"),
        *(
            f"{world.granted}/file",
            f"{world.granted}/new",
            f"{world.home}/.netrc",
            f"{world.home}/.ssh/id_test",
        ),
        *(f"{world.home}/.profile", "/tmp/new", "/var/tmp/new", "/run/new", "/etc/hostname", "/dev/null"),
    ]
    from corral.denials.judge import judge_path, located

    enclosure = Enclosure(str(world.workspace), policy)
    summary = summary_of(enclosure)
    enclosure.close()
    with LocalEnvironment(world.workspace, policy) as environment:
        for place in places:
            path = os.path.join(world.workspace, place)
            for operation, line in (("read", 'cat "$0"'), ("write", 'mkdir -p "${0%/*}"; : >> "$0"')):
                if operation == "read" and not os.path.exists(path):
                    continue
                if operation == "write" and not os.access(
                    path if os.path.exists(path) else os.path.dirname(path), os.W_OK
                ):
                    continue
                expected = judge_path(summary, located(summary, path, operation), operation) is None
                done = environment.run(["bash", "-c", line, path])
                assert (done.exit_code == 0) == expected, f"{operation} {place}: {done.stderr}"


# ---- inside ----


def enclosed(world: World, policy: Policy) -> str:
    enclosure = Enclosure(str(world.workspace), policy)
    try:
        return summary_json(enclosure)
    finally:
        enclosure.close()


def test_the_summary_survives_being_a_file(world: World, backend: str, tmp_path: Path) -> None:
    policy = Policy.workspace_write(backend=backend, grants=(Grant.rw(str(world.granted)), Grant.ro("/usr")))
    file = tmp_path / "summary.json"
    file.write_text(enclosed(world, policy))
    enclosure = Enclosure(str(world.workspace), policy)
    assert read_summary(str(file)) == summary_of(enclosure)
    enclosure.close()
    fields = json.loads(file.read_text())
    for name in ("mode", "backend", "writable", "read_only", "hidden", "network", "grants"):
        assert name in fields
    assert set(fields) == {"version", *Summary._fields}
    assert PATH_INSIDE.startswith("/run/")


def test_the_summary_of_a_jail_with_a_home_of_its_own_survives_it_too(world: World, tmp_path: Path) -> None:
    """Root has only one mode of that kind."""
    policy = Policy.strict() if os.getuid() == 0 else Policy.casual()
    file = tmp_path / "summary.json"
    file.write_text(enclosed(world, policy))
    enclosure = Enclosure(str(world.workspace), policy)
    summary = summary_of(enclosure)
    enclosure.close()
    assert read_summary(str(file)) == summary
    assert summary.copied == (() if os.getuid() == 0 else (str(world.home),))


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"version": 2}', '{"version": 1, "x": 1}'])
def test_a_summary_that_is_none_is_one_clear_line(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "summary.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(PolicyError, match="CORRAL"):
        read_summary(str(file))


def test_inside_a_jail_the_summary_answers_and_options_are_refused(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    shutil.copytree(Path(corral.__file__).parent, world.workspace / "lib/corral")
    (world.workspace / "summary.json").write_text(enclosed(world, policy))
    variables = {
        "CORRAL": str(world.workspace / "summary.json"),
        "PYTHONPATH": str(world.workspace / "lib"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    source = "import sys; from corral.cli import main; sys.exit(main(['why', *sys.argv[1:]]))"
    expected = {
        ("new",): 0,
        (f"{world.outside}/x",): 1,
        ("example.com:443",): 1,
        ("new", "-m", "off"): 2,
    }
    with LocalEnvironment(world.workspace, policy) as environment:
        for words, code in expected.items():
            done = environment.run([PYTHON, "-c", source, *words], extra_env=variables)
            assert done.exit_code == code, done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        done = environment.run([PYTHON, "-c", source, f"{world.outside}/x"], extra_env=variables)
        assert f"--rw {world.outside}" in done.stdout
