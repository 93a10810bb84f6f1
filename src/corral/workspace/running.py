"""A command in a workspace: the policy it runs under, and the words that are run."""

from __future__ import annotations

from corral.jail.host import this_host
from corral.state import account_home, homes, made_state_directory
from corral.workspace.bootstrap import SHELL, bootstrap
from corral.workspace.exposure import exposure, home_grants
from corral.workspace.objects import seal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.policy import Policy
    from corral.workspace.metadata import Workspace


def policy_for(workspace: Workspace, policy: Policy) -> Policy:
    """With all that a run in this workspace needs. What was left loose in the object store is packed first: packs are
    out of the agent's reach."""
    seal(workspace.common)
    return opened(workspace, policy)


def opened(workspace: Workspace, policy: Policy) -> Policy:
    """As :func:`policy_for`, for looking only."""
    home = (homes() or (account_home(),))[-1]
    return policy.allow(*exposure(workspace, narrow=_can_narrow(policy)), *home_grants(home))


def _can_narrow(policy: Policy) -> bool:
    if policy.backend != "auto":
        return policy.backend != "landlock"
    return this_host((homes() or ("/",))[0], made_state_directory()).namespaces


def command_in(workspace: Workspace, command: Sequence[str]) -> tuple[str, ...]:
    return (SHELL, "-c", bootstrap(workspace, command))
