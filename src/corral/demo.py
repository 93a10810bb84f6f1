"""`make demo`: a short real demonstration. Everything it shows is done by the kernel, now."""

from __future__ import annotations

import os
import sys
import tempfile

from corral import CorralError, LocalEnvironment, Policy
from corral.claims import CLAIMS


def _show(command: str, env: LocalEnvironment) -> None:
    done = env.shell(command, stderr="merged")
    print(f"\n  $ {command}")
    for line in (done.stdout.rstrip() or "(no output)").splitlines():
        print(f"    {line}")
    print(f"    exit code {done.exit_code}")


def main() -> int:
    os.environ["DEMO_API_KEY"] = "not-for-agents"
    with tempfile.TemporaryDirectory(prefix="corral-demo-") as workspace:
        try:
            env = LocalEnvironment(workspace, Policy.workspace_write())
        except CorralError as error:
            print(f"corral: {error}", file=sys.stderr)
            return 125
        with env:
            print(
                f"A jail in mode {env.posture.mode}, held by {env.posture.mechanism}, network {env.posture.network}."
            )
            print("\nA write in the workspace lands, and is there outside:")
            _show("echo hello > note.txt && cat note.txt", env)
            print(
                f"    outside: {os.path.join(workspace, 'note.txt')} exists: {os.path.exists(workspace + '/note.txt')}"
            )
            print("\nA write anywhere else is refused by the kernel:")
            _show("echo owned > ~/corral-was-here; echo owned > /etc/corral-was-here", env)
            print("\nA secret of ours is not in its environment:")
            _show('echo "DEMO_API_KEY is [${DEMO_API_KEY:-gone}]"', env)
            print("\nThere is no network, and no other process to be seen:")
            _show("cat < /dev/tcp/127.0.0.1/22; ls /proc | grep -c '^[0-9]'", env)
            plan = env.plan(["true"])
            print(f"\nWhat the kernel is told, {len(plan.steps)} steps; some of them:")
            shown = ("namespaces", "readonly", "restrict", "nocaps", "seccomp", "supervise", "init")
            for words, why in plan.steps:
                if words[0] in shown:
                    print(f"    {words[0]:<12}{why}")
            for claim in plan.not_covered:
                print(f"    not covered: {CLAIMS[claim]} ({claim})")
    print("\nNow try it on something of yours:  corral run -m workspace-write -- COMMAND")
    return 0


if __name__ == "__main__":
    sys.exit(main())
