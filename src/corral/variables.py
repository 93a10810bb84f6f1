"""Environment variables: which a command gets. One ordered list of rules; the last that matches decides."""

from __future__ import annotations

from corral.errors import PolicyError
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

# Secrets by the shape of their name: `*` is any run of characters, `\` takes the next one as it is.
SECRETS = (
    *("*_ACCESS_KEY", "*_APIKEY", "*_API_KEY", "*_AUTH", "*_AUTH_TOKEN", "*_CONNECTION_STRING", "*_COOKIE"),
    *("*_CREDENTIAL", "*_CREDENTIALS", "*_CREDS", "*_DATABASE_URL", "*_DSN", "*_JWT", "*_KEY", "*_PASS"),
    *("*_PASSPHRASE", "*_PASSWD", "*_PASSWORD", "*_PAT", "*_PRIVATE_KEY", "*_PWD", "*_SECRET", "*_SECRETS"),
    *("*_SECRET_KEY", "*_TOKEN", "*_TOKENS", "*_WEBHOOK", "*_WEBHOOK_URL", "*PASSWORD", "*APIKEY"),
    *("TOKEN", "SECRET", "PASSWORD", "APIKEY", "SSHPASS", "PGPASSFILE", "NETRC", "DOCKER_AUTH_CONFIG"),
    *("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "BB_AUTH_STRING", "DATABASE_URL", "KUBECONFIG", "MAIL"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "MONGODB_URI", "MONGO_URI", "MYSQL_URL", "POSTGRES_URL", "REDIS_URL"),
    *("AMQP_URL", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "OPENCODE_AUTH_CONTENT"),
)

# The screen and the session bus: whoever reaches one of them can type for you.
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")

# Ways to reach something outside: agents, buses, displays, and processes by number.
HANDLES = (
    *DESKTOP,
    *("*_PID", "*_SOCK", "*_SOCKET", "*_SOCKET_PATH", "XDG_RUNTIME_DIR", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("AT_SPI_BUS_ADDRESS", "SESSION_MANAGER", "ICEAUTHORITY", "PULSE_SERVER", "SWAYSOCK", "I3SOCK"),
    *("TMUX", "STY", "KITTY_LISTEN_ON", "NVIM", "NVIM_LISTEN_ADDRESS", "VSCODE_IPC_HOOK*"),
    *("GPG_AGENT_INFO", "KRB5CCNAME", "DOCKER_HOST", "CONTAINER_HOST", "CORRAL_STATE_DIR"),
)

# Variables that make another program run code or change what it is told. The identity git signs with is kept.
INJECTION = (
    *("LD_*", "BASH_ENV", "ENV", "BASH_FUNC_*", "PYTHONSTARTUP", "PYTHONINSPECT", "NODE_OPTIONS"),
    *("PERL5OPT", "PERL5DB", "RUBYOPT", "GIT_*", "PROMPT_COMMAND", "JAVA_TOOL_OPTIONS", "GLIBC_TUNABLES"),
)
KEPT = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)


class EnvRule(Record):
    """``drop`` or ``keep`` the variables whose whole name matches; ``set`` one to a value."""

    verb: Literal["drop", "keep", "set"]
    name: str
    value: str = ""

    def __post_init__(self) -> None:
        if self.verb not in ("drop", "keep", "set"):
            raise PolicyError(f"an environment rule is drop, keep or set, not {self.verb!r}")
        if not self.name or "=" in self.name or "\0" in self.name or "\0" in self.value:
            raise PolicyError(f"not a variable name: {self.name!r} (to set one: NAME=VALUE)")


def default_rules() -> tuple[EnvRule, ...]:
    dropped = tuple(EnvRule("drop", name) for name in (*SECRETS, *HANDLES, *INJECTION))
    return dropped + tuple(EnvRule("keep", name) for name in KEPT)


def name_matches(pattern: str, name: str) -> bool:
    """Whole name, case counts, ``*`` and ``\\`` only: the same rule as the launcher's."""
    star = resume = -1
    p = n = 0
    while n < len(name):
        literal = p + 1 if p < len(pattern) and pattern[p] == "\\" else p
        if p < len(pattern) and pattern[p] == "*":
            star, resume, p = p, n, p + 1
        elif literal < len(pattern) and pattern[literal] == name[n]:
            p, n = literal + 1, n + 1
        elif star >= 0:
            resume += 1
            p, n = star + 1, resume
        else:
            return False
    return pattern[p:].strip("*") == ""


class Scrubbed(Record):
    """An environment after the rules: what the command gets, and the names that were taken out."""

    variables: dict[str, str]
    removed: tuple[str, ...]


class Scrubber:
    """The rules, ready to be applied again and again: the verdict on a name is found once."""

    def __init__(self, rules: Iterable[EnvRule]) -> None:
        self._rules = tuple(rules)
        self._drops: dict[str, bool] = {}
        self._last: tuple[dict[bytes, bytes], Scrubbed] | None = None
        self._set = {
            rule.name: rule.value
            for position, rule in enumerate(self._rules)
            if rule.verb == "set" and not self._dropped_later(rule.name, position)
        }

    def _dropped_later(self, name: str, position: int) -> bool:
        return any(r.verb == "drop" and _matches(r.name, name) for r in self._rules[position + 1 :])

    def _is_dropped(self, name: str) -> bool:
        for rule in reversed(self._rules):
            if _matches(rule.name, name):
                return rule.verb == "drop"
        return False

    def keeps(self, name: str) -> bool:
        return not self._is_dropped(name)

    def __call__(self, environment: Mapping[str, str]) -> Scrubbed:
        # What `os.environ` keeps undecoded: most runs of an environment find it as the last one did.
        raw: dict[bytes, bytes] | None = getattr(environment, "_data", None)
        last = self._last
        if raw is not None and last is not None and last[0] == raw:
            return last[1]
        known = dict(raw) if raw is not None else None
        scrubbed = self._scrub(environment)
        if known is not None and known == raw:
            self._last = (known, scrubbed)
        return scrubbed

    def _scrub(self, environment: Mapping[str, str]) -> Scrubbed:
        drops, kept, removed = self._drops, {}, []
        for name, value in environment.items():
            dropped = drops.get(name)
            if dropped is None:
                dropped = drops[name] = self._is_dropped(name)
            if dropped:
                removed.append(name)
            else:
                kept[name] = value
        kept.update(self._set)
        return Scrubbed(kept, tuple(sorted(removed)))


def _matches(pattern: str, name: str) -> bool:
    """As :func:`name_matches`; most patterns are a plain name, a prefix or a suffix."""
    body = pattern.strip("*")
    if "*" not in body and "\\" not in body:
        if pattern == body:
            return name == body
        if pattern == "*" + body:
            return name.endswith(body)
        if pattern == body + "*":
            return name.startswith(body)
    return name_matches(pattern, name)


def scrub(rules: Iterable[EnvRule], environment: Mapping[str, str]) -> Scrubbed:
    return Scrubber(rules)(environment)
