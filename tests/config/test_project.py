"""A project's corral.toml tightens what the user allows. It never loosens, and it never sets what is the user's."""

from __future__ import annotations

import pytest

from cases import case
from config.desk import Desk
from corral.config import load_policy
from corral.errors import ConfigError
from corral.policy import Grant, Limits, Policy

# user's file, project's file, the field, what it then is
TIGHTER: list[tuple[str, str, str, object]] = [
    ("", 'mode = "read-only"', "mode", "read-only"),
    ("", '[sandbox]\nmode = "read-only"', "mode", "read-only"),
    ('mode = "off"', 'mode = "workspace-write"', "mode", "workspace-write"),
    ('mode = "off"', 'mode = "read-only"', "network", "off"),
    ('mode = "bare"', 'mode = "strict"', "mode", "strict"),
    ("", 'mode = "workspace-write"', "mode", "workspace-write"),
    ('writable = ["src/**"]', 'mode = "read-only"', "writable", None),
    ('network = "open"', 'network = "off"', "network", "off"),
    ("", 'network = "off"', "network", "off"),
    ('network = "open"', 'network = "open"', "network", "open"),
    ("", 'writable = ["src/**"]', "writable", ("src/**",)),
    (
        'writable = ["src/**", "out/**"]',
        'writable = ["src/lib/**", "out/*.md"]',
        "writable",
        ("src/lib/**", "out/*.md"),
    ),
    ('writable = ["src/**", "a.md"]', 'writable = ["a.md"]', "writable", ("a.md",)),
    ('mode = "read-only"', 'writable = ["src/**"]', "writable", None),
    ('rw = ["/a"]', 'hide = ["secret"]', "grants", (Grant.rw("/a"), Grant.hide("secret"))),
    ('hide = ["secret"]', 'hide = ["secret"]', "grants", (Grant.hide("secret"),)),
    ('demand = ["keys"]', 'demand = ["metadata"]', "demands", ("keys", "metadata")),
    ('sensitive = ["*.pem"]', 'sensitive = ["own"]', "sensitive", ("*.pem", "own")),
    ("", 'limits.wall = "30s"', "limits", Limits(wall=30)),
    ('limits.wall = "60s"', "[limits]\nwall = 30\nprocesses = 64", "limits", Limits(wall=30, processes=64)),
    ("", 'output-limit = "1M"', "output_limit", 1024 * 1024),
    ("shared-memory = true", "shared-memory = false", "shared_memory", False),
]


@pytest.mark.parametrize(("user", "theirs", "field", "expected"), TIGHTER)
def test_a_project_may_tighten(desk: Desk, user: str, theirs: str, field: str, expected: object) -> None:
    desk.user(user)
    before = load_policy()
    desk.theirs(theirs)
    loaded = desk.load()
    assert getattr(loaded.policy, field) == expected
    assert loaded.files == (str(desk.user_file), str(desk.project_file))
    is_said = any("the project tightens" in notice for notice in loaded.notices)
    assert is_said == (loaded.policy != before)


def test_what_the_project_does_not_name_stays_the_users(desk: Desk) -> None:
    desk.user(
        'rw = ["/a"]\nenvironment.rules = ["drop X", "set Y=1"]\nunix-sockets = true\nunhide = [".npmrc"]'
    )
    before = load_policy()
    desk.theirs('limits.wall = "5s"')
    assert desk.load().policy == before.replace(limits=Limits(wall=5))


# user's file, project's file, line, what the message says
LOOSER: list[tuple[str, str, int, str]] = [
    ("", '\nnetwork = "open"', 2, 'network = "open" would loosen the user\'s "off"'),
    ('mode = "read-only"', 'mode = "workspace-write"', 1, 'would loosen the user\'s "read-only"'),
    ("", 'demand = ["keys"]\nmode = "off"', 2, 'mode = "off" would loosen'),
    ("", '[sandbox]\nmode = "off"', 2, "would loosen"),
    ('mode = "casual"', 'mode = "workspace-write"', 1, "not a tighter form of the user's casual"),
    ("limits.wall = 30", '[limits]\nwall = "31s"', 2, "limits.wall = 31 would loosen the user's 30"),
    ("limits.wall = 30", '[limits]\ncpu = 3\nwall = "none"', 3, 'limits.wall = "none" would loosen'),
    ("", "limits.processes = 5000", 1, "would loosen the user's 4096"),
    ("", 'output-limit = "11M"', 1, "would loosen"),
    ("", "shared-memory = true", 1, "would loosen the user's false"),
    ('writable = ["src/**"]', 'writable = [\n"src/a",\n"lib/**"]', 3, 'writable "lib/**" lies outside'),
    ('writable = ["src/*"]', 'writable = ["src/**"]', 1, "lies outside"),
]


@case("peers-L5")
@pytest.mark.parametrize(("user", "theirs", "line", "part"), LOOSER)
def test_a_project_that_would_loosen_is_refused(
    desk: Desk, user: str, theirs: str, line: int, part: str
) -> None:
    desk.user(user)
    desk.theirs(theirs)
    message = desk.refusal(desk.project_file, line)
    assert part in message
    assert "may only tighten" in message


FORBIDDEN = {
    "require": "require = true",
    "sandbox.require": "sandbox.require = true",
    "sandbox.extra_writable": 'sandbox.extra_writable = ["/x"]',
    "roots": 'roots = ["/x"]',
    "rw": 'rw = ["/x"]',
    "ro": 'ro = ["/x"]',
    "grant": '[[grant]]\npath = "x"\naccess = "hide"',
    "unhide": 'unhide = [".ssh"]',
    "backend": 'backend = "landlock"',
    "unix-sockets": "unix-sockets = false",
    "trust-prefix": "trust-prefix = false",
    "approval.allow": 'approval.allow = ["git"]',
    "environment": '[environment]\nrules = ["drop X"]',
    "env": "env.X = 1",
    "variables": "variables = {}",
    "setenv": 'setenv = ["X=1"]',
    "script": 'script = "x"',
    "scripts": 'scripts = ["x"]',
    "command": 'command = "x"',
    "commands": "commands = {}",
    "initjail": 'initjail = "x"',
    "storage": 'storage = "/x"',
    "profile": '[profile.x]\nmode = "off"',
}


@pytest.mark.parametrize("key", FORBIDDEN)
def test_what_is_the_users_alone_is_refused_by_name(desk: Desk, key: str) -> None:
    desk.theirs(f'network = "off"\n{FORBIDDEN[key]}\n')
    expected = f"{key} cannot be set by a project's file; only the user's config may"
    assert desk.refusal(desk.project_file, 2) == expected


@case("peers-L5")
def test_a_project_is_read_as_strictly_as_the_users_own(desk: Desk) -> None:
    for text, line, part in (
        ("netwrok = 1", 1, "(did you mean network?)"),
        ("network = 1", 1, "must be a string"),
        ('\nhide = ["a", "./a"]', 2, "already has a rule"),
        ('mode = "read-only"\nwritable = ["a/**"]', 2, "can never match"),
    ):
        desk.theirs(text)
        assert part in desk.refusal(desk.project_file, line)


def test_what_a_project_may_not_say_is_not_offered_to_it(desk: Desk) -> None:
    desk.theirs("backnd = 1")
    assert desk.refusal(desk.project_file, 1) == 'unknown key "backnd"'


def test_a_project_file_that_is_a_link_is_refused(desk: Desk) -> None:
    (desk.home / "x").write_text("")
    desk.project_file.symlink_to(desk.home / "x")
    with pytest.raises(ConfigError, match="is a symbolic link; a project's file must be a plain one"):
        desk.load()


def test_work_in_the_config_directory_does_not_take_it_for_a_project(desk: Desk) -> None:
    desk.user('rw = ["/a"]')
    assert load_policy(project=desk.config).grants == (Grant.rw("/a"),)


def test_a_project_without_a_file_changes_nothing(desk: Desk) -> None:
    assert desk.load().policy == Policy()
    assert load_policy(project=desk.project / "missing") == Policy()
