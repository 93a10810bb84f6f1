"""Corral inside Corral: it works, in the Landlock tier, and it only ever tightens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corral
from corral import Grant
from jail.world import ENVIRONMENT, World, python

pytestmark = pytest.mark.jail

NESTED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from corral import Grant, LocalEnvironment, NotEnforceable, Policy
answers = {}
inner = Policy.workspace_write(network="open", grants=(Grant.rw(sys.argv[3]),))
with LocalEnvironment(sys.argv[2], inner) as environment:
    answers["mechanism"] = environment.posture.mechanism
    answers["inside"] = environment.shell("echo x > inner").exit_code
    answers["beside"] = environment.shell("echo x > ../beside").exit_code
    answers["granted"] = environment.shell(f"echo x > {sys.argv[3]}/granted").exit_code
    answers["signal"] = environment.shell(f"kill -0 {sys.argv[4]}").exit_code
    answers["network"] = environment.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{sys.argv[5]}"]).exit_code
print(json.dumps(answers))
"""


def test_a_nested_run_has_what_both_allow_and_no_more(backend: str, world: World) -> None:
    """The inner policy asks for the outside directory and for the network; the outer one gives neither."""
    import socket

    from jail.world import bystander

    package = Path(str(corral.__file__)).parent
    (world.workspace / "sub").mkdir()
    with bystander() as process, socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        aims = [str(world.workspace / "sub"), str(world.outside), str(process.pid), port]
        grants = (Grant.ro(str(package)),)  # wherever it is installed, also where a jail shows nothing
        with world.environment(backend, grants=grants) as environment:
            done = environment.run(python(NESTED, package.parent, *aims), env=ENVIRONMENT, timeout=30)
    assert done.exit_code == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers.pop("mechanism") == "landlock"
    assert answers.pop("inside") == 0
    assert 0 not in answers.values(), answers
    assert (world.workspace / "sub/inner").exists()
    assert not (world.workspace / "beside").exists()
    assert [path.name for path in world.outside.iterdir()] == ["victim"]
