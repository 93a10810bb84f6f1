"""The ladder: which tier holds a policy on this host. Refuses, with the missing piece and the remedy, if none does."""

from __future__ import annotations

from corral import claims as claim_table
from corral.errors import NotEnforceable
from corral.jail.host import TOO_OLD
from corral.policy import HOME_MODES
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.jail.host import Host
    from corral.jail.proofs import Proof
    from corral.policy import Policy

RUNGS = ("namespaces", "landlock", "systemd-run")
# Only a file system view of one's own has room for another home.
HOME_RUNGS = ("namespaces",)

# What to do about a missing rung, by the first word of the reason; {} is what opens user namespaces here.
REMEDIES = {
    "namespaces": "allow user namespaces ({})",
    "old": "use a kernel from 5.12 on",
    "landlock": "use a kernel from 6.2 on with landlock in its lsm= list",
    "systemd-run": "log in where a systemd user manager with a message bus runs, and may make user namespaces",
    "seatbelt": "that tier is macOS's own; leave the backend to Corral",
}
GROUP_REMEDY = (
    "start it where a control group may be made, which `corral doctor` tells, or do not demand memory-limit"
)


def _with_newest_landlock(host: Host) -> Host:
    return host.replace(abi=99)


class Choice(Record):
    """The tier taken, what it holds of the table, and why the better ones were passed over."""

    backend: str
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]
    passed_over: tuple[str, ...] = ()
    proof: Proof | None = None

    @property
    def enforcing(self) -> bool:
        """Every demanded claim was tried on this host and held."""
        return self.proof is not None and self.proof.enforcing


def available(backend: str, host: Host) -> str:
    """Empty, or why this tier is not there."""
    if backend == "namespaces":
        return host.no_namespaces
    if backend == "systemd-run":
        from corral.jail import systemd

        return systemd.missing()
    if backend == "seatbelt":
        from corral.jail import seatbelt

        return seatbelt.missing()
    return "" if host.abi >= 1 else "the kernel has no Landlock, or it is not enabled"


def _unfit(backend: str, policy: Policy) -> str:
    """Why this tier has no room for the mode, whatever it holds otherwise."""
    if policy.mode in HOME_MODES and backend not in HOME_RUNGS:
        return f"mode {policy.mode} needs a home of its own, which only the namespaces tier can make"
    if policy.review and backend not in HOME_RUNGS:
        return "a review needs a copy of the workspace, which only the namespaces tier can make"
    return ""


def _uncopied(policy: Policy, host: Host) -> str:
    if (policy.mode == "casual" or policy.review) and host.no_overlay:
        return f"no directory can be copied ({host.no_overlay})"
    return ""


def held(backend: str, policy: Policy, host: Host) -> set[str]:
    """What the tier says it holds, and whether the kernel counts all memory of a run that has a limit."""
    claimed = _claimed(backend, policy, host)
    return claimed | {"memory-limit"} if _counts_memory(backend, policy) else claimed


def _counts_memory(backend: str, policy: Policy) -> bool:
    if policy.limits.memory is None:
        return True  # there is nothing to escape
    if backend == "seatbelt":
        return False
    if backend == "systemd-run":
        from corral.jail.properties import delegated

        return "memory" in delegated()
    from corral.jail.cgroups import usable_delegation

    return usable_delegation() is not None


def _claimed(backend: str, policy: Policy, host: Host) -> set[str]:
    from corral.jail import landlock, namespaces

    if backend == "systemd-run":
        from corral.jail import systemd

        return systemd.claims(policy, host)
    if backend == "seatbelt":
        from corral.jail import seatbelt

        return seatbelt.claims(policy)
    return namespaces.claims(policy, host) if backend == "namespaces" else landlock.claims(policy, host)


def choose(
    policy: Policy,
    host: Host,
    demanded: tuple[str, ...] | None = None,
    prover: Callable[[str, tuple[str, ...]], Proof] | None = None,
) -> Choice:
    """The best tier that holds what is demanded and, with a prover, is seen to hold it. What a tier claims and does not
    show is not counted as covered, demanded or not."""
    if policy.mode == "off":
        return Choice("none", (), tuple(claim_table.CLAIMS))
    wanted = policy.demanded if demanded is None else demanded
    reasons: list[str] = []
    rungs = HOME_RUNGS if policy.mode in HOME_MODES or policy.review else RUNGS
    for backend in rungs if policy.backend == "auto" else (policy.backend,):
        missing = _unfit(backend, policy) or available(backend, host) or _uncopied(policy, host)
        if missing:
            reasons.append(f"{backend}: {missing}")
            continue
        holds = held(backend, policy, host)
        lacking = [claim for claim in wanted if claim not in holds]
        if lacking and policy.require:
            reasons += [f"{backend}: {claim_table.CLAIMS[claim]} ({claim})" for claim in lacking]
            continue
        proof = None
        if prover is not None:
            proof = prover(backend, tuple(c for c in claim_table.CLAIMS if c in holds))
            holds = set(proof.proven)
            broken = _told_once([(claim, why) for claim, why in proof.failed if claim in wanted])
            if broken and policy.require:
                reasons.append(f"{backend}: present but not enforcing: {'; '.join(broken)}")
                continue
            proof = proof.replace(enforcing=not broken)
        covered = tuple(c for c in claim_table.CLAIMS if c in holds)
        not_covered = tuple(c for c in _relevant(policy, wanted) if c not in holds)
        return Choice(backend, covered, not_covered, tuple(reasons), proof)
    if not policy.require:
        return Choice("none", (), tuple(claim_table.CLAIMS), tuple(reasons))
    tried = dict.fromkeys(reason.split(":")[0] for reason in reasons)
    old = host.no_namespaces == TOO_OLD
    helpful = [
        name
        for name in tried
        if not _unfit(name, policy)
        and (name != "landlock" or set(wanted) <= held("landlock", policy, _with_newest_landlock(host)))
    ]
    remedies = "; or ".join(REMEDIES["old" if old and name == "namespaces" else name] for name in helpful)
    if "memory-limit" in wanted and not any(_counts_memory(name, policy) for name in tried):
        remedies = GROUP_REMEDY
    if "{}" in remedies:
        from corral.jail.closed import namespace_remedy

        remedies = remedies.format(namespace_remedy())
    remedies = remedies or "only the namespaces tier holds this; leave the backend to Corral"
    what = f"mode {policy.mode}" if policy.mode in HOME_MODES else "the policy"
    raise NotEnforceable(f"this host cannot hold {what}: {'; '.join(reasons)}. Remedy: {remedies}")


def _told_once(failed: list[tuple[str, str]]) -> list[str]:
    """Each reason with the claims that failed by it."""
    reasons = dict.fromkeys(why for _, why in failed)
    return [f"{', '.join(c for c, w in failed if w == why)} ({why})" for why in reasons]


def _relevant(policy: Policy, wanted: tuple[str, ...]) -> list[str]:
    """Claims that mean something under this policy: an open network is no gap, it was asked for, and where nothing is
    hidden or narrowed nothing can come back."""
    moot = set(claim_table.NETWORK_OFF[:2]) if policy.network == "open" else set()
    moot |= {"hidden", "read-only-inside"} - set(wanted)
    return [claim for claim in claim_table.CLAIMS if claim not in moot]
