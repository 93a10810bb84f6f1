"""Writable globs: ten checks in order, two classes of refusal, and the bound that a command gets."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import PathEscape, PolicyError, Refused
from corral.paths.globs import bound, check_globs
from corral.policy import Policy

ACCEPTED = [
    "workspace/**",
    ".ai/sprints/**",
    "**",
    "**/report.md",
    "workspace/**/report.md",
    "workspace/*.md",
    "workspace/out.md",
    "a/b*/c",
    "x.md",
    "work*",
    "workspace",
    "..cache/x",
    "a/...",
    "a/b..",
    ".hidden",
    "a b/c",
    "ä/ö",
    "a,b",
    "-rf",
    "[abc]/x",
    "[a-z]*",
    "[^a]x",
    "[^a-z0-9_]",
    "[!a]",
    r"a\*b",
    r"[\]]",
    r"[\-a]",
    r"[a\-z]",
    "a]b",
    "a?",
    "x~",
    "a/~",
    "ab:c",
    "1:x",
]
# glob, part of the message; first hit of the ten checks decides
ESCAPES = [
    ("/", "absolute"),
    ("/etc/**", "absolute"),
    ("~", "absolute"),
    ("~/x", "absolute"),
    ("~x", "absolute"),
    ("C:\\foo\\**", "absolute"),
    ("c:x", "absolute"),
    ("a:b", "absolute"),
    ("\\\\srv\\x", "absolute"),
    ("..", r"\.\."),
    ("../x", r"\.\."),
    ("../../etc/**", r"\.\."),
    ("./../x", r"\.\."),
    ("workspace/../**", r"\.\."),
    ("a/..", r"\.\."),
    ("a/b/../c", r"\.\."),
    (r".\./x", r"\.\."),
    (r"a/\.\./**", r"\.\."),
    # what is left without a leading ./ counts: it is what is kept and checked again
    ("./~x", "absolute"),
    ("./a:b", "absolute"),
    ("./\\\\srv", "absolute"),
    # an escape is named before what is malformed behind it
    ("/{", "absolute"),
    ("../{a", r"\.\."),
    ("../**/**", r"\.\."),
    ("~/[", "absolute"),
]
MALFORMED = [
    ("", "empty"),
    ("a\0b", "NUL|empty"),
    ("workspace/*.{md", "brace expansion"),
    ("workspace/*.{md,yaml}", "brace expansion"),
    ("a}", "brace expansion"),
    ("{**a", "brace expansion"),
    ("foo/**bar", "own path segment"),
    ("a**", "own path segment"),
    ("***", "own path segment"),
    ("**a/**/**", "own path segment"),
    ("a/**/b/**/c", "only one"),
    ("**/**", "only one"),
    ("w*/**/**", "only one"),
    ("work*/**", "metachars before"),
    ("work*/**/r.md", "metachars before"),
    ("a?/**", "metachars before"),
    ("a[b]/**", "metachars before"),
    ("a[/**", "metachars before"),
    ("workspace/foo[", "malformed"),
    ("foo[a", "malformed"),
    ("foo[]", "malformed"),
    ("foo[]a]", "malformed"),
    ("foo[^]", "malformed"),
    ("foo[^", "malformed"),
    ("foo[^]a]", "malformed"),
    ("foo[-a]", "malformed"),
    ("foo[a-]", "malformed"),
    ("foo[a-", "malformed"),
    (r"foo[a\]", "malformed"),
    ("foo[a-b-c]", "malformed"),
    ("foo\\", "malformed"),
    ("**/foo[", "malformed"),
]


@pytest.mark.parametrize("glob", ACCEPTED)
def test_everything_else_is_accepted(glob: str) -> None:
    assert check_globs([glob]) == (glob,)


@pytest.mark.parametrize(("glob", "message"), ESCAPES)
def test_a_glob_that_tries_to_get_out_is_an_escape(glob: str, message: str) -> None:
    with pytest.raises(PathEscape, match=message) as caught:
        check_globs([glob])
    assert isinstance(caught.value, Refused)
    assert isinstance(caught.value, PermissionError)
    assert (caught.value.path, caught.value.rule) == (glob, "writable")


@pytest.mark.parametrize(("glob", "message"), MALFORMED)
def test_a_glob_that_is_none_is_a_plain_error(glob: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        check_globs([glob])
    assert not isinstance(caught.value, PathEscape)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("glob", "cleaned"),
    [("./workspace/**", "workspace/**"), ("a//b", "a/b"), ("a/./b", "a/b"), ("a/", "a"), ("./", ".")],
)
def test_a_glob_is_cleaned(glob: str, cleaned: str) -> None:
    assert check_globs([glob]) == (cleaned,)


def test_an_empty_list_is_refused_and_none_means_the_whole_roots() -> None:
    with pytest.raises(PolicyError, match="empty"):
        check_globs([])
    with pytest.raises(PolicyError, match="empty"):
        Policy.workspace_write(writable=[])
    assert Policy.workspace_write().writable is None


def test_one_string_is_no_list() -> None:
    with pytest.raises(PolicyError, match=r"not one string: \['src/\*\*'\]"):
        check_globs("src/**")
    with pytest.raises(PolicyError, match="not one string"):
        Policy.workspace_write(writable="src/**")


@pytest.mark.parametrize("position", range(3))
def test_a_bad_glob_anywhere_in_a_list_refuses_it_with_its_own_class(position: int) -> None:
    good = ["a/**", "b/*.md"]
    assert check_globs(good) == ("a/**", "b/*.md")
    with pytest.raises(PathEscape):
        check_globs([*good[:position], "../x", *good[position:]])
    with pytest.raises(PolicyError, match="malformed"):
        check_globs([*good[:position], "x[", *good[position:]])


def test_shapes_are_refused_when_the_policy_is_built() -> None:
    with pytest.raises(PathEscape):
        Policy.workspace_write(writable=["../x"])
    assert Policy.workspace_write(writable=["./out/**"]).writable == ("out/**",)


# ---- bounds ----


@pytest.mark.parametrize(
    ("glob", "path", "is_literal"),
    [
        ("workspace/**", "workspace", False),
        ("workspace/*.md", "workspace", False),
        (".ai/sprints/**", ".ai/sprints", False),
        ("a/b*/c", "a", False),
        ("a/b?", "a", False),
        ("a/[b]/c", "a", False),
        ("a/**/c", "a", False),
        ("workspace/out.md", "workspace/out.md", True),
        ("x.md", "x.md", True),
        ("workspace", "workspace", True),
        (r"out/a\b", "out/ab", True),
        (r"out/a\\b", r"out/a\b", True),
        ("**", ".", False),
        ("**/report.md", ".", False),
        ("work*", ".", False),
        (".", ".", True),
    ],
)
def test_a_command_is_bound_to_the_directory_before_the_first_pattern(
    glob: str, path: str, is_literal: bool
) -> None:
    assert bound(glob) == (path, is_literal)


segments = st.lists(st.text("ab.*?[]^-\\~{}:/", max_size=4), min_size=1, max_size=4)


@given(segments)
def test_no_accepted_glob_is_bound_outside_the_workspace(parts: list[str]) -> None:
    try:
        (glob,) = check_globs(["/".join(parts)])
    except (PolicyError, PathEscape):
        return
    path, _ = bound(glob)
    assert not path.startswith("/")
    assert posixpath.normpath(posixpath.join("/anchor", path)).startswith("/anchor")


@given(st.lists(st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,5}", fullmatch=True), min_size=1, max_size=4))
def test_a_literal_path_is_accepted_and_bound_to_itself(parts: list[str]) -> None:
    glob = "/".join(parts)
    assert bound(check_globs([glob])[0]) == (glob, True)


@given(segments)
def test_checking_twice_changes_nothing(parts: list[str]) -> None:
    try:
        once = check_globs(["/".join(parts)])
    except (PolicyError, PathEscape):
        return
    assert check_globs(once) == once
