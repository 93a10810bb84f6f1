"""Policy: what is allowed, in the user's words. Immutable, checked when it is built, and knows no kernel."""

from __future__ import annotations

from corral import claims
from corral.approval import Approval
from corral.errors import PolicyError
from corral.record import Record
from corral.variables import EnvRule, Scrubber, default_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from corral.jail.plan import Plan

    Mode = Literal["off", "read-only", "workspace-write", "casual", "bare", "strict"]
    Network = Literal["off", "open"]
    Backend = Literal["auto", "namespaces", "landlock", "systemd-run", "seatbelt"]
    Access = Literal["rw", "ro", "hide", "none"]
    Missing = Literal["refuse", "skip", "create"]

# One row a mode: what it means for the network unless said otherwise, and how it reads on one line.
MODES: dict[str, tuple[str, str]] = {
    "off": ("open", "commands are not jailed"),
    "read-only": ("off", "nothing writable but a private temp directory"),
    "workspace-write": ("off", "the workspace, or only the writable globs in it"),
    "casual": ("open", "the working directory; home is a copy-on-write copy"),
    "bare": ("open", "the working directory; home is private and empty"),
    "strict": ("open", "only what is granted exists"),
}
BACKENDS = ("auto", "namespaces", "landlock", "systemd-run", "seatbelt")

# Modes that give the command a home of its own, kept by a jail's name.
HOME_MODES = ("casual", "bare", "strict")

# Tighter first. Two modes that do not stand in one of these chains cannot be compared.
_TIGHTER = {
    "read-only": {"read-only", "workspace-write", "off"},
    "workspace-write": {"workspace-write", "off"},
    "strict": {"strict", "bare", "casual", "off"},
    "bare": {"bare", "off"},
    "casual": {"casual", "off"},
    "off": {"off"},
}

# Limits by name: what `run` and what the library apply unless told otherwise (None: no limit of ours), and
# the unit a person types. They only ever lower what the caller has.
LIMITS: dict[str, tuple[int | None, int | None, str]] = {
    "wall": (None, None, "seconds"),
    "file-size": (None, None, "bytes"),
    "cpu": (None, None, "seconds"),
    "open-files": (None, None, "count"),
    "processes": (4096, 4096, "count"),
    "memory": (None, None, "bytes"),
}
OUTPUT_LIMIT = 10 * 1024 * 1024


def _known(kind: str, word: str, words: Iterable[str]) -> None:
    if word not in words:
        raise PolicyError(f"unknown {kind} {word!r}; there is {', '.join(words)}{nearest(word, words)}")


def nearest(word: str, words: Iterable[str]) -> str:
    """`` (did you mean X?)`` when one of the words is close to this one."""
    import difflib

    close = difflib.get_close_matches(str(word), list(words), 1)
    return f" (did you mean {close[0]}?)" if close else ""


def check_jail_name(name: str) -> None:
    if not name or name.startswith((".", "-")) or "/" in name or "\0" in name or len(name) > 100:
        raise PolicyError(
            f"a jail's name is one short word that starts with neither a dot nor a dash, not {name!r}"
        )


class Grant(Record):
    """A place beyond the roots: writable, readable, hidden, or an earlier grant taken back (``none``)."""

    path: str
    access: Access
    missing: Missing = "refuse"

    def __post_init__(self) -> None:
        _known("access", self.access, ("rw", "ro", "hide", "none"))
        _known("rule for a missing path", self.missing, ("refuse", "skip", "create"))
        if not self.path or "\0" in self.path:
            raise PolicyError(f"a grant needs a path, not {self.path!r}")

    @classmethod
    def rw(cls, path: str, missing: Missing = "refuse") -> Grant:
        return cls(str(path), "rw", missing)

    @classmethod
    def ro(cls, path: str, missing: Missing = "refuse") -> Grant:
        return cls(str(path), "ro", missing)

    @classmethod
    def hide(cls, path: str, missing: Missing = "skip") -> Grant:
        return cls(str(path), "hide", missing)


class Limits(Record):
    """Upper bounds of one run; None leaves the caller's own."""

    wall: float | None = None
    file_size: int | None = None
    cpu: int | None = None
    open_files: int | None = None
    processes: int | None = 4096
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in self._fields:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1 << 63:
                raise PolicyError(f"limit {name.replace('_', '-')} must be a number above 0, not {value!r}")

    def tightest(self, other: Limits) -> Limits:
        def lower(a: Any, b: Any) -> Any:
            return b if a is None else a if b is None else min(a, b)

        return Limits(*(lower(getattr(self, n), getattr(other, n)) for n in self._fields))


class Policy(Record):
    """What a command may do. Build one with :meth:`workspace_write` and its sisters."""

    mode: Mode = "workspace-write"
    roots: tuple[str, ...] = ()
    writable: tuple[str, ...] | None = None
    grants: tuple[Grant, ...] = ()
    unhide: tuple[str, ...] = ()
    environment: tuple[EnvRule, ...] = default_rules()
    network: Network | None = None
    limits: Limits = Limits()
    require: bool = True
    backend: Backend = "auto"
    demands: tuple[str, ...] = ()
    unix_sockets: bool = False
    shared_memory: bool = False
    trust_prefix: bool = False
    output_limit: int = OUTPUT_LIMIT
    wide_globs: bool = False  # where a command cannot be bound to a glob: the directory that it lies in
    sensitive: tuple[str, ...] = ()  # further names that hold secrets; patterns of one name
    approval: Approval = Approval()
    related_context: tuple[str, ...] = ()  # directories of notes that the tool of that name looks through
    jail: str | None = None  # whose home it is in casual, bare and strict; None: the project's own
    storage: str | None = None  # where jails are kept; None: the state directory
    review: bool = False  # what is written to the workspace waits until a person applies it
    grant_root: bool = True  # the working directory itself is writable, where the mode makes it so

    def __post_init__(self) -> None:
        _known("mode", self.mode, MODES)
        _known("backend", self.backend, BACKENDS)
        if self.network is None:
            object.__setattr__(self, "network", MODES[self.mode][0])
        _known("network", str(self.network), ("off", "open"))
        for claim in self.demands:
            _known("claim", claim, claims.CLAIMS)
        if self.writable is not None:
            from corral.paths.globs import check_globs

            object.__setattr__(self, "writable", check_globs(self.writable))
            if self.mode == "read-only":
                raise PolicyError("mode read-only has no writable globs; use mode workspace-write")
        if self.jail is not None:
            check_jail_name(self.jail)
        if self.output_limit <= 0:
            raise PolicyError("output_limit must be above 0; output is never kept without bound")
        for name in ("roots", "grants", "unhide", "environment", "demands", "sensitive", "related_context"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise PolicyError(f"{name} is a list, not one string: [{value!r}]")
            object.__setattr__(self, name, tuple(value))
        if self.sensitive:
            from corral.paths.globs import check_name_pattern

            for pattern in self.sensitive:
                check_name_pattern(pattern)

    # ---- one constructor a mode ----

    @classmethod
    def off(cls, **fields: Any) -> Policy:
        return cls(mode="off", **fields)

    @classmethod
    def read_only(cls, **fields: Any) -> Policy:
        return cls(mode="read-only", **fields)

    @classmethod
    def workspace_write(cls, **fields: Any) -> Policy:
        return cls(mode="workspace-write", **fields)

    @classmethod
    def casual(cls, **fields: Any) -> Policy:
        return cls(mode="casual", **fields)

    @classmethod
    def bare(cls, **fields: Any) -> Policy:
        return cls(mode="bare", **fields)

    @classmethod
    def strict(cls, **fields: Any) -> Policy:
        return cls(mode="strict", **fields)

    @classmethod
    def load(cls, profile: str | None = None, project: str | None = None) -> Policy:
        """The user's config, the profile, and the project's file on top (which can only tighten)."""
        from corral.config import load_policy

        return load_policy(profile=profile, project=project)

    # ---- other policies from this one ----

    def allow(self, *grants: Grant) -> Policy:
        """Wider by these grants. For the host's side only; nothing inside a jail can call it."""
        return self.replace(grants=(*self.grants, *grants))

    def __and__(self, other: Policy) -> Policy:
        """The tighter of two, field by field: for nesting and for project files."""
        if other.mode in _TIGHTER[self.mode]:
            mode = self.mode
        elif self.mode in _TIGHTER[other.mode]:
            mode = other.mode
        else:
            raise PolicyError(
                f"modes {self.mode} and {other.mode} cannot be combined: neither is the tighter"
            )
        if "auto" not in (self.backend, other.backend) and self.backend != other.backend:
            raise PolicyError(f"backends {self.backend} and {other.backend} cannot both be meant")
        return Policy(
            mode=mode,
            roots=tuple(r for r in self.roots if r in other.roots),
            writable=None if mode == "read-only" else _common_globs(self.writable, other.writable),
            grants=_common_grants(self.grants, other.grants),
            unhide=tuple(p for p in self.unhide if p in other.unhide),
            environment=_common_rules(self.environment, other.environment),
            network="off" if "off" in (self.network, other.network) else "open",
            limits=self.limits.tightest(other.limits),
            require=self.require or other.require,
            backend=self.backend if other.backend == "auto" else other.backend,
            demands=tuple(dict.fromkeys((*self.demands, *other.demands))),
            unix_sockets=self.unix_sockets and other.unix_sockets,
            shared_memory=self.shared_memory and other.shared_memory,
            trust_prefix=self.trust_prefix and other.trust_prefix,
            output_limit=min(self.output_limit, other.output_limit),
            wide_globs=self.wide_globs and other.wide_globs,
            sensitive=tuple(dict.fromkeys((*self.sensitive, *other.sensitive))),
            approval=self.approval & other.approval,
            related_context=tuple(p for p in self.related_context if p in other.related_context),
            jail=_same("jails", self.jail, other.jail),
            storage=_same("storage directories", self.storage, other.storage),
            review=self.review or other.review,
            grant_root=self.grant_root and other.grant_root,
        )

    # ---- as data ----

    def to_dict(self) -> dict[str, Any]:
        def plain(value: Any) -> Any:
            if isinstance(value, Record):
                return {name: plain(getattr(value, name)) for name in value._fields}
            return [plain(v) for v in value] if isinstance(value, tuple) else value

        return {name: plain(getattr(self, name)) for name in self._fields}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Policy:
        for name in fields:
            _known("field", name, cls._fields)
        given: dict[str, Any] = dict(fields)
        parts: dict[str, Any] = {"grants": Grant, "environment": EnvRule}
        for name, part in parts.items():
            if name in given:
                given[name] = tuple(_part(part, item) for item in given[name])
        if "limits" in given:
            given["limits"] = _part(Limits, given["limits"])
        if "approval" in given:
            given["approval"] = Approval.from_dict(given["approval"])
        for name in ("roots", "writable", "unhide", "demands", "sensitive", "related_context"):
            if given.get(name) is not None:
                given[name] = tuple(given[name])
        return cls(**given)

    @property
    def demanded(self) -> tuple[str, ...]:
        """Every claim that must hold for this policy to be enforced, in the order of the table."""
        if self.mode == "off":
            return ()
        wanted = {*claims.ALWAYS, *self.demands}
        if self.network == "off":
            wanted.update(claims.NETWORK_OFF)
        if any(g.access == "hide" for g in self.grants):
            wanted.add("hidden")
        return tuple(name for name in claims.CLAIMS if name in wanted)

    def explain(self, argv: Sequence[str], cwd: str | None = None) -> Plan:
        """The plan for this command on this host. Runs nothing."""
        from corral.environment.local import LocalEnvironment

        with LocalEnvironment(cwd or ".", self) as environment:
            return environment.plan(argv)


def _part(kind: Any, fields: dict[str, Any]) -> Any:
    for name in fields:
        _known("field", name, kind._fields)
    missing = [name for name in kind._fields if name not in fields and name not in kind._defaults]
    if missing:
        raise PolicyError(f"{kind.__name__} needs {', '.join(missing)}")
    return kind(**fields)


def _same(what: str, a: str | None, b: str | None) -> str | None:
    if None not in (a, b) and a != b:
        raise PolicyError(f"{what} {a} and {b} cannot both be meant")
    return b if a is None else a


def _common_grants(a: tuple[Grant, ...], b: tuple[Grant, ...]) -> tuple[Grant, ...]:
    """Writable only where both say so; what either hides or makes read-only stays that way."""

    def settled(grants: tuple[Grant, ...]) -> dict[str, Grant]:
        left: dict[str, Grant] = {}
        for grant in grants:
            if grant.access == "none":
                left.pop(grant.path, None)
            elif grant.access != "hide":
                left[grant.path] = grant
        return left

    one, two = settled(a), settled(b)
    writable = [g for path, g in one.items() if g.access == "rw" and two.get(path) == g]
    narrow = [g for g in (*one.values(), *two.values()) if g.access == "ro"]
    hidden = [g for g in (*a, *b) if g.access == "hide"]
    return tuple(dict.fromkeys((*writable, *narrow, *hidden)))


def _common_rules(a: tuple[EnvRule, ...], b: tuple[EnvRule, ...]) -> tuple[EnvRule, ...]:
    """What either side drops is dropped: one list, the other's drops, and what both keep by its own name after all."""
    if a == b:
        return a
    drops = tuple(rule for rule in b if rule.verb == "drop")
    named = dict.fromkeys(rule for rule in (*a, *b) if rule.verb != "drop" and not _is_pattern(rule.name))
    one, two = Scrubber(a), Scrubber(b)
    kept = tuple(rule for rule in named if one.keeps(rule.name) and two.keeps(rule.name))
    return (*a, *drops, *(rule for rule in kept if rule.verb == "keep" or (rule in a and rule in b)))


def _is_pattern(name: str) -> bool:
    return "*" in name or "\\" in name


def _common_globs(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if a is None or b is None:
        return b if a is None else a
    common = tuple(glob for glob in a if glob in b)
    if not common:
        raise PolicyError("the two lists of writable globs have none in common; nothing would be writable")
    return common
