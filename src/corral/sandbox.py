"""Sandbox: the jail as a prefix for commands that somebody else spawns, and what can be said of it.

    prefix = Sandbox(policy, root).wrap_argv(["bash", "-c", line])

The prefix is a snapshot: if a place it names is replaced before it is used, the launcher refuses and a new one is made.
"""

from __future__ import annotations

import os

from corral.errors import CorralError, NotEnforceable
from corral.jail.enclosure import Enclosure
from corral.jail.host import launcher_path, this_host
from corral.jail.ladder import RUNGS, available
from corral.jail.memory import forget
from corral.jail.site import is_below
from corral.policy import Policy
from corral.state import homes, made_state_directory
from corral.variables import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from corral.paths.places import Place

NOTICE = (
    "OS write-sandbox unavailable on this host (no Landlock/Seatbelt); shell writes are NOT OS-confined. "
    "Approval prompts + the hardline floor are the only boundary. See sandbox.mode."
)
REFUSAL = "sandbox required but unavailable on this host — set sandbox.require=false to run unconfined"


class Sandbox:
    """One policy on this host. Everything is asked anew until it is used; :meth:`reset` forgets what was found out."""

    def __init__(self, policy: Policy | None = None, root: str | os.PathLike[str] = ".") -> None:
        self.policy = policy if policy is not None else Policy.workspace_write()
        self._root = os.path.realpath(os.fspath(root))
        self._enclosure: Enclosure | None = None
        self._why_not = ""
        self._temp: tuple[Place, int] | None = None

    # ---- what is there ----

    def _asked(self) -> Enclosure | None:
        """The enclosure, or None where nothing holds the policy; then the reason is kept."""
        if self._enclosure is None and not self._why_not:
            try:
                self._enclosure = Enclosure(self._root, self.policy)
            except NotEnforceable as error:
                self._why_not = str(error)
        return self._enclosure

    @property
    def available_mechanism(self) -> str:
        """The best mechanism that is present, proven or not: namespaces, landlock or none."""
        try:
            host = this_host((homes() or ("/",))[0], made_state_directory())
        except CorralError:
            return "none"
        wanted = RUNGS if self.policy.backend == "auto" else (self.policy.backend,)
        return next((name for name in wanted if not available(name, host)), "none")

    @property
    def mode(self) -> str:
        return self.policy.mode if self.available_mechanism != "none" else "off"

    @property
    def active(self) -> bool:
        return self.policy.mode != "off" and self.available_mechanism != "none"

    @property
    def enforcing(self) -> bool:
        """Every demanded claim was tried on this host and held."""
        asked = self._asked() if self.active else None
        return asked is not None and asked.choice.enforcing

    @property
    def present_but_not_enforcing(self) -> bool:
        return self.active and not self.enforcing

    @property
    def degraded(self) -> bool:
        """A jail was asked for, and what holds is less than the mode asks."""
        if self.policy.mode == "off":
            return False
        asked = self._asked()
        return asked is None or asked.choice.backend == "none" or not asked.choice.enforcing

    @property
    def required(self) -> bool:
        return self.policy.require

    @property
    def refusal_reason(self) -> str | None:
        """Why a command is refused, or None if it may run."""
        if self.policy.mode == "off" or not self.required:
            return None
        if self.available_mechanism == "none":
            return REFUSAL
        return self._why_not or None if self._asked() is None else None

    @property
    def degradation_notice(self) -> str | None:
        return NOTICE if self.policy.mode != "off" and self.available_mechanism == "none" else None

    @property
    def status_summary(self) -> str:
        if self.policy.mode == "off":
            return "off"
        how = "required" if self.required else "best-effort"
        if self.available_mechanism == "none":
            return "OFF (unavailable, required)" if self.required else "OFF (unavailable)"
        return f"{self.mode} ({self.available_mechanism}, {how})"

    def reset(self) -> None:
        """Forget what was found out, here and for this process; ask again."""
        self.close()
        self._why_not = ""
        forget(made_state_directory())

    # ---- places ----

    def writable_roots(self, cwd: str | None = None) -> list[str]:
        """Canonical, existing, asked anew at each call; ``cwd`` grants nothing."""
        self._refresh()
        asked = self._asked()
        return [] if asked is None else [place.path for place in asked.writable]

    def is_writable(self, path: str | os.PathLike[str], cwd: str | None = None) -> bool:
        """Whether a command could write there, links resolved; what does not exist counts by where it would be."""
        where = os.path.realpath(os.path.join(cwd or self._root, os.fspath(path)))
        if self.policy.mode == "off":
            return True
        self._refresh()
        asked = self._asked()
        if asked is None or any(is_below(where, place.path) for place in asked.read_only):
            return False
        return any(is_below(where, place.path) for place in asked.writable)

    def _refresh(self) -> None:
        if self._enclosure is not None:
            self._enclosure.close()
            self._enclosure = None

    # ---- the prefix ----

    def command_prefix(self, cwd: str | None = None) -> list[str]:
        """What to put before a command; empty when the mode is off. Refuses when nothing holds the policy."""
        return self.wrap_argv(["true"], cwd)[:-1] if self.policy.mode != "off" else []

    def wrap_argv(self, argv: Sequence[str], cwd: str | None = None) -> list[str]:
        if self.policy.mode == "off":
            return list(argv)
        asked = self._asked()
        if asked is None:
            raise NotEnforceable(self._why_not)
        if asked.choice.backend == "none":
            return list(argv)
        if asked.choice.backend == "landlock" and self._temp is None:
            from corral.environment.temp import make_temp

            self._temp = make_temp(asked.writable)
            asked.use_temp(self._temp[0])
        return [launcher_path(), *asked.plan(argv, cwd, wrapped=True).inline()]

    def wrap_env(self, cwd: str | None = None) -> dict[str, str]:
        """Variables the spawner must set: what the policy sets, and the private temp directory. Names to drop are in
        the prefix, which anybody can read; values are only here."""
        if self.policy.mode == "off":
            return {}
        found = dict(scrub(self.policy.environment, {}).variables)
        if self._temp is not None:
            found["TMPDIR"] = self._temp[0].path
        return found

    extra_env = wrap_env

    # ---- ending ----

    def close(self) -> None:
        self._refresh()
        if self._temp is not None:
            from corral.environment.temp import remove_temp

            remove_temp(*self._temp)
            self._temp = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
