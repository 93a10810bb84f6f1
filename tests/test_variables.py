"""Which variables a command gets: patterns, defaults, and rules where the last match decides."""

from __future__ import annotations

import fnmatch
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import PolicyError
from corral.variables import (
    HANDLES,
    INJECTION,
    KEPT,
    SECRETS,
    EnvRule,
    Scrubber,
    default_rules,
    name_matches,
    scrub,
)
from launcher.patterns import MATCHES

# Every default pattern with a name it must catch and a near miss that stays. None: a name that another default
# catches anyway, or none that is near.
DEFAULTS: dict[str, tuple[str, str | None]] = {
    "*_ACCESS_KEY": ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEYS"),
    "*_APIKEY": ("X_APIKEY", "APIKEYS"),
    "*_API_KEY": ("OPENAI_API_KEY", "OPENAI_API_KEYRING"),
    "*_AUTH": ("NPM_AUTH", "NPM_AUTHOR"),
    "*_AUTH_TOKEN": ("X_AUTH_TOKEN", "AUTH_TOKENIZER"),
    "*_CONNECTION_STRING": ("SQL_CONNECTION_STRING", "CONNECTION_STRING"),
    "*_CREDENTIAL": ("X_CREDENTIAL", "CREDENTIAL"),
    "*_CREDENTIALS": ("X_CREDENTIALS", "CREDENTIALS_DIR"),
    "*_COOKIE": ("SESSION_COOKIE", "COOKIES"),
    "*_CREDS": ("AWS_CREDS", "CREDS"),
    "*_DATABASE_URL": ("TEST_DATABASE_URL", "DATABASE_URLS"),
    "*_DSN": ("DB_DSN", "DSN"),
    "*_JWT": ("SERVICE_JWT", "JWTS"),
    "*_KEY": ("SIGNING_KEY", "KEYBOARD"),
    "*_PASS": ("SMTP_PASS", "COMPASS"),
    "*_PASSPHRASE": ("KEY_PASSPHRASE", "PASSPHRASES"),
    "*_PAT": ("GITHUB_PAT", "PATH"),
    "*_SECRETS": ("APP_SECRETS", "SECRETS"),
    "*_TOKENS": ("API_TOKENS", "TOKENS"),
    "*_WEBHOOK": ("SLACK_WEBHOOK", "WEBHOOKS"),
    "*_WEBHOOK_URL": ("TEAMS_WEBHOOK_URL", "WEBHOOK_URLS"),
    "SSHPASS": ("SSHPASS", "SSHPASSES"),
    "PGPASSFILE": ("PGPASSFILE", "PGHOST"),
    "NETRC": ("NETRC", "NETRCS"),
    "DOCKER_AUTH_CONFIG": ("DOCKER_AUTH_CONFIG", "DOCKER_CONFIG"),
    "MYSQL_URL": ("MYSQL_URL", "MYSQL"),
    "POSTGRES_URL": ("POSTGRES_URL", "POSTGRES"),
    "AMQP_URL": ("AMQP_URL", "AMQP"),
    "*_PASSWD": ("DB_PASSWD", "PASSWDS"),
    "*_PASSWORD": ("DB_PASSWORD", "DB_PASSWORD_FILE"),
    "*_PRIVATE_KEY": ("SSH_PRIVATE_KEY", "SSH_PRIVATE_KEYS"),
    "*_PWD": ("DB_PWD", "PWD"),
    "*_SECRET": ("CLIENT_SECRET", "SECRETARY"),
    "*_SECRET_KEY": ("S3_SECRET_KEY", "S3_SECRET_KEYS"),
    "*_TOKEN": ("GITHUB_TOKEN", "TOKENIZERS_PARALLELISM"),
    "*PASSWORD": ("PGPASSWORD", "PASSWORDS"),
    "*APIKEY": ("MYAPIKEY", "APIKEYS"),
    "TOKEN": ("TOKEN", "TOKENS"),
    "SECRET": ("SECRET", "SECRETS"),
    "PASSWORD": ("PASSWORD", "PASSWORDS"),
    "APIKEY": ("APIKEY", "APIKEYS"),
    "AZURE_CLIENT_ID": ("AZURE_CLIENT_ID", "AZURE_CLIENT"),
    "AZURE_TENANT_ID": ("AZURE_TENANT_ID", "AZURE_TENANT"),
    "BB_AUTH_STRING": ("BB_AUTH_STRING", "BB_AUTH_STRINGS"),
    "DATABASE_URL": ("DATABASE_URL", "DATABASE_URLS"),
    "KUBECONFIG": ("KUBECONFIG", "KUBECONFIGS"),
    "MAIL": ("MAIL", "MAILER"),
    "GOOGLE_APPLICATION_CREDENTIALS": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_APPLICATION"),
    "MONGODB_URI": ("MONGODB_URI", "MONGODB"),
    "MONGO_URI": ("MONGO_URI", "MONGO"),
    "REDIS_URL": ("REDIS_URL", "REDIS"),
    "SENTRY_DSN": ("SENTRY_DSN", "SENTRY"),
    "SLACK_WEBHOOK_URL": ("SLACK_WEBHOOK_URL", "SLACK_CHANNEL"),
    "OPENCODE_AUTH_CONTENT": ("OPENCODE_AUTH_CONTENT", "OPENCODE_CONFIG"),
    "*_PID": ("SSH_AGENT_PID", "RAPID"),
    "*_SOCK": ("SSH_AUTH_SOCK", "SOCKS_PROXY"),
    "*_SOCKET": ("LISTEN_SOCKET", "SOCKETS"),
    "*_SOCKET_PATH": ("DOCKER_SOCKET_PATH", "SOCKET_PATHS"),
    "DBUS_SESSION_BUS_ADDRESS": ("DBUS_SESSION_BUS_ADDRESS", "DBUS"),
    "DISPLAY": ("DISPLAY", "DISPLAYS"),
    "WAYLAND_DISPLAY": ("WAYLAND_DISPLAY", "WAYLAND"),
    "XAUTHORITY": ("XAUTHORITY", "XAUTHORITIES"),
    "XDG_RUNTIME_DIR": ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
    "DBUS_SYSTEM_BUS_ADDRESS": ("DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SYSTEM"),
    "AT_SPI_BUS_ADDRESS": ("AT_SPI_BUS_ADDRESS", "AT_SPI_BUS"),
    "SESSION_MANAGER": ("SESSION_MANAGER", "SESSION"),
    "ICEAUTHORITY": ("ICEAUTHORITY", "ICE"),
    "PULSE_SERVER": ("PULSE_SERVER", "PULSE"),
    "SWAYSOCK": ("SWAYSOCK", "SWAY"),
    "I3SOCK": ("I3SOCK", "I3"),
    "TMUX": ("TMUX", "TMUX_PANE"),
    "STY": ("STY", "STYLE"),
    "KITTY_LISTEN_ON": ("KITTY_LISTEN_ON", "KITTY_WINDOW_ID"),
    "NVIM": ("NVIM", "NVIM_APPNAME"),
    "NVIM_LISTEN_ADDRESS": ("NVIM_LISTEN_ADDRESS", "NVIM_LISTEN"),
    "VSCODE_IPC_HOOK*": ("VSCODE_IPC_HOOK_CLI", "VSCODE_IPC"),
    "GPG_AGENT_INFO": ("GPG_AGENT_INFO", "GPG_TTY"),
    "KRB5CCNAME": ("KRB5CCNAME", "KRB5_CONFIG"),
    "DOCKER_HOST": ("DOCKER_HOST", "DOCKER_BUILDKIT"),
    "CONTAINER_HOST": ("CONTAINER_HOST", "CONTAINER"),
    "CORRAL_STATE_DIR": ("CORRAL_STATE_DIR", "CORRAL_STATE"),
    "LD_*": ("LD_PRELOAD", "OLD_PRELOAD"),
    "BASH_ENV": ("BASH_ENV", "BASH"),
    "ENV": ("ENV", "ENVIRONMENT"),
    "BASH_FUNC_*": ("BASH_FUNC_f%%", "BASH_FUN"),
    "PYTHONSTARTUP": ("PYTHONSTARTUP", "PYTHONPATH"),
    "PYTHONINSPECT": ("PYTHONINSPECT", "PYTHONUTF8"),
    "NODE_OPTIONS": ("NODE_OPTIONS", "NODE_PATH"),
    "PERL5OPT": ("PERL5OPT", "PERL5LIB"),
    "PERL5DB": ("PERL5DB", "PERL5"),
    "RUBYOPT": ("RUBYOPT", "RUBY"),
    "GIT_*": ("GIT_SSH_COMMAND", "DIGIT_"),
    "PROMPT_COMMAND": ("PROMPT_COMMAND", "PROMPT"),
    "JAVA_TOOL_OPTIONS": ("JAVA_TOOL_OPTIONS", "JAVA_HOME"),
    "GLIBC_TUNABLES": ("GLIBC_TUNABLES", "GLIBC"),
}
NEEDED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TERM",
    "USER",
    "SHELL",
    "TZ",
    "PWD",
    "EDITOR",
    "VIRTUAL_ENV",
    "CC",
    "CI",
)
VERBS = ("drop", "keep", "set")


def removed(*names: str, rules: tuple[EnvRule, ...] | None = None) -> tuple[str, ...]:
    return scrub(default_rules() if rules is None else rules, dict.fromkeys(names, "value")).removed


@pytest.mark.parametrize(("pattern", "name", "expected"), MATCHES)
def test_a_pattern_matches_whole_names(pattern: str, name: str, expected: bool) -> None:
    assert name_matches(pattern, name) is expected


@given(st.text("AB*", max_size=8), st.text("AB", max_size=10))
def test_stars_mean_what_they_mean_elsewhere(pattern: str, name: str) -> None:
    assert name_matches(pattern, name) == fnmatch.fnmatchcase(name, pattern)


@given(st.text("AB*\\", max_size=8), st.text("AB*\\", max_size=8))
def test_a_backslash_takes_the_next_character_as_it_is(pattern: str, name: str) -> None:
    tokens = re.findall(r"\\.|\\$|[^\\]", pattern)
    if "\\" in tokens:  # nothing to take: such a pattern matches nothing
        assert not name_matches(pattern, name)
        return
    expression = "".join(".*" if t == "*" else re.escape(t[-1]) for t in tokens)
    assert name_matches(pattern, name) == (re.fullmatch(expression, name) is not None)


def test_the_table_of_defaults_is_complete() -> None:
    assert set(DEFAULTS) == {*SECRETS, *HANDLES, *INJECTION}


@pytest.mark.parametrize("pattern", DEFAULTS)
def test_a_default_takes_its_variable_and_leaves_its_neighbour(pattern: str) -> None:
    caught, neighbour = DEFAULTS[pattern]
    assert name_matches(pattern, caught)
    assert removed(caught, "PATH") == (caught,)
    if neighbour is not None:
        assert removed(neighbour) == ()


def test_what_commands_need_stays_with_its_value() -> None:
    environment = {name: f"value of {name}" for name in NEEDED}
    scrubbed = scrub(default_rules(), environment)
    assert (scrubbed.variables, scrubbed.removed) == (environment, ())


def test_the_identity_that_git_signs_with_stays_and_the_rest_of_git_goes() -> None:
    taken = ("GIT_DIR", "GIT_SSH", "GIT_CONFIG_COUNT", "GIT_AUTHOR_DATE_")
    assert removed(*KEPT, *taken) == tuple(sorted(taken))


def test_removed_names_are_sorted_and_hold_no_value() -> None:
    scrubbed = scrub(default_rules(), {"Z_TOKEN": "hidden", "A_TOKEN": "hidden", "PATH": "/bin"})
    assert scrubbed.removed == ("A_TOKEN", "Z_TOKEN")
    assert "hidden" not in repr(scrubbed.removed)
    assert scrubbed.variables == {"PATH": "/bin"}


def test_lower_case_is_another_name() -> None:
    assert removed("github_token", "ld_preload") == ()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], {"A": "1", "B": "2"}),
        ([("drop", "A", "")], {"B": "2"}),
        ([("drop", "A", ""), ("keep", "A", "")], {"A": "1", "B": "2"}),
        ([("keep", "A", ""), ("drop", "A", "")], {"B": "2"}),
        ([("drop", "*", ""), ("keep", "B", "")], {"B": "2"}),
        ([("set", "A", "new")], {"A": "new", "B": "2"}),
        ([("set", "C", "new")], {"A": "1", "B": "2", "C": "new"}),
        ([("drop", "*", ""), ("set", "C", "new")], {"C": "new"}),
        ([("set", "C", "new"), ("drop", "C", "")], {"A": "1", "B": "2"}),
        ([("set", "C", "new"), ("drop", "*", "")], {}),
        ([("set", "C", "one"), ("set", "C", "two")], {"A": "1", "B": "2", "C": "two"}),
        ([("drop", "A", ""), ("set", "A", "new")], {"A": "new", "B": "2"}),
    ],
)
def test_the_last_match_decides(rules: list[tuple[str, str, str]], expected: dict[str, str]) -> None:
    made = [EnvRule(verb, name, value) for verb, name, value in rules]  # type: ignore[arg-type]
    assert scrub(made, {"A": "1", "B": "2"}).variables == expected


def test_a_name_that_is_set_is_not_reported_as_removed() -> None:
    scrubbed = scrub([EnvRule("drop", "A"), EnvRule("set", "A", "new")], {"A": "old"})
    assert scrubbed.removed == ()


@given(
    st.lists(
        st.tuples(st.sampled_from(("drop", "keep")), st.text("AB*", min_size=1, max_size=4)), max_size=6
    ),
    st.sets(st.text("AB", min_size=1, max_size=4), max_size=6),
)
def test_scrubbing_agrees_with_a_slow_reference(rules: list[tuple[str, str]], names: set[str]) -> None:
    def is_kept(name: str) -> bool:
        matching = [verb for verb, pattern in rules if fnmatch.fnmatchcase(name, pattern)]
        return not matching or matching[-1] == "keep"

    made = [EnvRule(verb, pattern) for verb, pattern in rules]  # type: ignore[arg-type]
    scrubbed = scrub(made, dict.fromkeys(names, "x"))
    assert set(scrubbed.variables) == {name for name in names if is_kept(name)}
    assert set(scrubbed.removed) == names - set(scrubbed.variables)


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="not a variable name"):
        EnvRule("drop", name)


def test_a_value_with_a_nul_and_an_unknown_verb_are_refused() -> None:
    with pytest.raises(PolicyError):
        EnvRule("set", "A", "a\0b")
    with pytest.raises(PolicyError, match="drop, keep or set, not 'delete'"):
        EnvRule("delete", "A")  # type: ignore[arg-type]


def test_a_scrubber_sees_each_change_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    scrubber = Scrubber(default_rules())
    monkeypatch.setenv("PLAIN", "1")
    assert scrubber(os.environ).variables["PLAIN"] == "1"
    assert scrubber(os.environ) is scrubber(os.environ)
    monkeypatch.setenv("PLAIN", "2")
    monkeypatch.setenv("SOME_TOKEN", "x")
    scrubbed = scrubber(os.environ)
    assert scrubbed.variables["PLAIN"] == "2"
    assert "SOME_TOKEN" in scrubbed.removed
    monkeypatch.delenv("PLAIN")
    assert "PLAIN" not in scrubber(os.environ).variables
