"""The agents that Corral knows: where each keeps what, which variables are its credentials, what to tell it.

Pure data and the questions about it; outfit.py makes a policy of it. Paths are below home.
"""

from __future__ import annotations

from corral.record import Record
from corral.variables import name_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["shared", "guarded", "state"]

# Stands for a directory that is not known here, in what a variable is set to.
PRIVATE = "{private}"


class Agent(Record):
    """Where an agent keeps what, and how it is fitted into a jail."""

    name: str
    own: tuple[str, ...] = ()  # unmasked for it; what is in there and not named below counts as guarded
    shared: tuple[str, ...] = ()  # the real thing: a token refreshed inside is refreshed outside
    guarded: tuple[str, ...] = ()  # a copy, and flagged, since it is run later: settings, hooks, plugins
    state: tuple[str, ...] = ()  # a copy that nobody reads; `*` is any text
    programs: tuple[str, ...] = ()  # where it is installed, for homes that are empty
    keep: tuple[str, ...] = ()  # variables: its credentials
    providers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a variable that, if set, keeps further ones
    tell: tuple[tuple[str, str], ...] = ()  # variables that are set for it
    bundled: tuple[
        tuple[str, str, str], ...
    ] = ()  # a variable set to a file of ours, unless that file exists
    # A variable that moves a place of its own, that place, and what it is called in the directory that is named.
    # Where home is no copy, a private directory takes its place, and `private_tell` is set too.
    moves: tuple[tuple[str, str, str], ...] = ()
    private_tell: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()  # before the command's own
    # The same where no sandbox can be made inside ours: its own has to be off.
    unnested: tuple[str, ...] = ()
    unnested_tell: tuple[tuple[str, str], ...] = ()


# Where programs and the runtimes they need are installed below home.
RUNTIMES = (
    *(".local/bin", ".local/lib/node_modules", ".npm-global", ".npm-packages", ".nvm", ".volta", ".nodenv"),
    *(".local/share/fnm", ".local/share/pnpm", ".local/share/mise", ".asdf", ".bun", ".deno"),
    *(".local/share/uv/tools", ".local/share/uv/python", ".local/share/pipx", ".local/pipx", ".pyenv"),
)

_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
_GOOGLE = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_ACCESS_TOKEN")
_MODEL_KEYS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"),
    *("DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "CODESTRAL_API_KEY", "COHERE_API_KEY"),
    *("XAI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
    *("CEREBRAS_API_KEY", "DASHSCOPE_API_KEY", "MOONSHOT_API_KEY", "ZAI_API_KEY", "AZURE_API_KEY"),
    *("AZURE_OPENAI_API_KEY", "OLLAMA_API_KEY", "LM_STUDIO_API_KEY", "LITELLM_API_KEY"),
)

AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            own=(".claude", ".claude.json", ".cache/claude-cli-nodejs", ".local/state/claude"),
            shared=(
                *(
                    ".claude/.credentials.json",
                    ".claude/projects",
                    ".claude/history.jsonl",
                    ".claude/sessions",
                ),
                *(".claude/todos", ".claude/tasks", ".claude/plans", ".claude/file-history"),
            ),
            guarded=(
                *(
                    ".claude.json",
                    ".claude/settings.json",
                    ".claude/settings.local.json",
                    ".claude/CLAUDE.md",
                ),
                *(".claude/hooks", ".claude/plugins", ".claude/commands", ".claude/agents", ".claude/skills"),
                *(".claude/rules", ".claude/output-styles", ".claude/keybindings.json"),
            ),
            state=(
                *(".claude/cache", ".claude/debug", ".claude/logs", ".claude/statsig", ".claude/telemetry"),
                *(".claude/ide", ".claude/paste-cache", ".claude/image-cache", ".claude/session-env"),
                *(".claude/usage-data", ".claude/stats-cache.json", ".claude/backups"),
                *(".cache/claude-cli-nodejs", ".local/state/claude"),
            ),
            programs=(".local/share/claude", ".claude/local"),
            keep=(
                *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
                *("CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_AWS_API_KEY"),
                *("CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
            ),
            providers=(
                ("CLAUDE_CODE_USE_BEDROCK", _AWS),
                ("CLAUDE_CODE_USE_VERTEX", _GOOGLE),
                ("CLAUDE_CODE_USE_FOUNDRY", ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET")),
            ),
            tell=(("DISABLE_AUTOUPDATER", "1"),),
            # It makes lock and temp files beside .claude.json, in home itself, unless that is moved.
            moves=(
                ("CLAUDE_CONFIG_DIR", ".claude", ""),
                ("CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json"),
            ),
            private_tell=(("TMPDIR", f"{PRIVATE}/tmp"), ("CLAUDE_CODE_TMPDIR", f"{PRIVATE}/tmp")),
        ),
        Agent(
            "codex",
            own=(".codex", ".agents"),
            shared=(
                *(".codex/auth.json", ".codex/sessions", ".codex/archived_sessions", ".codex/history.jsonl"),
                ".codex/.credentials.json",
            ),
            guarded=(
                *(".codex/config.toml", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".codex/hooks.json"),
                *(".codex/prompts", ".codex/skills", ".codex/rules", ".codex/plugins", ".agents"),
            ),
            state=(
                *(
                    ".codex/log",
                    ".codex/tmp",
                    ".codex/cache",
                    ".codex/version.json",
                    ".codex/models_cache.json",
                ),
                *(".codex/*.sqlite*", ".codex/shell_snapshots"),
            ),
            programs=(".codex/packages",),
            keep=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "AZURE_OPENAI_API_KEY"),
            moves=(("CODEX_HOME", ".codex", ""),),
            arguments=("-c", "check_for_update_on_startup=false"),
            # Its own sandbox mounts, and nothing can under Landlock rules for files or with user namespaces closed.
            unnested=("-c", 'sandbox_mode="danger-full-access"'),
        ),
        Agent(
            "gemini",
            own=(".gemini",),
            shared=(
                *(".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/installation_id"),
                *(".gemini/gemini-credentials.json", ".gemini/mcp-oauth-tokens.json", ".gemini/tmp"),
                *(
                    ".gemini/mcp-oauth-tokens-v2.json",
                    ".gemini/a2a-oauth-tokens.json",
                    ".gemini/projects.json",
                ),
            ),
            guarded=(
                *(
                    ".gemini/settings.json",
                    ".gemini/GEMINI.md",
                    ".gemini/.env",
                    ".gemini/trustedFolders.json",
                ),
                *(".gemini/commands", ".gemini/extensions", ".gemini/skills", ".gemini/agents"),
                *(".gemini/policies", ".gemini/hooks", ".gemini/history"),
            ),
            state=(".gemini/state.json", ".gemini/acknowledgments", ".gemini/user_id"),
            keep=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            providers=(
                ("GOOGLE_GENAI_USE_VERTEXAI", _GOOGLE),
                ("GOOGLE_GENAI_USE_GCA", _GOOGLE),
            ),
            # No variable of its own turns updates off; a file of defaults does.
            bundled=(
                (
                    *("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "gemini-defaults.json"),
                    "/etc/gemini-cli/system-defaults.json",
                ),
            ),
            moves=(("GEMINI_CLI_HOME", ".gemini", ".gemini"),),
            unnested_tell=(("GEMINI_SANDBOX", "false"),),
        ),
        Agent(
            "aider",
            own=(
                ".aider",
                ".aider.conf.yml",
                ".aider.model.settings.yml",
                ".aider.model.metadata.json",
                ".env",
            ),
            shared=(".aider/oauth-keys.env",),
            guarded=(
                *(".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json", ".env"),
            ),
            state=(".aider/caches", ".aider/analytics.json", ".aider/installs.json"),
            keep=("AIDER_*", *_MODEL_KEYS),
            tell=(("AIDER_CHECK_UPDATE", "false"),),
        ),
        Agent(
            "opencode",
            own=(
                *(".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
                ".opencode",
            ),
            # Not its database: that is one file and its logs beside it, which must not be parted.
            shared=(
                *(".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json"),
                ".local/share/opencode/storage",
            ),
            guarded=(
                *(".config/opencode", ".cache/opencode", ".local/share/opencode/bin"),
                *(".local/share/opencode/snapshot", ".opencode"),
            ),
            state=(
                *(".local/share/opencode/log", ".local/share/opencode/*.db*", ".local/state/opencode"),
                ".cache/opencode/models.json",
            ),
            programs=(".opencode/bin",),
            keep=("OPENCODE_API_KEY", "OPENCODE_SERVER_PASSWORD", "OPENCODE_AUTH_CONTENT", *_MODEL_KEYS),
            tell=(("OPENCODE_DISABLE_AUTOUPDATE", "true"),),
            moves=(
                ("XDG_DATA_HOME", ".local/share/opencode", "opencode"),
                ("XDG_STATE_HOME", ".local/state/opencode", "opencode"),
                ("XDG_CACHE_HOME", ".cache/opencode", "opencode"),
            ),
        ),
    )
}


def kind_of(agent: Agent, path: str) -> Kind | None:
    """What a path below home is to this agent: the longest of its places that it lies in decides. None: not its own."""
    best, kind = -1, None
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("guarded", (*agent.own, *agent.guarded)),
        ("state", agent.state),
        ("shared", agent.shared),
    )
    for name, places in kinds:
        for place in places:
            inside = path == place or path.startswith(f"{place}/")
            if (inside or ("*" in place and name_matches(place, path))) and len(place) >= best:
                best, kind = len(place), name
    return kind
