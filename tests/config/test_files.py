"""Files for a command and for a jail, what they include, and which of them decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import case
from config.desk import Desk
from corral.config import Loaded, load
from corral.errors import ConfigError
from corral.policy import Grant
from corral.variables import scrub


def refused(*, command: str | None = None, jail: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(command=command, jail=jail)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def wall(loaded: Loaded) -> float | None:
    return loaded.policy.limits.wall


# ---- which file ----


@case("jai-60")
def test_the_file_of_a_command_is_for_that_word_and_not_for_a_path(desk: Desk) -> None:
    desk.user("[limits]\nwall = 1")
    file = desk.writes("commands/make.toml", "[limits]\nwall = 2")
    assert wall(load(command="make")) == 2
    assert load(command="make").files == (str(desk.user_file), str(file))
    for other in ("/bin/make", "./make", "makes", ".", "..", "../commands/make", None):
        assert wall(load(command=other)) == 1


@case("jai-60")
def test_a_file_that_is_named_takes_the_place_of_both_and_must_be_there(desk: Desk, tmp_path: Path) -> None:
    desk.user('mode = "read-only"')
    desk.writes("commands/make.toml", "[limits]\nwall = 2")
    named = tmp_path / "named.toml"
    named.write_text("[limits]\nwall = 3")
    loaded = load(user=named, command="make")
    assert (wall(loaded), loaded.policy.mode, loaded.files) == (3, "workspace-write", (str(named),))
    with pytest.raises(ConfigError, match="no such config file"):
        load(user=tmp_path / "missing.toml", command="make")


def test_without_files_there_are_defaults_for_every_command_and_jail(desk: Desk) -> None:
    for command in (None, "make", "a b", "x\ny", "n" * 300, "nul\0"):
        loaded = load(command=command, jail=command)
        assert (loaded.files, loaded.given) == ((), ())


@case("jai-62")
def test_the_jail_decides_over_the_command_and_that_over_the_users_file(desk: Desk) -> None:
    desk.user('mode = "read-only"\nnetwork = "open"')
    assert load(command="make", jail="web").policy.mode == "read-only"
    desk.writes("commands/make.toml", 'mode = "workspace-write"')
    assert load(command="make", jail="web").policy.mode == "workspace-write"
    desk.writes("jails/web.toml", 'mode = "strict"')
    loaded = load(command="make", jail="web")
    assert (loaded.policy.mode, loaded.policy.network) == ("strict", "open")
    assert load(command="make", jail="other").policy.mode == "workspace-write"


def test_a_profile_lies_over_all_of_them_and_may_stand_in_any(desk: Desk) -> None:
    desk.user("[profile.quick]\nlimits.wall = 1")
    desk.writes("commands/make.toml", "[limits]\nwall = 2\n[profile.quick]\nnetwork = 'open'")
    loaded = load("quick", command="make")
    assert (wall(loaded), loaded.policy.network) == (1, "open")
    with pytest.raises(
        ConfigError, match=r"make.toml:3: no profile 'quik'; there is quick \(did you mean quick"
    ):
        load("quik", command="make")


def test_a_file_may_name_the_jail_and_the_command_line_decides(desk: Desk) -> None:
    desk.user('jail = "mine"')
    for name in ("mine", "web", "typed", "fallback"):
        desk.writes(f"jails/{name}.toml", f'[environment]\nrules = ["set JAIL={name}"]')

    def jail_of(**names: str) -> tuple[str | None, str]:
        loaded = load(**names)
        return loaded.policy.jail, scrub(loaded.policy.environment, {}).variables["JAIL"]

    assert jail_of() == ("mine", "mine")
    desk.writes("commands/make.toml", 'jail = "web"')
    assert jail_of(command="make", default_jail="fallback") == ("web", "web")
    assert jail_of(command="make", jail="typed")[1] == "typed"
    desk.user_file.unlink()
    assert jail_of(default_jail="fallback") == (None, "fallback")


@case("jai-61")
def test_the_file_of_a_jail_cannot_name_a_jail(desk: Desk) -> None:
    file = desk.writes("jails/web.toml", '\njail = "other"')
    assert refused(jail="web") == (
        f"{file}:2: jail cannot be set in a jail's own file, which is read for that jail"
    )
    shared = desk.writes("shared.toml", 'jail = "other"')
    desk.writes("jails/web.toml", 'include = ["../shared.toml"]')
    assert refused(jail="web").startswith(f"{shared}:1: jail cannot be set")
    desk.writes("commands/make.toml", 'include = ["../shared.toml"]')
    assert load(command="make").policy.jail == "other"


@pytest.mark.parametrize("name", ["", ".hidden", "-x", "a/b", "n" * 101])
def test_a_jails_name_is_one_plain_word(desk: Desk, name: str) -> None:
    desk.user(f"jail = {name!r}")
    assert refused().startswith(f"{desk.user_file}:1: jail cannot be: ")


@pytest.mark.parametrize(
    "line",
    [
        *(
            'jail = "x"',
            'storage = "/x"',
            'scripts = ["x"]',
            'initjail = "x"',
            'command = "x"',
            "desktop = true",
        ),
        *(
            'mask = ["x"]',
            'unmask = [".ssh"]',
            'include = ["x"]',
            'include-optional = ["x"]',
            'agent = "none"',
        ),
        '[agents.x]\nkeep = ["AWS_*"]',
    ],
)
def test_none_of_it_may_stand_in_a_projects_file(desk: Desk, line: str) -> None:
    desk.theirs(f"\n{line}")
    assert "cannot be set by a project's file" in desk.refusal(desk.project_file, 2)


def test_a_project_may_ask_for_review_and_not_take_it_back(desk: Desk) -> None:
    desk.theirs("review = true")
    assert desk.load().policy.review
    desk.user("review = true")
    desk.theirs("review = false")
    assert "would loosen" in desk.refusal(desk.project_file, 1)


# ---- includes ----


def test_what_is_included_lies_below_and_paths_begin_beside_the_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/base.toml").write_text(
        'include = ["more.toml"]\nmode = "strict"\n[limits]\nwall = 2'
    )
    (tmp_path / "elsewhere/more.toml").write_text('[limits]\nwall = 1\ncpu = 1\n[profile.p]\nnetwork = "off"')
    desk.user('include = ["../elsewhere/base.toml"]\nmode = "bare"')
    loaded = load("p")
    assert (loaded.policy.mode, loaded.policy.network) == ("bare", "off")
    assert (loaded.policy.limits.wall, loaded.policy.limits.cpu) == (2, 1)
    assert [Path(path).name for path in loaded.files] == ["more.toml", "base.toml", "corral.toml"]


def test_an_included_file_must_be_there_unless_that_is_said(desk: Desk) -> None:
    desk.user('\ninclude = [\n  "missing.toml",\n]')
    assert refused() == f"{desk.user_file}:3: includes {desk.config / 'missing.toml'}, which is not there"
    desk.user('include-optional = ["missing.toml"]\nmode = "strict"')
    assert load().policy.mode == "strict"


@case("jai-61")
def test_a_loop_of_includes_is_refused_with_both_places(desk: Desk) -> None:
    desk.user('mode = "off"\ninclude = ["b.toml"]')
    b = desk.writes("b.toml", '# first\n# second\ninclude = ["c.toml"]')
    c = desk.writes("c.toml", 'include = ["corral.toml"]')
    assert refused() == f"{c}:1: includes {desk.user_file}, which leads back here from {desk.user_file}:2"
    c.write_text('include = ["b.toml"]')
    assert refused() == f"{c}:1: includes {b}, which leads back here from {b}:3"
    c.write_text('include = ["c.toml"]')
    assert refused() == f"{c}:1: includes {c}, which leads back here from {c}:1"


def test_one_file_included_twice_is_read_once(desk: Desk) -> None:
    desk.writes("common.toml", '[environment]\nrules = ["set A=1"]')
    desk.writes("b.toml", 'include = ["common.toml"]')
    desk.user('include = ["b.toml", "common.toml"]')
    desk.writes("commands/make.toml", 'include = ["../common.toml"]')
    loaded = load(command="make")
    assert [Path(path).name for path in loaded.files] == ["common.toml", "b.toml", "corral.toml", "make.toml"]


def test_a_wrong_line_in_any_of_them_is_named_with_its_file(desk: Desk) -> None:
    included = desk.writes("b.toml", '\n\nmoed = "off"')
    desk.user('include = ["b.toml"]')
    assert refused() == f'{included}:3: unknown key "moed" (did you mean mode?)'
    desk.user("[profile.p]\ninclude = ['b.toml']")
    assert refused().startswith(f"{desk.user_file}:2: include stands at the top of a file")
    desk.user("include = 'b.toml'")
    assert "must be a list of strings" in refused()


# ---- settings that are no policy ----


@case("jai-65")
def test_scripts_of_all_files_come_in_order_and_each_once(desk: Desk) -> None:
    desk.user('scripts = ["one.sh", "~/two.sh"]')
    desk.writes("commands/make.toml", 'scripts = ["three.sh", "../one.sh"]')
    desk.writes("jails/web.toml", 'scripts = ["four.sh"]')
    assert load(command="make", jail="web").settings.scripts == (
        str(desk.config / "one.sh"),
        str(desk.home / "two.sh"),
        str(desk.config / "commands/three.sh"),
        str(desk.config / "jails/four.sh"),
    )


def test_later_files_decide_about_the_other_settings_and_can_take_them_back(desk: Desk) -> None:
    desk.user('initjail = "setup.sh"\ncommand = \'time "$0" "$@"\'\ndesktop = true\nstorage = "~/jails"')
    settings = load().settings
    assert (settings.initjail, settings.command, settings.desktop) == ("setup.sh", 'time "$0" "$@"', True)
    assert load().policy.storage == str(desk.home / "jails")
    desk.writes("jails/web.toml", 'initjail = "./setup"\ncommand = ""\ndesktop = false\nstorage = ""')
    settings = load(jail="web").settings
    assert (settings.initjail, settings.command, settings.desktop) == (
        str(desk.config / "jails/setup"),
        None,
        False,
    )
    assert load(jail="web").policy.storage is None


# ---- masks ----


@case("jai-18")
def test_mask_is_below_home_and_unmask_takes_it_back(desk: Desk) -> None:
    desk.user('mask = ["notes", "./.env", "~/deep/er"]')
    assert load().policy.grants == (Grant.hide("~/notes"), Grant.hide(".env"), Grant.hide("~/deep/er"))
    desk.writes("commands/make.toml", 'unmask = ["notes", "./.env", ".ssh"]')
    policy = load(command="make").policy
    assert (policy.grants, policy.unhide) == ((Grant.hide("~/deep/er"),), (".ssh",))


@case("jai-19")
def test_a_mask_is_no_absolute_path_and_does_not_go_upwards(desk: Desk) -> None:
    for name in ("/etc/passwd", "../x", "a/../../x", "./../x", ""):
        desk.user(f"\nmask = [{name!r}]")
        assert refused().startswith(f"{desk.user_file}:2: mask ")
    desk.user('mask = ["d"]\n[profile.p]\nunmask = ["d/child"]')
    assert refused().startswith(f'{desk.user_file}:3: "d/child" is never hidden')
    desk.user('unmask = [".ssh/config"]')
    assert "hidden together with all of .ssh" in refused()


@case("jai-33")
def test_a_later_file_takes_a_grant_back(desk: Desk) -> None:
    desk.user('rw = ["/srv/a", "/srv/b"]')
    desk.writes("commands/make.toml", '[[grant]]\npath = "/srv/a"\naccess = "none"')
    assert load(command="make").policy.grants == (Grant.rw("/srv/b"),)
