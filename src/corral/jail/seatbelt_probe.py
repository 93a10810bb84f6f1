"""The probe for macOS: the same attempts and the same bait as on Linux, under `sandbox-exec`.

Nobody has run this on a Mac yet. What cannot be laid out or tried there the way it is on Linux is not proven, and what
is not proven is not counted.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess

from corral.errors import CorralError
from corral.jail import attempts, seatbelt
from corral.jail.bait import Bait
from corral.jail.probe import LONGEST_ANSWER, TIMEOUT, TRIED, interpreter, judge, playground, policy_on
from corral.jail.proofs import Proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.policy import Policy

# Their attempts look into /proc, at mounts or at Linux's own calls.
LINUX_ONLY = (
    "metadata",
    "processes",
    "memory",
    "families",
    "abstract-sockets",
    "pathname-sockets",
    "terminal-input",
)


class MacBait(Bait):
    """Without the two kinds of sockets that are laid out by means of Linux."""

    def _lay_abstract_socket(self) -> None:
        raise OSError(errno.EAFNOSUPPORT, "there are no abstract sockets")

    def _lay_socket(self) -> None:
        raise OSError(errno.EAFNOSUPPORT, "not without /proc")


def prove(policy: Policy, *, program: str = seatbelt.SANDBOX_EXEC) -> Proof:
    """Try what the profile claims. Never raises. ``program`` stands for the system's own in tests."""
    claims = tuple(c for c in TRIED if c in seatbelt.claims(policy) and c not in LINUX_ONLY)
    try:
        with playground() as top, MacBait(top) as bait:
            tried = tuple(claim for claim in claims if claim not in bait.out_of_reach)
            failed = judge(tried, _try_inside(policy, tried, bait, program), bait)
    except (CorralError, OSError, ValueError, subprocess.SubprocessError) as error:
        failed = [(claim, f"could not be tried: {error}") for claim in claims]
    wrong = {claim for claim, _ in failed}
    return Proof(not failed, seatbelt.NAME, tuple(c for c in claims if c not in wrong), tuple(failed))


def _try_inside(policy: Policy, claims: tuple[str, ...], bait: Bait, program: str) -> dict[str, str]:
    wanted = dict.fromkeys(name for claim in claims for part in TRIED[claim] for name in part)
    if "udp" in claims:
        wanted["udp"] = None
    with open(attempts.__file__) as file:
        source = file.read()
    temp = os.path.join(bait.inside, "temp")
    os.mkdir(temp)
    profile = seatbelt.compile_profile(
        policy_on(policy, seatbelt.NAME, claims, bait), bait.inside, temp=temp, own_homes=(bait.home,)
    )
    given = json.dumps({**bait.given(), "attempts": list(wanted)})
    argv = [program, *profile.words(), "--", interpreter(), "-I", "-S", "-c", source, given]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": temp},
        timeout=TIMEOUT,
        check=False,
    )
    try:
        said = json.loads(done.stdout[:LONGEST_ANSWER])
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
