"""`corral changes` as a person types it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from changes.field import Field
from corral.changes import Layers, begin
from corral.cli.changes import parse

pytestmark = pytest.mark.jail


class Desk:
    """A state directory with jails, each over a directory of its own, and a command line."""

    def __init__(self, base: Path) -> None:
        self.state = base / "state"
        self.base = base
        base.mkdir()

    def jail(self, name: str, review: bool = False) -> JailField:
        place = self.state / "jails" / name / ("review" if review else ".")
        return JailField(place.resolve(), real=self.base / f"real-{name}{'-review' if review else ''}")

    def corral(
        self, *words: str, cwd: Path | None = None, answers: str = ""
    ) -> subprocess.CompletedProcess[str]:
        argv = [
            sys.executable,
            "-c",
            "from corral.cli import main; raise SystemExit(main())",
            "changes",
            *words,
        ]
        environment = {**os.environ, "CORRAL_STATE_DIR": str(self.state)}
        return subprocess.run(
            argv, env=environment, cwd=cwd or self.base, input=answers, capture_output=True, text=True
        )


class JailField(Field):
    """Laid out as in the state directory."""

    def __init__(self, base: Path, real: Path) -> None:
        self.real = real
        real.mkdir(parents=True, exist_ok=True)
        super().__init__(base)

    def __post_init__(self) -> None:
        for name in ("changes", "work", "merged"):
            (self.base / name).mkdir(parents=True, exist_ok=True)

    @property
    def lower(self) -> Path:
        return self.real

    @property
    def upper(self) -> Path:
        return self.base / "changes"

    @property
    def layers(self) -> Layers:
        return Layers(str(self.real), str(self.upper), str(self.base / "sealed"))

    def argv(self, line: str) -> list[str]:
        return [
            word.replace("lowerdir=lower", f"lowerdir={self.real}").replace(
                "upperdir=upper", "upperdir=changes"
            )
            for word in super().argv(line)
        ]


@pytest.fixture
def desk(field: Field, tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


def test_list_diff_apply_and_discard(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.file("f", "old\n")
    jail.run("echo new > f; echo x > Makefile; echo y > g")
    listed = desk.corral()
    assert listed.stdout.splitlines() == [
        "A Makefile  (2 bytes; runs later: a build or a test runs it)",
        "M f  (4 bytes)",
        "A g  (2 bytes)",
    ]
    assert "-old\n+new" in desk.corral("diff", "f").stdout
    done = desk.corral("apply")
    assert done.returncode == 1, "something was left"
    assert done.stdout.splitlines() == [
        f"applied 2 changes to {jail.real}",
        "left: Makefile: runs later: a build or a test runs it; name it, or --allow-exec",
    ]
    assert (jail.real / "f").read_text() == "new\n"
    gone = desk.corral("discard", "--keep", "kept.patch")
    assert gone.returncode == 0
    assert "discarded 1 change;" in gone.stdout
    assert "+++ b/Makefile" in (desk.base / "kept.patch").read_text()
    assert desk.corral("list").stdout == ""


def test_paths_are_relative_to_where_one_stands(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.file("sub/f")
    jail.run("echo x > sub/f; echo x > top")
    assert desk.corral("list", "f", cwd=jail.real / "sub").stdout.startswith("M sub/f")
    assert desk.corral("list", str(jail.real / "sub")).stdout.startswith("M sub/f")
    assert desk.corral("list", "sub").stdout.startswith("M sub/f"), (
        "from elsewhere: relative to the directory"
    )
    outside = desk.corral("list", "/etc/passwd")
    assert (outside.returncode, outside.stderr.strip()) == (
        2,
        f"corral: /etc/passwd is not below {jail.real}",
    )


def test_json_tells_all_of_it(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.file("f", "old\n")
    jail.run("echo new > f; mkfifo p")
    told = json.loads(desk.corral("list", "--json").stdout)
    assert told["directory"] == str(jail.real)
    (f, p) = told["changes"]
    assert (f["path"], f["kind"], f["before"]["size"], len(f["after"]["digest"])) == ("f", "modified", 4, 64)
    assert p["refused"]
    applied = desk.corral("apply", "--json")
    assert applied.returncode == 1
    assert json.loads(applied.stdout) == {
        "applied": ["f"],
        "left": [{"path": "p", "reason": "a fifo is not made"}],
        "aside": [],
        "notes": [],
    }


def test_a_conflict_is_one_line_and_nothing_happens(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.file("f", "old\n")
    jail.run("echo new > f")
    jail.file("f", "mine\n")
    refused = desk.corral("apply")
    assert refused.returncode == 125
    assert refused.stderr.count("\n") == 1
    assert "changed outside since the run" in refused.stderr
    assert (jail.real / "f").read_text() == "mine\n"
    assert desk.corral("apply", "--overwrite").returncode == 2
    done = desk.corral("apply", "--overwrite", "f")
    assert done.returncode == 0
    kept = done.stdout.splitlines()[-1].partition(": ")[2]
    assert Path(kept).read_text() == "mine\n"
    assert (jail.real / "f").read_text() == "new\n"


def test_hunks_are_asked_for_one_by_one(desk: Desk) -> None:
    jail = desk.jail("one")
    text = "".join(f"{n}\n" for n in range(30))
    jail.file("f", text)
    jail.run(
        "sed -i -e 's/^2$/two/' -e 's/^4$/four/' -e 's/^25$/twenty-five/' f; echo x > new; echo x > other"
    )
    done = desk.corral("apply", "-p", answers="s\nn\ny\nn\ny\nq\n")
    assert done.returncode == 0, done.stderr
    assert (jail.real / "f").read_text() == text.replace("\n4\n", "\nfour\n")
    assert (jail.real / "new").exists()
    assert not (jail.real / "other").exists()
    assert desk.corral("list").stdout.split("\n")[0].startswith("M f")
    rest = desk.corral("apply", "--interactive", answers="a\nn\n")
    assert rest.returncode == 0
    assert (jail.real / "f").read_text() == text.replace("\n4\n", "\nfour\n").replace(
        "\n2\n", "\ntwo\n"
    ).replace("\n25\n", "\ntwenty-five\n")


def test_to_answer_nothing_applies_nothing(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.run("echo x > new")
    done = desk.corral("apply", "-p", answers="")
    assert done.returncode == 0
    assert done.stdout.endswith("nothing was applied\n")
    assert not (jail.real / "new").exists()


def test_of_several_jails_one_must_be_named(desk: Desk) -> None:
    assert desk.corral().stderr.strip() == "corral: no jail has kept anything yet; corral run makes one"
    for name in ("one", "two"):
        desk.jail(name).run(f"echo x > {name}")
    which = desk.corral()
    assert (which.returncode, which.stderr.strip()) == (2, "corral: which jail? -j one | two")
    assert desk.corral("-j", "two").stdout.startswith("A two")
    assert desk.corral("-j", "../one").returncode == 2
    assert desk.corral("-j", "three").returncode == 2


def test_home_and_review_are_told_apart(desk: Desk) -> None:
    desk.jail("one").run("echo x > in-home")
    assert desk.corral().stdout.startswith("A in-home")
    desk.jail("one", review=True).run("echo x > in-workspace")
    both = desk.corral()
    assert both.returncode == 2
    assert "--home or --review" in both.stderr
    assert desk.corral("--review").stdout.startswith("A in-workspace")
    assert desk.corral("list", "--home").stdout.startswith("A in-home")


@pytest.mark.parametrize(
    "words", [["--nope"], ["list", "--keep", "x"], ["discard", "-p"], ["apply", "no-such-path"], ["-j"]]
)
def test_wrong_words_are_one_line(desk: Desk, words: list[str]) -> None:
    desk.jail("one").run("echo x > new")
    done = desk.corral(*words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_run_that_goes_on_is_listed_and_not_touched(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.run("echo x > new")
    held = begin(jail.layers)
    try:
        assert "still runs" in desk.corral().stderr
        for action in ("apply", "discard"):
            done = desk.corral(action)
            assert (done.returncode, "still runs" in done.stderr) == (125, True)
    finally:
        os.close(held)
    assert "not sealed" in desk.corral().stderr


def test_on_a_terminal_the_diff_is_coloured_paged_and_harmless(desk: Desk) -> None:
    jail = desk.jail("one")
    jail.file("f", "old\n")
    jail.run("printf 'x\\033[2Jy\\n' > f")
    told = on_a_terminal(desk, "diff", pager="sed s/^/paged:/")
    assert b"\x1b[31m-old\x1b[0m" in told
    assert b"\x1b[32m+x\\x1b[2Jy\x1b[0m" in told
    assert b"\x1b[2J" not in told
    assert told.startswith(b"paged:")


def on_a_terminal(desk: Desk, *words: str, pager: str) -> bytes:
    main, side = pty.openpty()
    code = "from corral.cli import main; raise SystemExit(main())"
    environment = {**os.environ, "CORRAL_STATE_DIR": str(desk.state), "PAGER": pager, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    argv = [sys.executable, "-c", code, "changes", *words]
    with subprocess.Popen(
        argv, stdout=side, stderr=side, stdin=side, env=environment, cwd=desk.base
    ) as process:
        os.close(side)
        pieces = []
        try:
            while piece := os.read(main, 4096):
                pieces.append(piece)
        except OSError:
            pass  # all ends of the terminal are closed
        assert process.wait() == 0
    os.close(main)
    return b"".join(pieces)


def test_the_verb_may_come_after_the_options() -> None:
    for words in (["-j", "one", "diff", "a"], ["diff", "-j", "one", "a"]):
        asked = parse(words)
        assert (asked.action, asked.values, asked.paths) == ("diff", {"jail": "one"}, ("a",))
    assert parse(["--", "list"]).paths == ("list",)
    assert parse(["a", "list"]).action == "list"
