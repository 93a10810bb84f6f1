"""What a user's corral.toml can say, and what it cannot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from config.desk import PROPERTY, Desk
from corral.config import load, load_policy
from corral.config.schema import KEYS
from corral.errors import ConfigError
from corral.policy import Grant, Limits, Policy
from corral.variables import EnvRule, default_rules

G = 1024**3
TOP_KEYS = tuple(dict.fromkeys(key.split(".")[0] for key in KEYS))


def test_without_files_the_policy_is_the_default(desk: Desk) -> None:
    loaded = desk.load()
    assert loaded.policy == Policy()
    assert (loaded.files, loaded.notices, loaded.given) == ((), (), ())


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("", "mode", "workspace-write"),
        ('mode = "read-only"', "mode", "read-only"),
        ('mode = "casual"', "network", "open"),
        ('network = "open"', "network", "open"),
        ('writable = ["src/**", "./out/*.md"]', "writable", ("src/**", "out/*.md")),
        ('roots = ["/srv/a/", "/srv/b"]', "roots", ("/srv/a", "/srv/b")),
        ('rw = ["~/x"]', "grants", (Grant.rw("~/x"),)),
        ('ro = ["x"]\nrw = ["y"]', "grants", (Grant.ro("x"), Grant.rw("y"))),
        ('hide = ["x"]', "grants", (Grant.hide("x"),)),
        ('[[grant]]\npath = "x"\naccess = "rw"', "grants", (Grant.rw("x"),)),
        ('grant = [{path = "x", access = "ro", missing = "skip"}]', "grants", (Grant.ro("x", "skip"),)),
        ('[[grant]]\npath = "x"\naccess = "hide"', "grants", (Grant.hide("x"),)),
        ('unhide = ["~/.npmrc", ".ssh"]', "unhide", (".npmrc", ".ssh")),
        ('unhide = ["/etc/ssl/private"]', "unhide", ("/etc/ssl/private",)),
        ("wide-globs = true", "wide_globs", True),
        ('sensitive = ["*.pem", "id_rsa"]', "sensitive", ("*.pem", "id_rsa")),
        ('demand = ["metadata", "keys"]', "demands", ("metadata", "keys")),
        ("require = false", "require", False),
        ('backend = "landlock"', "backend", "landlock"),
        ("unix-sockets = true", "unix_sockets", True),
        ("shared-memory = true", "shared_memory", True),
        ("trust-prefix = true", "trust_prefix", True),
        ('output-limit = "64K"', "output_limit", 65536),
        ("output-limit = 1000", "output_limit", 1000),
        ('[limits]\nwall = "90s"\ncpu = "2m"', "limits", Limits(wall=90, cpu=120)),
        ('limits.wall = 1.5\nlimits.memory = "1.5G"', "limits", Limits(wall=1.5, memory=3 * G // 2)),
        (
            'limits = {processes = "none", file-size = "2GiB"}',
            "limits",
            Limits(processes=None, file_size=2 * G),
        ),
        ('[limits]\nopen-files = 64\nwall = "250ms"', "limits", Limits(open_files=64, wall=0.25)),
        ('[sandbox]\nmode = "read-only"', "mode", "read-only"),
        ("[sandbox]\nrequire = false", "require", False),
        ('[sandbox]\nextra_writable = ["/srv"]', "grants", (Grant.rw("/srv", "skip"),)),
    ],
)
def test_a_key_sets_its_field(desk: Desk, text: str, field: str, expected: object) -> None:
    desk.user(text)
    assert getattr(load_policy(), field) == expected


def test_environment_rules_come_after_the_defaults(desk: Desk) -> None:
    desk.user('[environment]\nrules = ["drop CI_*", "keep MY_TOKEN", "set GREETING=a = b", "set EMPTY="]')
    own = (
        EnvRule("drop", "CI_*"),
        EnvRule("keep", "MY_TOKEN"),
        EnvRule("set", "GREETING", "a = b"),
        EnvRule("set", "EMPTY"),
    )
    assert load_policy().environment == (*default_rules(), *own)


def test_a_root_below_home_is_expanded(desk: Desk) -> None:
    desk.user('roots = ["~/work"]')
    assert load_policy().roots == (f"{desk.home}/work",)


def test_loaded_says_what_was_read_and_what_was_set(desk: Desk) -> None:
    desk.user('mode = "off"\nlimits.wall = 5\n[sandbox]\nrequire = false\n')
    loaded = desk.load()
    assert loaded.files == (str(desk.user_file),)
    assert loaded.given == ("mode", "limits", "require")
    assert [n.split(": ", 1)[1].split(":")[0] for n in loaded.notices] == ["mode is off", "require is false"]


def test_another_file_can_be_named(desk: Desk) -> None:
    desk.user('mode = "off"')
    other = desk.home / "other.toml"
    other.write_text('mode = "read-only"')
    assert load_policy(user=other).mode == "read-only"
    with pytest.raises(ConfigError, match=r"missing\.toml: no such config file"):
        load_policy(user=desk.home / "missing.toml")


# ---- profiles ----

PROFILES = """
mode = "workspace-write"
writable = ["src/**"]
rw = ["/a", "/b"]
hide = ["secret"]
limits.wall = "1m"
environment.rules = ["drop FOO"]

[profile.look]
mode = "read-only"

[profile.wide]
network = "open"
writable = ["out/**"]
ro = ["/a"]
unhide = ["secret"]
limits.wall = "none"
environment.rules = ["keep FOO"]
[[profile.wide.grant]]
path = "/b/"
access = "none"
"""


def test_a_profile_lies_over_the_rest_of_the_file(desk: Desk) -> None:
    desk.user(PROFILES)
    wide = load_policy("wide")
    assert (wide.network, wide.writable, wide.limits.wall) == ("open", ("out/**",), None)
    assert wide.grants == (Grant.ro("/a"),)
    assert wide.environment[-2:] == (EnvRule("drop", "FOO"), EnvRule("keep", "FOO"))
    plain = load_policy()
    assert (plain.network, plain.writable, plain.limits.wall) == ("off", ("src/**",), 60)
    assert plain.grants == (Grant.rw("/a"), Grant.rw("/b"), Grant.hide("secret"))


def test_a_read_only_profile_leaves_the_globs_behind(desk: Desk) -> None:
    desk.user(PROFILES)
    look = load_policy("look")
    assert (look.mode, look.writable) == ("read-only", None)


def test_an_unknown_profile_is_refused_with_the_nearest(desk: Desk) -> None:
    desk.user(PROFILES)
    assert desk.refusal(desk.user_file, 9, "wid") == (
        "no profile 'wid'; there is look, wide (did you mean wide?)"
    )


def test_a_profile_without_a_config_is_refused(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="is not there, so there is no profile 'x'"):
        load("x")


# ---- refusals ----

# The text, the line that is wrong, and what the message must hold; the last of it is the name that was meant.
WRONG: list[tuple[str, int, tuple[str, ...]]] = [
    # unknown keys
    ('mode = "off"\n\nmoed = "off"', 3, ('unknown key "moed"', "(did you mean mode?)")),
    ("Network = 1", 1, ('unknown key "Network"', "(did you mean network?)")),
    ("unix_sockets = true", 1, ("(did you mean unix-sockets?)",)),
    ('wall = "3s"', 1, ("(did you mean limits.wall?)",)),
    ("timeout = 3", 1, ("(did you mean limits.wall?)",)),
    ('deny = ["x"]', 1, ("(did you mean hide?)",)),
    ('extra_writable = ["/x"]', 1, ("(did you mean sandbox.extra_writable?)",)),
    ('[limits]\nwall = "3s"\nmemry = "3G"', 3, ('"memry" in [limits]', "(did you mean memory?)")),
    ("[limit]\nwall = 3", 1, ("(did you mean limits?)",)),
    ('[sandbox]\nextra-writable = ["/x"]', 2, ("(did you mean extra_writable?)",)),
    ('[sandbox]\nnetwork = "off"', 2, ('"network" in [sandbox]', "(did you mean network?)")),
    ('[environment]\nrule = ["drop X"]', 2, ("(did you mean rules?)",)),
    (
        '[[grant]]\npath = "/x"\naccess = "rw"\n\n[[grant]]\npath = "/y"\naces = "rw"',
        7,
        ("(did you mean access?)",),
    ),
    ("[profile.a]\n[profile.b]\nmod = 1", 3, ('unknown key "mod"', "(did you mean mode?)")),
    ('[profile.a.profile.b]\nmode = "off"', 1, ('unknown key "profile"',)),
    ('"od\\u0007d" = 1', 1, ("unknown key",)),
    # wrong types
    ("mode = 3", 1, ("mode must be a string, not a whole number",)),
    ("\nrequire = 'no'", 2, ("require must be true or false, not a string",)),
    ("require = 0", 1, ("require must be true or false, not a whole number",)),
    ('writable = "src/**"', 1, ("must be a list of strings", '(did you mean ["src/**"]?)')),
    ('rw = [\n  "/a",\n  # why\n  3,\n]', 4, ("rw must be a string, not a whole number",)),
    ("mode = 2020-01-01", 1, ("not a date or time",)),
    ("limits = 3", 1, ("limits is a table (did you mean [limits]?)",)),
    ('[grant]\npath = "/x"', 1, ("(did you mean [[grant]]?)",)),
    ('profile = "x"', 1, ("(did you mean [profile.NAME]?)",)),
    ('profile.mode = "off"', 1, ("(did you mean [profile.NAME]?)",)),
    ("[limits]\nprocesses = true", 2, ("limits.processes must be a whole number, not true or false",)),
    ("[limits]\nprocesses = 0", 2, ("above 0",)),
    ("[limits]\nprocesses = -4", 2, ("above 0",)),
    ("[limits]\nprocesses = 99999999999999999999", 2, ("limits.processes must be a whole number",)),
    ("[limits]\nwall = inf", 2, ("finite",)),
    ("[limits]\nwall = nan", 2, ("finite",)),
    ('[limits]\nwall = "fast"', 2, ('"fast" is not a duration, like "30s"',)),
    ('[limits]\nwall = "5 sec"', 2, ("(did you mean 5s?)",)),
    ("[limits]\ncpu = 1.5", 2, ("whole seconds",)),
    ('[limits]\nmemory = "2GB"', 2, ("(did you mean 2G?)",)),
    ('[limits]\nmemory = "1.5"', 2, ("whole number",)),
    ('output-limit = "none"', 1, ("never kept without bound",)),
    ('rw = [""]', 1, ("must be a path",)),
    ('roots = ["work"]', 1, ("absolute",)),
    ('[[grant]]\npath = "x"', 1, ("a grant needs access",)),
    ('[[grant]]\naccess = "rw"\npath = 3', 3, ("path must be a string",)),
    # unknown words
    ('mode = "readonly"', 1, ('unknown mode "readonly"', "(did you mean read-only?)")),
    ('[sandbox]\nmode = "workspace_write"', 2, ("(did you mean workspace-write?)",)),
    ('network = "opn"', 1, ("(did you mean open?)",)),
    ('backend = "landlok"', 1, ("(did you mean landlock?)",)),
    ('demand = ["keys",\n"metdata"]', 2, ('unknown claim "metdata"', "(did you mean metadata?)")),
    ('[[grant]]\npath = "x"\naccess = "hid"', 3, ("(did you mean hide?)",)),
    ('[[grant]]\npath = "x"\naccess = "rw"\nmissing = "crate"', 4, ("(did you mean create?)",)),
    # duplicates
    ('mode = "off"\nmode = "off"', 2, ("a key is set twice",)),
    ('mode = "off"\n[sandbox]\nmode = "off"', 3, ("sandbox.mode is already set as mode (line 1)",)),
    ("[limits]\nwall = 1\n[sandbox]\n[limits]", 4, ("twice",)),
    ('rw = ["/a",\n"/a"]', 2, ("twice",)),
    ('demand = ["keys", "keys"]', 1, ("twice",)),
    ('sensitive = ["ok",\n"a/b"]', 2, ("is one name of a path",)),
    ('sensitive = ["x["]', 1, ("is malformed",)),
    ('sensitive = "*.pem"', 1, ('must be a list of strings, not one string (did you mean ["*.pem"]?)',)),
    ('writable = ["a/**",\n"./a/**"]', 2, ("twice",)),
    ('rw = ["/a"]\nro = ["/a/"]', 2, ("already has a rule on line 1",)),
    ('rw = ["/a"]\nhide = ["/b", "/a"]', 2, ("already has a rule on line 1",)),
    ('[[grant]]\npath = "a"\naccess = "rw"\n[[grant]]\npath = "./a"\naccess = "ro"', 4, ("on line 1",)),
    # rules that can never match
    ('environment.rules = ["drop A",\n"keep A"]', 1, ('"drop A" can never matter', "(line 2)")),
    ('environment.rules = ["keep A_TOKEN",\n"drop A_*"]', 1, ('"drop A_*" after it',)),
    ('environment.rules = ["drop A", "drop A"]', 1, ("twice",)),
    ('environment.rules = ["set A=1",\n"drop A"]', 1, ('"set A=1" can never matter',)),
    (
        'environment.rules = [\n"drop X_*",\n"keep EDITOR"]',
        3,
        ('"keep EDITOR"', "what is not dropped is kept"),
    ),
    ('environment.rules = ["drop A=b"]', 1, ("can never match", "(did you mean set A=b?)")),
    ('environment.rules = ["drop A B"]', 1, ("can never match",)),
    ('environment.rules = ["drop A?"]', 1, ("only * and",)),
    ('environment.rules = ["set A"]', 1, ("(did you mean set A=VALUE?)",)),
    ('environment.rules = ["set A*=1"]', 1, ("one name",)),
    ('environment.rules = ["drpo A"]', 1, ("(did you mean drop?)",)),
    ('environment.rules = ["drop"]', 1, ("not a variable name",)),
    ("environment.rules = [3]", 1, ("must be strings",)),
    ('unhide = ["~/.npmrc",\n"~/.nmprc"]', 2, ("is never hidden", "(did you mean .npmrc?)")),
    ('unhide = ["~/.ssh/known_hosts"]', 1, ("hidden together", "(did you mean .ssh?)")),
    ('hide = ["~/.ssh"]\nunhide = ["~/.ssh"]', 2, ("can never matter: line 1 hides it",)),
    ('[[grant]]\npath = "/a"\naccess = "none"', 1, ("nothing to take back",)),
    (
        'rw = ["/srv/a"]\n[[profile.x.grant]]\npath = "/srv/b"\naccess = "none"',
        2,
        ("(did you mean /srv/a?)",),
    ),
    ('mode = "read-only"\nwritable = ["a/**"]', 2, ("can never match", "(did you mean workspace-write?)")),
    ('writable = ["a/**",\n"/b/**"]', 2, ("escapes the workspace",)),
    ('writable = ["../b"]', 1, ("escapes the workspace",)),
    ('writable = ["a/{b,c}"]', 1, ("brace expansion",)),
    ('writable = ["a/**b"]', 1, ("its own path segment",)),
    ("writable = []", 1, ("leave it out",)),
    # syntax
    ("mode = off", 1, ("strings need quotes",)),
    ('mode = "off"\n= 3', 2, ("column",)),
    ("\n\nrw = [", 3, ("the file ends there",)),
    ("a = 1\n" + "x = " + "9" * 5000, 2, ("too long",)),
    ("a = " + "[" * 3000, 1, ("nested too deeply",)),
    ("\ufeffmode = 'off'", 1, ("byte order mark",)),
]


@case("peers-L5")
@pytest.mark.parametrize(("text", "line", "parts"), WRONG, ids=[text[:30] for text, _, _ in WRONG])
def test_a_wrong_config_is_refused_with_file_line_and_the_nearest_name(
    desk: Desk, text: str, line: int, parts: tuple[str, ...]
) -> None:
    desk.user(text)
    message = desk.refusal(desk.user_file, line)
    for part in parts:
        assert part in message
    assert not parts[-1].startswith("(did") or message.endswith(parts[-1])


@case("peers-L5")
def test_a_profile_that_nobody_asked_for_is_checked_too(desk: Desk) -> None:
    desk.user('[profile.good]\nmode = "read-only"\n[profile.bad]\nmode = "read-onl"')
    assert "(did you mean read-only?)" in desk.refusal(desk.user_file, 4, "good")


def test_invalid_utf8_is_refused_with_its_line(desk: Desk) -> None:
    desk.user_file.write_bytes(b"mode = 'off'\n# caf\xe9\n")
    assert desk.refusal(desk.user_file, 2) == "is not valid UTF-8"


def test_windows_line_ends_change_nothing(desk: Desk) -> None:
    desk.user_file.write_bytes(b'mode = "off"\r\nrw = [\r\n"/a",\r\n3]\r\n')
    assert desk.refusal(desk.user_file, 4) == "rw must be a string, not a whole number"


# ---- files that are none ----


def refused_file(desk: Desk) -> str:
    with pytest.raises(ConfigError) as caught:
        desk.load()
    message = str(caught.value)
    assert message.startswith(f"{desk.user_file}: ")
    assert "\n" not in message
    return message


def test_a_directory_is_no_config(desk: Desk) -> None:
    desk.user_file.mkdir()
    assert "is a directory" in refused_file(desk)


def test_a_pipe_is_refused_without_waiting_for_a_writer(desk: Desk) -> None:
    os.mkfifo(desk.user_file)
    assert "not a plain file" in refused_file(desk)


def test_a_huge_file_is_refused(desk: Desk) -> None:
    desk.user_file.write_bytes(b"#" * (1024 * 1024 + 1))
    assert "larger than 1 MiB" in refused_file(desk)
    desk.user_file.write_bytes(b"#" * (1024 * 1024))
    assert desk.load().policy == Policy()


def test_an_endless_file_is_refused(desk: Desk) -> None:
    desk.user_file.symlink_to("/proc/self/mem")
    assert "cannot be read" in refused_file(desk)


def test_a_file_below_a_file_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.user("")
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(desk.user_file))
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        desk.load()


def test_a_link_to_the_config_is_followed_and_a_dangling_one_is_refused(desk: Desk) -> None:
    target = desk.home / "dotfile"
    desk.user_file.symlink_to(target)
    assert "leads nowhere" in refused_file(desk)
    target.write_text('mode = "read-only"')
    assert desk.load().policy.mode == "read-only"


def test_an_unreadable_file_is_refused(
    desk: Desk, as_somebody: Callable[[Callable[[], object]], object]
) -> None:
    desk.user("")
    desk.user_file.chmod(0)
    as_somebody(lambda: refused_unreadable(desk))


def refused_unreadable(desk: Desk) -> None:
    assert "cannot be read: Permission denied" in refused_file(desk)


# ---- anything at all ----

VALUES = st.recursive(
    st.one_of(
        *(st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.just("none")),
        st.sampled_from(
            (
                "rw",
                "hide",
                "none",
                "~/.ssh",
                "a/**",
                "drop A*",
                "keep A",
                "set A=1",
                "2G",
                "30s",
                "/x",
                "ask",
                "safe",
                "caution",
            )
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                (
                    "path",
                    "access",
                    "missing",
                    "wall",
                    "rules",
                    "x",
                    "safe",
                    "allow",
                    "verb",
                    "exact",
                    "level",
                    "reason",
                )
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def as_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("Infinity", "inf").replace("NaN", "nan")


@settings(PROPERTY, max_examples=300)
@given(table=st.dictionaries(st.sampled_from((*TOP_KEYS, "unknown", "profile")), VALUES, max_size=4))
def test_whatever_a_file_says_it_is_a_policy_or_one_line(desk: Desk, table: dict[str, object]) -> None:
    desk.user("".join(f"{key} = {as_toml(value)}\n" for key, value in table.items()))
    message = refusal_of_any_kind()
    if message is not None:
        start, line, _ = message.removeprefix(str(desk.user_file)).split(":", 2)
        assert start == ""
        assert 1 <= int(line) <= desk.user_file.read_text().count("\n")
        assert "\n" not in message


def refusal_of_any_kind() -> str | None:
    try:
        load_policy()
    except ConfigError as error:
        return str(error)
    return None
