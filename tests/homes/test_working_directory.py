"""Where a run may take place, and what else it is given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cases import case
from cli.typed import CORRAL
from homes.dweller import Dweller

pytestmark = pytest.mark.jail

MODES = ("casual", "bare", "strict")


@case("jai-22")
def test_home_itself_is_no_project_unless_it_is_the_copy(dweller: Dweller) -> None:
    said = dweller.is_refused("run", "-m", "casual", "true", cwd=dweller.home)
    assert "use -D" in said
    assert dweller.says("pwd; touch mark", "-D", cwd=dweller.home) == f"{dweller.home}\n"
    assert not (dweller.home / "mark").exists()
    assert "Corral's own" in dweller.is_refused("run", "-m", "casual", "-D", "-d", "~", "true")


@case("jai-22")
@pytest.mark.parametrize("mode", MODES)
def test_home_itself_may_be_granted_where_nothing_of_ours_lies_in_it(dweller: Dweller, mode: str) -> None:
    dweller.variables["CORRAL_CONFIG_DIR"] = str(dweller.world.base / "config")
    home = str(dweller.home)
    assert "use -D" in dweller.is_refused("run", "-m", mode, "true", cwd=home)
    line = "echo real > ~/mark; cat ~/.ssh/id_test 2>/dev/null || echo hidden"
    assert dweller.says(line, "-D", "-d", home, mode=mode, cwd=home) == "hidden\n"
    assert (dweller.home / "mark").read_text() == "real\n"


@case("jai-23")
def test_home_reached_by_another_name_is_home(dweller: Dweller) -> None:
    link = dweller.world.base / "link"
    link.symlink_to(dweller.home)
    dweller.variables["HOME"] = str(link)
    for where in (dweller.home, link):
        assert "use -D" in dweller.is_refused("run", "-m", "casual", "true", cwd=where)
    assert dweller.says("echo ok") == "ok\n"


@case("jai-24")
def test_a_directory_above_home_is_no_project(dweller: Dweller) -> None:
    for where in (dweller.world.base, Path("/")):
        for mode in MODES:
            dweller.is_refused("run", "-m", mode, "true", cwd=where)


@case("jai-25")
def test_a_directory_of_somebody_else_is_no_project(dweller: Dweller) -> None:
    assert "/etc is not yours" in dweller.is_refused("run", "-m", "casual", "true", cwd="/etc")
    assert dweller.says("pwd; touch x 2>/dev/null || echo read-only", "-D", cwd="/etc") == "/etc\nread-only\n"


@case("jai-26")
def test_a_project_outside_home_is_writable_and_its_neighbours_are_not(dweller: Dweller) -> None:
    outside = dweller.world.base / "elsewhere"
    (outside / "p").mkdir(parents=True)
    (outside / "q").mkdir()
    assert dweller.says("touch f; touch ../q/f 2>/dev/null || echo no", cwd=outside / "p") == "no\n"
    assert (outside / "p/f").exists()
    assert not (outside / "q/f").exists()


@case("jai-27")
def test_a_project_reached_by_a_link_is_the_directory_itself(dweller: Dweller) -> None:
    link = dweller.home / "link"
    link.symlink_to(dweller.project)
    assert dweller.says("pwd; echo $PWD; touch f", cwd=link) == f"{dweller.project}\n" * 2
    assert (dweller.project / "f").exists()


@case("jai-28")
def test_a_working_directory_that_is_gone_is_one_line(dweller: Dweller) -> None:
    gone = dweller.home / "gone"
    gone.mkdir()
    script = 'rmdir "$1"; shift; exec "$@"'
    command = ["sh", "-c", script, "sh", str(gone), CORRAL, "run", "-m", "casual", "true"]
    done = subprocess.run(command, cwd=gone, env=dweller.variables, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("corral: the working directory is gone")
    assert done.stderr.count("\n") == 1


@case("jai-29")
def test_a_grant_that_is_missing_is_refused_made_or_left_out_as_it_says(dweller: Dweller) -> None:
    missing = dweller.home / "missing"
    assert str(missing) in dweller.is_refused("run", "-m", "casual", "-d", str(missing), "true")
    assert dweller.says("echo ok", "--ro-optional", str(missing)) == "ok\n"
    dweller.says(f"touch {missing}/f", "--rw-create", str(missing))
    assert (missing / "f").exists()
    assert dweller.says("cat ~/.profile", "--ro-optional", str(dweller.home / ".profile")) == "plain"


@case("jai-30")
@pytest.mark.parametrize("mode", MODES)
def test_a_grant_may_be_a_file(dweller: Dweller, mode: str) -> None:
    file = dweller.home / "outside/victim"
    dweller.says(f"echo more >> {file}", "-d", str(file), mode=mode)
    assert file.read_text() == "untouchedmore\n"


@case("jai-31")
@pytest.mark.parametrize("mode", MODES)
def test_a_read_only_part_of_the_project_whatever_the_order_of_options(dweller: Dweller, mode: str) -> None:
    (dweller.project / ".git").mkdir()
    extra = dweller.home / "granted"
    line = "touch f; touch .git/f 2>/dev/null || echo read-only"
    for options in (["-r", ".git", "-d", str(extra)], ["-d", str(extra), "-r", ".git"]):
        assert dweller.says(line, *options, mode=mode) == "read-only\n"
    assert list((dweller.project / ".git").iterdir()) == []


@case("jai-32")
@pytest.mark.parametrize("mode", MODES)
def test_a_project_in_a_read_only_place_is_writable(dweller: Dweller, mode: str) -> None:
    source = dweller.home / "src"
    (source / "p").mkdir(parents=True)
    (source / "q").mkdir()
    line = "touch f; touch ../q/f 2>/dev/null || echo read-only; ls .."
    assert dweller.says(line, "-r", str(source), mode=mode, cwd=source / "p") == "read-only\np\nq\n"
    assert (source / "p/f").exists()


@case("jai-32")
@pytest.mark.parametrize("mode", MODES)
def test_grants_nest_as_deep_as_one_likes(dweller: Dweller, mode: str) -> None:
    (dweller.project / "a/b/c/d").mkdir(parents=True)
    line = "for place in . a a/b a/b/c a/b/c/d; do touch $place/made 2>/dev/null && echo $place; done; true"
    options = ["-d", "a/b/c", "-r", "a/b/c/d", "-r", "a"]
    assert dweller.says(line, *options, mode=mode) == ".\na/b/c\n"
    assert dweller.says(line, "-r", ".", "-d", "a/b", mode=mode) == "a/b\na/b/c\na/b/c/d\n"
    assert dweller.says(line, "-d", "a/b", mode=mode) == ".\na\na/b\na/b/c\na/b/c/d\n"


@case("jai-35")
@pytest.mark.parametrize("name", ["a b", "a\nb", "a:b", "a,b", "a\\b", 'a"b', os.fsdecode(b"a\xffb")])
def test_odd_names_of_projects_and_grants_work(dweller: Dweller, name: str) -> None:
    project, granted = dweller.home / name, dweller.home / "outside" / name
    project.mkdir()
    granted.mkdir()
    options = ["--setenv", f"G={granted}", "-d", str(granted)]
    dweller.says('touch here "$G/there" ~/new', *options, cwd=project)
    assert (project / "here").exists()
    assert (granted / "there").exists()
    assert not (dweller.home / "new").exists()


@case("jai-36")
def test_a_deep_project_works_and_one_that_is_too_deep_is_one_line(dweller: Dweller) -> None:
    deep = dweller.home.joinpath(*["d" * 50] * 18)
    deep.mkdir(parents=True)
    dweller.says("touch f", cwd=deep)
    assert (deep / "f").exists()
    said = dweller.is_refused("run", "-m", "casual", "--cd", "/" + "x/" * 2100, "true")
    assert "too long" in said.lower()


@case("jai-37")
def test_a_project_whose_way_was_replaced_by_a_link_inside_is_refused(dweller: Dweller) -> None:
    (dweller.home / "way/p").mkdir(parents=True)
    dweller.says("rm -rf ~/way; ln -s /etc ~/way", "-j", "one")
    said = dweller.runs("touch f", "-j", "one", cwd=dweller.home / "way/p")
    assert said.returncode == 125
    assert said.stderr.count("\n") == 1
    assert dweller.says("touch f; echo ok", "-j", "two", cwd=dweller.home / "way/p") == "ok\n"
    assert (dweller.home / "way/p/f").exists()


def test_a_project_whose_way_was_removed_inside_is_there_again(dweller: Dweller) -> None:
    (dweller.home / "way/p").mkdir(parents=True)
    dweller.says("rm -rf ~/way", "-j", "one")
    assert dweller.says("touch f; ls ~/way", "-j", "one", cwd=dweller.home / "way/p") == "p\n"
    assert (dweller.home / "way/p/f").exists()
