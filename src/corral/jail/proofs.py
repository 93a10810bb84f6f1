"""Proofs that were made before: asked for at every start, tried once a boot. Only success is remembered."""

from __future__ import annotations

from corral.jail.host import launcher_path
from corral.jail.hostkey import host_key
from corral.jail.memory import recall, remember
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.policy import Policy


class Proof(Record):
    """``enforcing``: every claim asked for was tried and holds. ``failed``: claim and what was seen instead."""

    enforcing: bool
    backend: str
    proven: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def reason(self) -> str:
        return "; ".join(f"{claim}: {why}" for claim, why in self.failed)


def proven(policy: Policy, backend: str, claims: tuple[str, ...], state: str | None) -> Proof:
    shape = (policy.mode, policy.network, policy.unix_sockets, policy.shared_memory)
    key = (*host_key(launcher_path()), Proof._fields, backend, shape, claims)
    values = recall("proofs", key, state)
    if values is not None and len(values) == len(Proof._fields):
        return Proof(*values)
    from corral.jail.probe import prove

    proof = prove(policy, backend, claims)
    if proof.enforcing:
        remember("proofs", key, proof._values(), state)
    return proof
