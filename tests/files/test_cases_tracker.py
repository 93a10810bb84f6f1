"""The numbered cases of tracker: the working directory, the globs, and files under one writable glob."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import case
from corral.errors import PathEscape, PolicyError
from corral.paths.globs import check_globs, matches
from corral.paths.working import check_working_directory
from corral.policy import Policy

pytestmark = pytest.mark.jail


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session root, and beside it a place that is none of its business."""
    root = tmp_path / "session"
    (root / "work").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    return root


# ---- the working directory ----


@case("tracker-1", "tracker-2")
def test_a_directory_in_the_root_and_good_globs_are_accepted(session: Path) -> None:
    assert check_working_directory(str(session), str(session / "work")) == str(session / "work")
    assert check_working_directory(str(session), "work") == str(session / "work")
    assert check_working_directory(str(session), ".") == str(session)
    assert check_globs(["workspace/**"]) == ("workspace/**",)
    assert check_globs(["workspace/**", ".ai/sprints/**"]) == ("workspace/**", ".ai/sprints/**")


@case("tracker-3", "tracker-4")
@pytest.mark.parametrize("cwd", ["/tmp/atk", "{root}/../../etc", "..", "../elsewhere", "/", "{root}-beside"])
def test_a_directory_elsewhere_is_an_escape_that_names_working_dir(session: Path, cwd: str) -> None:
    with pytest.raises(PathEscape, match="working_dir") as caught:
        check_working_directory(str(session), cwd.format(root=session))
    assert caught.value.rule == "working_dir"
    assert caught.value.grant


@case("tracker-5")
def test_three_levels_that_are_missing_are_fine(session: Path) -> None:
    assert check_working_directory(str(session), "a/b/c") == str(session / "a/b/c")
    assert not (session / "a").exists()


@case("tracker-6", "tracker-7")
@pytest.mark.parametrize("cwd", ["link", "link/new", "link/new/er", "chain/new", "work/../link/new"])
def test_a_link_that_leads_out_is_an_escape_even_to_what_is_missing(session: Path, cwd: str) -> None:
    (session / "link").symlink_to(session.parent / "elsewhere")
    (session / "chain").symlink_to("link")
    with pytest.raises(PathEscape, match="working_dir"):
        check_working_directory(str(session), cwd)


@case("tracker-8")
def test_a_link_to_another_directory_inside_is_fine(session: Path) -> None:
    (session / "link").symlink_to("work")
    assert check_working_directory(str(session), "link") == str(session / "work")


@case("tracker-9")
def test_the_root_may_be_reached_by_a_link_and_the_directory_by_its_real_path(session: Path) -> None:
    alias = session.with_name("alias")
    alias.symlink_to(session)
    assert check_working_directory(str(alias), str(session / "work")) == str(session / "work")
    assert check_working_directory(str(session), str(alias / "work")) == str(session / "work")
    assert check_working_directory(str(alias), str(session / "missing/x")) == str(session / "missing/x")
    (session / "out").symlink_to(session.parent / "elsewhere")
    with pytest.raises(PathEscape):  # a link on the way is seen although the root has two names
        check_working_directory(str(alias), str(session / "out/missing"))


def test_a_working_directory_that_cannot_be_looked_at_is_no_escape_but_refused(session: Path) -> None:
    (session / "loop").symlink_to("loop")
    for cwd in ("loop", "a\0b"):
        with pytest.raises(PolicyError, match="working_dir"):
            check_working_directory(str(session), cwd)


# ---- the globs ----


@case("tracker-10", "tracker-11")
def test_no_glob_and_an_empty_glob_are_plain_errors_and_none_is_the_whole_root() -> None:
    for globs in ([], [""]):
        with pytest.raises(PolicyError, match="empty") as caught:
            Policy.workspace_write(writable=globs)
        assert not isinstance(caught.value, PathEscape)
    assert Policy.workspace_write(writable=None).writable is None


@case("tracker-12", "tracker-13", "tracker-14", "tracker-15", "tracker-16", "tracker-23")
@pytest.mark.parametrize(
    "glob",
    ["/etc/**", "~/x", "~x", "../../etc/**", "workspace/../**", "C:\\foo\\**", "c:x", "\\\\srv\\x"],
)
def test_a_glob_that_wants_out_is_an_escape_wherever_it_stands(glob: str) -> None:
    for globs in ([glob], ["a/**", glob], [glob, "a/**"]):
        with pytest.raises(PathEscape):
            Policy.workspace_write(writable=globs)


@case("tracker-17", "tracker-18", "tracker-19", "tracker-20", "tracker-21", "tracker-23")
@pytest.mark.parametrize(
    ("glob", "message"),
    [
        ("workspace/*.{md", "brace expansion"),
        ("workspace/*.{md,yaml}", "brace expansion"),
        ("foo/**bar", "own path segment"),
        ("a/**/b/**/c", "only one"),
        ("work*/**", "metachars before"),
        ("work*/**/r.md", "metachars before"),
        ("workspace/foo[", "malformed"),
    ],
)
def test_a_malformed_glob_is_a_plain_error_wherever_it_stands(glob: str, message: str) -> None:
    for globs in ([glob], ["a/**", glob], [glob, "a/**"]):
        with pytest.raises(PolicyError, match=message) as caught:
            Policy.workspace_write(writable=globs)
        assert not isinstance(caught.value, PathEscape)


@case("tracker-22")
def test_two_stars_alone_in_front_and_in_between_are_accepted() -> None:
    globs = ("**", "**/report.md", "workspace/**/report.md")
    assert check_globs(globs) == globs


# glob, what it means, what it does not
MATCHES = [
    pytest.param(
        "workspace/**",
        ["workspace/a/b/c.txt", "workspace", "workspace/.hidden"],
        ["workspacex/a", "a/workspace/b", "workspac"],
        marks=case("tracker-24"),
    ),
    pytest.param("workspace/out.md", ["workspace/out.md"], ["workspace/other.md"], marks=case("tracker-25")),
    pytest.param(
        "workspace/*.md",
        ["workspace/foo.md", "workspace/.md"],
        ["workspace/sub/foo.md", "workspace/foo.mdx"],
        marks=case("tracker-26"),
    ),
    pytest.param(
        "**/report.md",
        ["report.md", "a/b/report.md"],
        ["report.md/x", "xreport.md"],
        marks=case("tracker-27"),
    ),
    pytest.param("p/**/s", ["p/s", "p/x/y/s"], ["q/s", "p", "p/s/x"], marks=case("tracker-28")),
    pytest.param("**", ["..cache/x", "a", ".a/b"], [], marks=case("tracker-29")),
    ("a/b*/c", ["a/b/c", "a/bxx/c"], ["a/b/x/c", "a/c"]),
    ("[a-c]?", ["ax", "cz"], ["dx", "a", "axx", "a/"]),
    ("[^a]x", ["bx", "/x"], ["ax"]),
    ("[!a]", ["!", "a"], ["b"]),
    (r"a\*b", ["a*b"], ["axb"]),
    (r"out/a\b/**", ["out/ab/x"], ["out/a/b"]),
    ("*a*b*", ["ab", "xaybz", "aabb"], ["ba", "a/b"]),
    ("workspace", ["workspace"], ["workspace/x"]),
]


@pytest.mark.parametrize(("glob", "meant", "not_meant"), MATCHES)
def test_a_glob_means_what_the_table_says(glob: str, meant: list[str], not_meant: list[str]) -> None:
    (checked,) = check_globs([glob])
    assert [path for path in meant if not matches(checked, path)] == []
    assert [path for path in not_meant if matches(checked, path)] == []
