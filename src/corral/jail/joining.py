"""Joining: one jail for all commands of an environment.

The first command makes it: the whole plan is carried out for a process that only waits, so that the jail stays. Every
command then enters its namespaces, and is fenced as any other from there on: Landlock, capabilities, filter.

Signals are not scoped by Landlock here. The PID namespace keeps them in, and commands of one jail may stop what an
earlier one left.
"""

from __future__ import annotations

import os
import select
from _thread import allocate_lock

from corral.errors import NotEnforceable
from corral.jail import fence, kernel, namespaces
from corral.jail.ground import WAITING, Ground, add_held
from corral.jail.kernel import CLONE_NEW
from corral.jail.launch import Launch
from corral.jail.stdio import Pipes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.enclosure import Enclosure
    from corral.jail.fence import Rules
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Site
    from corral.policy import Policy


def compile_plan(draft: Draft, policy: Policy, site: Site, host: Host) -> None:
    """Into the jail that ``site.ground`` has; places are opened by their paths inside, and compared."""
    rules: Rules = []
    kept = fence.add_streams(draft, site, rules)
    fence.add_devices(draft, rules, site.devices, inline=False)
    held = add_held(draft, site.ground)
    draft.add("close", why="close every other descriptor")
    fence.add_limits(draft, policy, site.group)
    for kind, slot in held:
        draft.add("enter", slot, CLONE_NEW[kind], why=f"into the {kind} namespace of this environment")
    draft.add(
        "join", why="a child goes on inside; what it leaves there stays until the environment is closed"
    )
    fence.add_group(draft, site)
    if policy.limits.processes is not None:
        limit = policy.limits.processes
        draft.add("rlimit", kernel.RLIMIT["processes"], limit, why=f"at most {limit} processes")
    scopes = 0 if policy.network == "off" else kernel.SCOPE_ABSTRACT
    namespaces.add_fence(draft, policy, site, host, rules, kept, site.cwd.path, scopes)


class SharedJail:
    """Made when it is first needed, gone with all that runs in it when it is closed."""

    def __init__(self, enclosure: Enclosure) -> None:
        choice, host = enclosure.choice, enclosure.host
        if choice.backend != "namespaces":
            why = "; ".join(choice.passed_over) or f"this policy takes {choice.backend}"
            raise NotEnforceable(
                f'lifetime="environment" needs the namespaces tier, which has a jail to share ({why}); use '
                'lifetime="command" and background jobs'
            )
        if host.no_proc:
            raise NotEnforceable(
                f'lifetime="environment" needs a process list of its own (/proc: {host.no_proc}); use '
                'lifetime="command" and background jobs'
            )
        self._enclosure = enclosure
        self._lock = allocate_lock()
        self._holder: Launch | None = None
        self._stdio: Pipes | None = None
        self._ground: Ground | None = None

    def ground(self) -> Ground:
        with self._lock:
            if self._ground is None:
                self._ground = self._make()
            elif self._is_gone():
                raise NotEnforceable("the jail of this environment was ended from outside; open it anew")
            return self._ground

    def _make(self) -> Ground:
        plan, words = self._enclosure.launchable(WAITING, ground=self._enclosure.staged_ground())
        if self._enclosure.policy.mode == "strict":
            # The launcher lies outside the root that the rules are about. It only waits, and commands bring their own.
            plan = plan.without("ruleset", "allow", "port", "restrict")
            words = plan.encode()
        stdio = self._stdio = Pipes(has_input=True, merged=True)
        holder = self._holder = Launch(plan, words, {}, stdio, None)
        while not holder.running and not holder.read_status():
            pass
        if not holder.running:
            holder.close()
            holder.verdict(lambda: b"")
        os.read(stdio.output, 1)  # it is inside, and waits
        home = self._enclosure.home
        kinds = ["mnt", "pid", "ipc", *(["net"] if self._enclosure.policy.network == "off" else [])]
        if home is None or home.owners < 0:
            kinds.insert(0, "user")
        inside = _child_of(_child_of(str(holder.pid)))
        return Ground(
            tuple((kind, os.open(f"/proc/{inside}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)) for kind in kinds)
        )

    def _is_gone(self) -> bool:
        assert self._holder is not None
        poll = select.poll()
        poll.register(self._holder.status, select.POLLIN)
        return bool(poll.poll(0)) and self._holder.read_status()

    def close(self) -> None:
        if self._ground is not None:
            self._ground.close()
            self._ground = None
        if self._holder is not None:
            self._holder.end()
            self._holder.close()
            self._holder = None
        if self._stdio is not None:
            self._stdio.close()
            self._stdio = None


def _child_of(pid: str) -> str:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()[0]
