"""${VAR} in config files."""

from __future__ import annotations

import pytest

from cases import case
from config.desk import Desk
from corral.config import load
from corral.policy import Grant
from corral.variables import scrub


@case("jai-59")
def test_variables_stand_for_their_values_in_paths_and_in_what_is_set(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "/srv/place")
    monkeypatch.setenv("EMPTY", "")
    desk.writes("more.toml", "[limits]\nwall = 7")
    desk.user(
        'include = ["${CORRAL_CONFIG_DIR}/more.toml"]\n'
        'rw = ["${PLACE}/a", "${HOME}/${EMPTY}b"]\nhide = ["${HOME}/c"]\nmask = ["${EMPTY}d"]\n'
        'roots = ["${PLACE}"]\nstorage = "${HOME}/jails"\nscripts = ["${HOME}/s"]\n'
        '[[grant]]\npath = "${PLACE}/g"\naccess = "ro"\n'
        '[environment]\nrules = ["set WHERE=${PLACE}:${HOME}", "drop X"]\n'
    )
    loaded = load()
    policy = loaded.policy
    assert policy.limits.wall == 7
    assert policy.roots == ("/srv/place",)
    assert set(policy.grants) == {
        Grant.rw("/srv/place/a"),
        Grant.rw(f"{desk.home}/b"),
        Grant.hide(f"{desk.home}/c"),
        Grant.hide("~/d"),
        Grant.ro("/srv/place/g"),
    }
    assert (policy.storage, loaded.settings.scripts) == (f"{desk.home}/jails", (f"{desk.home}/s",))
    assert scrub(policy.environment, {}).variables["WHERE"] == f"/srv/place:{desk.home}"


def test_braces_are_needed_a_backslash_keeps_them_and_other_keys_have_none(desk: Desk) -> None:
    desk.user('rw = ["/a/$HOME", \'/b/\\${HOME}\']\ncommand = "echo ${HOME}"')
    loaded = load()
    assert loaded.policy.grants == (Grant.rw("/a/$HOME"), Grant.rw("/b/${HOME}"))
    assert loaded.settings.command == "echo ${HOME}"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (
            '\nrw = [\n"/a",\n"/${NOT_SET}/b"]',
            4,
            'rw needs the variable NOT_SET for "/${NOT_SET}/b", and it is not set',
        ),
        ('storage = "${NOT_SET}"', 1, "storage needs the variable NOT_SET"),
        ('include = ["${NOT_SET}"]', 1, "include needs the variable NOT_SET"),
        ('[[grant]]\naccess = "rw"\npath = "${NOT_SET}/x"', 3, "grant needs the variable NOT_SET"),
        (
            '[environment]\nrules = ["drop X",\n"set A=${NOT_SET}"]',
            3,
            "environment.rules needs the variable NOT_SET",
        ),
        ('rw = ["/${HOME"]', 1, "names no variable"),
        ('rw = ["/${}"]', 1, "names no variable"),
        ('rw = ["/${HO-ME}"]', 1, "names no variable"),
        ('rw = ["/${1X}"]', 1, "names no variable"),
    ],
)
def test_a_variable_that_is_not_set_is_refused_with_its_line(
    desk: Desk, text: str, line: int, why: str
) -> None:
    desk.user(text)
    assert why in desk.refusal(desk.user_file, line)


def test_a_projects_file_has_none(desk: Desk) -> None:
    desk.theirs('hide = ["a",\n"${HOME}/x"]')
    assert "which only the user's files may have" in desk.refusal(desk.project_file, 2)
    desk.theirs('hide = ["$HOME"]')
    assert desk.load().policy.grants == (Grant.hide("$HOME"),)
