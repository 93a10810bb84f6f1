"""What people and their agents really run, inside casual: it works, and home stays as it was."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import nothing_left, pane
from cli.typed import CORRAL
from homes.dweller import Dweller
from hostfacts import skip_unless_host
from jail.world import PYTHON, fingerprint

pytestmark = pytest.mark.jail

INSTALLED = ("-r", sys.prefix)  # what the tests brought may lie below a /var/tmp that is replaced
IDENTITY = "git config --global user.name A; git config --global user.email a@example.org; "


@pytest.fixture(autouse=True)
def home_stays_as_it_was(dweller: Dweller) -> Iterator[None]:
    before = fingerprint(dweller.home / ".profile")
    names = sorted(entry.name for entry in dweller.home.iterdir())
    yield
    assert fingerprint(dweller.home / ".profile") == before
    assert [
        name for name in sorted(entry.name for entry in dweller.home.iterdir()) if name not in names
    ] == []


def outside(dweller: Dweller, *words: str) -> str:
    done = subprocess.run(words, cwd=dweller.project, env=dweller.variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_git_commits(dweller: Dweller) -> None:
    dweller.says(
        IDENTITY + "git init -q -b main; echo x > f; git add f; git commit -qm first; git branch topic"
    )
    assert outside(dweller, "git", "log", "--format=%an %s") == "A first\n"
    assert outside(dweller, "git", "branch", "--format=%(refname:short)").split() == ["main", "topic"]


def test_git_commits_in_a_worktree_whose_repository_is_granted(dweller: Dweller) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    outside(dweller, "git", "init", "-q", "-b", "main")
    outside(dweller, "git", *identity, "commit", "-q", "--allow-empty", "-m", "first")
    tree = dweller.world.base / "tree"
    outside(dweller, "git", "worktree", "add", "-q", str(tree), "-b", "topic")
    line = IDENTITY + "echo x > f; git add f; git commit -qm second; git log --format=%s"
    grant = str(dweller.project / ".git")
    assert dweller.says(line, "-d", grant, cwd=tree) == "second\nfirst\n"
    assert outside(dweller, "git", "log", "--format=%s", "topic") == "second\nfirst\n"


def test_a_worktree_is_made_inside_the_project(dweller: Dweller) -> None:
    line = "git init -q -b main; git commit -qm first --allow-empty; git worktree add -q trees/a -b a; ls trees/a/.git"
    assert dweller.says(IDENTITY + line) == "trees/a/.git\n"
    assert outside(dweller, "git", "-C", "trees/a", "log", "--format=%s") == "first\n"


def test_a_program_in_c_is_compiled_and_run(dweller: Dweller) -> None:
    (dweller.project / "hello.c").write_text(
        '#include <stdio.h>\nint main(void) { puts("hello"); return 7; }\n'
    )
    done = dweller.runs("gcc -O1 -o hello hello.c && ./hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", "")


def wheel_in(directory: Path) -> Path:
    path = directory / "hull-1.0-py3-none-any.whl"
    info = "hull-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("hull.py", "print('afloat')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: hull\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"hull.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


def test_pip_installs_a_wheel(dweller: Dweller) -> None:
    wheel = wheel_in(dweller.project)
    install = (
        f"{PYTHON} -m venv env && env/bin/pip install -q --no-index --disable-pip-version-check {wheel.name}"
    )
    assert dweller.says(f"{install} && env/bin/python -m hull", timeout=120) == "afloat\n"
    assert outside(dweller, "env/bin/python", "-m", "hull") == "afloat\n"


def test_npm_makes_a_package(dweller: Dweller) -> None:
    skip_unless_host("no-npm")
    done = dweller.runs("npm init -y > /dev/null; npm pkg get name", timeout=60)
    assert (done.returncode, done.stdout) == (0, '"work"\n')
    assert (dweller.project / "package.json").exists()


def archive_in(directory: Path) -> Path:
    """A package as the npm registry has them."""
    path = directory / "hull-1.0.0.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (
            ("package.json", '{"name": "hull", "version": "1.0.0", "main": "hull.js"}'),
            ("hull.js", "console.log('afloat')\n"),
        ):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


# Both link what they install from a store in home, which is another mount inside, unless they are told otherwise.


@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_pnpm_installs_a_package_and_leaves_no_store_in_the_project(dweller: Dweller, mode: str) -> None:
    skip_unless_host("no-pnpm")
    archive, app = archive_in(dweller.world.base), dweller.project / "app"
    app.mkdir()
    (app / "package.json").write_text('{"name": "work", "version": "1.0.0"}')
    (dweller.project / "pnpm-lock.yaml").touch()
    line = f"cd app && pnpm add --offline --silent {archive} && node -e 'require(\"hull\")'"
    assert dweller.says(line, *INSTALLED, "-r", str(archive), mode=mode, timeout=50) == "afloat\n"
    assert outside(dweller, "node", "-e", 'require("./app/node_modules/hull")') == "afloat\n"
    assert sorted(os.listdir(dweller.project)) == ["app", "pnpm-lock.yaml"]
    assert sorted(os.listdir(app)) == ["node_modules", "package.json", "pnpm-lock.yaml"]


@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_uv_installs_a_wheel_and_warns_of_nothing(dweller: Dweller, mode: str) -> None:
    wheel = wheel_in(dweller.project)
    uv = Path(sys.executable).parent / "uv"
    install = f"{uv} venv -q -p {PYTHON} env && {uv} pip install --offline -p env {wheel.name}"
    done = dweller.runs(f"{install} && env/bin/python -m hull", *INSTALLED, mode=mode, timeout=50)
    assert (done.returncode, done.stdout) == (0, "afloat\n")
    assert "warning" not in done.stderr
    assert outside(dweller, "env/bin/python", "-m", "hull") == "afloat\n"
    assert sorted(os.listdir(dweller.project)) == ["env", wheel.name]


# As cargo does: what was built is linked within the project.
CARGO = """
import os
os.makedirs("target/deps")
open("target/deps/program", "w").write("content")
os.link("target/deps/program", "target/program")
assert os.stat("target/program").st_nlink == 2
"""


@pytest.mark.parametrize("mode", ["casual", "bare", "strict"])
def test_what_cargo_links_in_the_project_is_linked(dweller: Dweller, mode: str) -> None:
    done = dweller.types("run", "-m", mode, PYTHON, "-c", CARGO)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [entry.name for entry in dweller.project.iterdir()] == ["target"]


def test_older_pnpm_is_told_in_its_own_words_and_npm_is_not_bothered(dweller: Dweller) -> None:
    line = "echo ${npm_config_store_dir-none} $UV_LINK_MODE"
    assert dweller.says(line) == "none copy\n"
    (dweller.project / "pnpm-lock.yaml").touch()
    assert dweller.says(line) == f"{dweller.home}/.local/share/pnpm/store copy\n"
    dweller.variables["UV_LINK_MODE"] = "clone"
    assert dweller.says(line).endswith(" clone\n")


def test_a_python_prompt_in_tmux(dweller: Dweller) -> None:
    skip_unless_host("no-tmux")
    command = [CORRAL, "run", "-q", "-m", "casual", PYTHON, "-q"]
    with (
        nothing_left(),
        pane(dweller.world.base / "tmux", dweller.project, dweller.variables, command) as seen,
    ):
        seen.shows(">>>")
        seen.types("6 * 7 + 1000")
        seen.presses("Enter")
        seen.shows("1042")
        seen.types("while True: pass")
        seen.presses("Enter", "Enter")
        seen.presses("C-c")
        seen.shows("KeyboardInterrupt")
        seen.types("_ = open('made', 'w').write('by hand')")
        seen.presses("Enter")
        seen.types("print('still', 'there')")
        seen.presses("Enter")
        seen.shows("still there")
    assert (dweller.project / "made").read_text() == "by hand"


def test_without_a_prompt_a_shell_is_started_and_has_the_copied_home(dweller: Dweller) -> None:
    done = dweller.types("run", "-m", "casual", input="echo x > ~/made; cat ~/made\n", stdin=None)
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert (dweller.changes / "made").exists()
