"""Review on an environment: what its commands and files changed in a copy, applied or thrown away by the host."""

from __future__ import annotations

from corral.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.changes import Applied, Change, Layers
    from corral.environment.gate import Gate


def reviewed_layers(gate: Gate) -> Layers:
    """Of the workspace under review, otherwise of the copied home."""
    from corral.environment.keeping import layers_of

    found = layers_of(gate.enclosure)
    if not found:
        raise PolicyError(
            f"mode {gate.policy.mode} changes the workspace itself; there is nothing to review "
            "(Policy(review=True), or mode casual for home)"
        )
    return found[-1]


def changes(gate: Gate) -> list[Change]:
    from corral.changes import list_changes

    return list_changes(reviewed_layers(gate))


def apply(gate: Gate, paths: Sequence[str] | None, *, allow_exec: bool) -> Applied:
    """Nothing may run meanwhile: the copy is taken down, and set up again for the next command."""
    from corral.changes import apply as apply_layers

    layers = reviewed_layers(gate)
    with gate.left():
        return apply_layers(layers, paths, allow_exec=allow_exec)


def discard(gate: Gate, paths: Sequence[str] | None) -> list[Change]:
    from corral.changes import discard as discard_layers

    layers = reviewed_layers(gate)
    with gate.left():
        return discard_layers(layers, paths)
