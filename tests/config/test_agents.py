"""The profiles that Corral ships: which command gets which, and what each makes of a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from corral.config import load
from corral.config.agents import AGENTS, Agent, kind_of
from corral.config.outfit import Outfit, apply_profile
from corral.config.settings import COMMANDS
from corral.errors import ConfigError
from corral.policy import MODES, Grant, Policy
from corral.variables import EnvRule, scrub

NAMES = ("claude", "codex", "gemini", "aider", "opencode")
JAILED = tuple(mode for mode in MODES if mode != "off")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
AUTHORITIES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE"),
)

# One row an agent: a real file of each kind, a credential it keeps, and where each tells itself not to update.
ROWS = {
    "claude": (
        ".claude/.credentials.json",
        ".claude/settings.json",
        ".claude/statsig/x",
        "ANTHROPIC_API_KEY",
    ),
    "codex": (".codex/auth.json", ".codex/config.toml", ".codex/log/codex.log", "OPENAI_API_KEY"),
    "gemini": (".gemini/oauth_creds.json", ".gemini/settings.json", ".gemini/state.json", "GEMINI_API_KEY"),
    "aider": (".aider/oauth-keys.env", ".aider.conf.yml", ".aider/caches/x.json", "OPENROUTER_API_KEY"),
    "opencode": (
        *(".local/share/opencode/auth.json", ".config/opencode/opencode.json"),
        *(".local/share/opencode/log/x", "OPENCODE_API_KEY"),
    ),
}


def fit(
    name: str,
    mode: str,
    home: Path,
    tier: str = "namespaces",
    policy: Policy | None = None,
    environ: dict[str, str] | None = None,
) -> Outfit:
    variables = {"HOME": str(home), **(environ or {})}
    chosen = (policy or Policy()).replace(mode=mode, network=None)
    return apply_profile(chosen, AGENTS[name], tier, jail="j", environ=variables)


def passed(outfit: Outfit, **environ: str) -> dict[str, str]:
    return scrub(outfit.policy.environment, environ).variables


@pytest.fixture
def home(desk: Desk) -> Path:
    """With a file of each kind of each agent."""
    for shared, guarded, state, _ in ROWS.values():
        for name in (shared, guarded, state):
            path = desk.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    return desk.home


# ---- which one ----


def test_each_command_has_its_profile_by_name_with_a_path_or_without(desk: Desk) -> None:
    assert tuple(AGENTS) == NAMES
    assert {*COMMANDS.values()} == {*NAMES}
    for name in NAMES:
        for word in (name, f"/usr/local/bin/{name}", f"./{name}"):
            assert load(command=word).settings.agent == AGENTS[name]
    for other in (None, "make", "claude-x", "/claude/make"):
        assert load(command=other).settings.agent is None


def test_a_file_may_choose_another_profile_or_none(desk: Desk) -> None:
    desk.writes("commands/cc.toml", 'agent = "claude"')
    assert load(command="cc").settings.agent == AGENTS["claude"]
    desk.writes("commands/claude.toml", 'agent = "none"')
    assert load(command="claude").settings.agent is None
    assert load(command="codex").settings.agent == AGENTS["codex"]
    file = desk.writes("commands/x.toml", '\nagent = "cluade"')
    with pytest.raises(ConfigError) as caught:
        load(command="x")
    assert str(caught.value) == f"{file}:2: no agent is called 'cluade' (did you mean claude?)"


def test_a_list_in_a_file_takes_the_place_of_the_built_in_one(desk: Desk) -> None:
    desk.user('[agents.claude]\nshared = ["~/.claude/.credentials.json"]\nset = { A = "1" }')
    agent = load(command="claude").settings.agent
    assert agent == AGENTS["claude"].replace(shared=(".claude/.credentials.json",), tell=(("A", "1"),))
    desk.writes("jails/j.toml", "[agents.claude]\nkeep = []")
    agent = load(command="claude", jail="j").settings.agent
    assert agent is not None
    assert (agent.keep, agent.shared) == ((), (".claude/.credentials.json",))


def test_a_file_may_describe_an_agent_of_its_own(desk: Desk) -> None:
    desk.user('[agents.mine]\ncommands = ["mine", "me"]\nown = [".mine"]\nkeep = ["MINE_TOKEN"]')
    expected = Agent("mine", own=(".mine",), keep=("MINE_TOKEN",))
    assert load(command="me").settings.agent == load(command="/bin/mine").settings.agent == expected
    assert load(command="you").settings.agent is None


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("agents = 3", 1, "agents must be a table, not a whole number"),
        ("[agents]\nclaude = 3", 2, "(did you mean [agents.NAME]?)"),
        ('[agents.claude]\n\nsahred = ["x"]', 3, "(did you mean shared?)"),
        ('[agents.claude]\nshared = [\n"a",\n"/etc"]', 4, 'shared takes paths below home, not "/etc"'),
        ('[agents.claude]\nstate = ["../x"]', 2, "below home"),
        ("[agents.claude]\nkeep = [3]", 2, "must be a string"),
        ("[agents.claude]\nset = { A = 1 }", 2, "must be a string"),
        ("agent = 3", 1, "agent must be a string"),
    ],
)
def test_a_wrong_agent_is_refused_with_its_line(desk: Desk, text: str, line: int, why: str) -> None:
    desk.user(text)
    assert why in desk.refusal(desk.user_file, line)


# ---- kinds of places ----


@pytest.mark.parametrize("name", NAMES)
def test_each_place_of_an_agent_is_of_one_kind(name: str) -> None:
    agent = AGENTS[name]
    shared, guarded, state, _ = ROWS[name]
    assert [kind_of(agent, path) for path in (shared, guarded, state)] == ["shared", "guarded", "state"]
    for kind in ("shared", "guarded", "state"):
        for place in getattr(agent, kind):
            assert kind_of(agent, place) == kind or place in agent.own
    assert kind_of(agent, ".bashrc") is None
    assert kind_of(agent, f"{agent.own[0]}-other/x") is None


def test_what_nobody_has_named_in_an_agents_directory_counts_as_run_later() -> None:
    assert kind_of(AGENTS["claude"], ".claude/new-hooks/x.sh") == "guarded"
    assert kind_of(AGENTS["claude"], ".claude/projects/x/session.jsonl") == "shared"
    assert kind_of(AGENTS["codex"], ".codex/state_5.sqlite-wal") == "state"
    assert kind_of(AGENTS["opencode"], ".local/share/opencode/bin/server") == "guarded"


# ---- what it makes of a policy ----


@pytest.mark.parametrize("mode", JAILED)
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_keeps_its_own_credentials_and_no_others(name: str, mode: str, home: Path) -> None:
    own = ROWS[name][3]
    other = "AWS_SECRET_ACCESS_KEY"
    fitted = fit(name, mode, home)
    assert passed(fitted, **{own: "mine", other: "x", "GITHUB_TOKEN": "x"})[own] == "mine"
    assert not {other, "GITHUB_TOKEN"} & passed(fitted, **{other: "x", "GITHUB_TOKEN": "x"}).keys()
    assert own not in scrub(Policy().environment, {own: "mine"}).variables


@pytest.mark.parametrize("name", NAMES)
def test_proxies_authorities_and_the_virtual_environment_are_kept(name: str, home: Path) -> None:
    given = dict.fromkeys((*PROXIES, *AUTHORITIES, "VIRTUAL_ENV", "PATH", "TERM"), "value")
    for policy in (fit(name, "casual", home).policy, Policy()):
        assert given.items() <= scrub(policy.environment, given).variables.items()


def test_credentials_of_a_cloud_are_kept_only_if_the_agent_is_told_to_use_it(home: Path) -> None:
    given = {"AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "y"}
    for switch in ("", "0", "false"):
        fitted = fit("claude", "casual", home, environ={"CLAUDE_CODE_USE_BEDROCK": switch})
        assert not given.keys() & passed(fitted, **given).keys()
    fitted = fit("claude", "casual", home, environ={"CLAUDE_CODE_USE_BEDROCK": "1"})
    assert given.items() <= passed(fitted, **given).items()


def test_what_the_user_says_of_a_variable_or_a_place_decides(home: Path) -> None:
    credentials = str(home / ".claude/.credentials.json")
    rules = (
        *Policy().environment,
        EnvRule("drop", "ANTHROPIC_*"),
        EnvRule("set", "DISABLE_AUTOUPDATER", "0"),
    )
    policy = Policy(environment=rules, grants=(Grant.ro(credentials),))
    fitted = fit("claude", "casual", home, policy=policy)
    assert passed(fitted, ANTHROPIC_API_KEY="x") == {"DISABLE_AUTOUPDATER": "0"}
    assert fitted.policy.grants[-1] == Grant.ro(credentials)
    hidden = fit("claude", "casual", home, policy=Policy(grants=(Grant.hide(str(home / ".claude")),)))
    assert [grant.access for grant in hidden.policy.grants] == ["hide"]


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("claude", "DISABLE_AUTOUPDATER", "1"),
        ("aider", "AIDER_CHECK_UPDATE", "false"),
        ("opencode", "OPENCODE_DISABLE_AUTOUPDATE", "true"),
    ],
)
def test_an_agent_is_told_not_to_update_itself(home: Path, name: str, variable: str, value: str) -> None:
    for mode in JAILED:
        assert passed(fit(name, mode, home))[variable] == value


def test_those_without_such_a_variable_are_told_in_their_own_way(home: Path) -> None:
    assert fit("codex", "casual", home).arguments == ("-c", "check_for_update_on_startup=false")
    defaults = passed(fit("gemini", "casual", home))["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]
    assert '"enableAutoUpdate": false' in Path(defaults).read_text()
    own = fit("gemini", "casual", home, environ={"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "/mine.json"})
    assert "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in passed(own)
    assert Grant.ro(defaults, "skip") in fit("gemini", "strict", home).policy.grants


@pytest.mark.parametrize("name", NAMES)
def test_its_own_places_are_shown_to_it_and_to_no_other(name: str, home: Path) -> None:
    unhidden = set(fit(name, "casual", home).policy.unhide)
    assert unhidden
    for other in NAMES:
        if other != name:
            assert not unhidden & set(fit(other, "casual", home).policy.unhide)
    assert not {".ssh", ".aws", ".netrc", ".config/gcloud"} & unhidden


@pytest.mark.parametrize("name", NAMES)
def test_in_casual_the_shared_is_real_and_the_rest_is_the_copy_of_home(name: str, home: Path) -> None:
    shared = ROWS[name][0]
    grants = {grant.path: grant.access for grant in fit(name, "casual", home).policy.grants}
    assert grants == {str(home / shared): "rw"}
    assert fit(name, "casual", home).private == ""


@pytest.mark.parametrize("mode", ["bare", "strict"])
def test_in_an_empty_home_guarded_directories_and_programs_are_shown_read_only(home: Path, mode: str) -> None:
    for name in (".claude/hooks", ".local/share/claude", ".local/bin", ".nvm"):
        (home / name).mkdir(parents=True)
    grants = {grant.path: grant.access for grant in fit("claude", mode, home).policy.grants}
    assert grants == {
        str(home / ".claude/.credentials.json"): "rw",
        **{str(home / name): "ro" for name in (".claude/hooks", ".local/share/claude", ".local/bin", ".nvm")},
    }


@pytest.mark.parametrize(
    ("mode", "tier"), [("workspace-write", "namespaces"), ("workspace-write", "landlock")]
)
def test_where_home_is_no_copy_claude_gets_a_directory_of_its_own(home: Path, mode: str, tier: str) -> None:
    fitted = fit("claude", mode, home, tier)
    told = passed(fitted)
    assert told["CLAUDE_CONFIG_DIR"] == f"{fitted.private}/CLAUDE_CONFIG_DIR"
    assert told["TMPDIR"] == told["CLAUDE_CODE_TMPDIR"] == f"{fitted.private}/tmp"
    assert Grant.rw(fitted.private, "create") in fitted.policy.grants
    assert Grant.rw(str(home / ".claude/.credentials.json"), "skip") in fitted.policy.grants
    assert not any(grant.path.startswith(str(home / ".claude/s")) for grant in fitted.policy.grants)
    assert "CLAUDE_CONFIG_DIR" not in passed(fit("claude", "casual", home))


def test_the_private_directory_is_one_for_each_jail_and_agent(home: Path) -> None:
    made = [
        apply_profile(Policy(), AGENTS[name], "landlock", jail=jail, environ={"HOME": str(home)}).private
        for name in ("claude", "codex")
        for jail in ("a", "b", None)
    ]
    assert len({*made}) == len(made) == 6


@pytest.mark.parametrize("mode", JAILED)
@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_the_sandbox_of_codex_is_off_where_it_could_not_work(home: Path, mode: str, tier: str) -> None:
    nests = tier == "namespaces" and mode in ("casual", "bare")
    assert ('sandbox_mode="danger-full-access"' in fit("codex", mode, home, tier).arguments) is not nests
    assert ("GEMINI_SANDBOX" in passed(fit("gemini", mode, home, tier))) is not nests


def test_in_mode_read_only_nothing_becomes_writable_and_in_mode_off_nothing_changes(home: Path) -> None:
    for name in NAMES:
        assert not [g for g in fit(name, "read-only", home).policy.grants if g.access == "rw"]
        assert fit(name, "off", home) == Outfit(Policy.off())


def test_a_place_that_a_variable_has_moved_is_found_there(home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    (moved / ".gemini").mkdir(parents=True)
    for name in ("auth.json", ".credentials.json", ".gemini/oauth_creds.json"):
        (moved / name).write_text("x")
    for name, variable, file in (
        ("codex", "CODEX_HOME", "auth.json"),
        ("claude", "CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
    ):
        fitted = fit(name, "casual", home, environ={variable: str(moved)})
        assert Grant.rw(str(moved / file), "skip") in fitted.policy.grants


def test_a_person_is_told_what_a_profile_does_and_no_secret(home: Path) -> None:
    notes = fit("codex", "workspace-write", home, environ={"OPENAI_API_KEY": "sk-secret"}).notes
    text = "\n".join(notes)
    assert notes[0] == "profile codex; leave it off with --no-profile"
    assert "shared with the agent outside: ~/.codex/auth.json" in text
    assert "guarded, a copy: ~/.codex/config.toml" in text
    assert "variables kept: OPENAI_API_KEY" in text
    assert "arguments added: -c check_for_update_on_startup=false" in text
    assert "sk-secret" not in text
