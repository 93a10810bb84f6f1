"""Wrong launchers, as real programs: those that do not jail at all, and those that leave one thing out."""

from __future__ import annotations

import os
from pathlib import Path

from corral.jail.host import launcher_path
from jail.world import PYTHON
from launcher.table import OPERATIONS

# What a program finds: the steps of the plan it was given, the command, and how to go on with the real launcher.
PRELUDE = f"""#!{PYTHON} -IS
import json, os, resource, signal, socket, subprocess, sys, time

OPERANDS = { ({name: len(kinds) for name, kinds in OPERATIONS.items()})!r}
words = sys.argv[1:]
steps = []
while words[0] != "--":
    count = 1 + OPERANDS[words[0]]
    steps.append(words[:count])
    words = words[count:]
command = words[1:]
wanted = json.loads(command[-1])["attempts"]

def go_on(steps, command=command):
    real = {launcher_path()!r}
    os.execv(real, [real, *(word for step in steps for word in step), "--", *command])

def without(*operations):
    '''And without the steps that use what a missing one would have filled.'''
    fills = ("open", "fd", "mount", "overlay", "tree", "make")
    uses = dict(open=[2], tree=[2], make=[2], overlay=[2, 3], attach=[1, 2])
    uses |= dict.fromkeys(("whiteout", "chdir", "keep", "allow", "status", "life"), [1])
    kept, empty = [], set()
    for step in steps:
        if step[0] in operations or any(step[n] in empty for n in uses.get(step[0], ())):
            empty.update(step[1:2] if step[0] in fills else ())
        else:
            kept.append(step)
    return kept

def slot_of_root():
    return next(step[1] for step in steps if step[0] == "open" and step[3] == "/")

def forged():
    '''What an honest jail would say.'''
    return json.dumps({{name: "" if name.startswith("may_") else "PermissionError: no" for name in wanted}})

"""


def program(directory: Path, source: str) -> str:
    path = directory / "corral-launch"
    path.write_text(PRELUDE + source)
    path.chmod(0o755)
    return os.fspath(path)


# ---- those that do not jail ----

PLAIN_EXEC = "os.execvp(command[0], command)"

# A plain exec whose traces are wiped away: what is said is forged, what is done is not.
PLAIN_EXEC_AND_FORGED = """
subprocess.run(command, stdout=subprocess.DEVNULL)
print(forged(), flush=True)
"""

NOT_JAILING = {
    "execs the command as it is": PLAIN_EXEC,
    "does nothing and says it went well": "sys.exit(0)",
    "does nothing and fails": "sys.exit(125)",
    "dies of a segmentation fault": """
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.kill(os.getpid(), signal.SIGSEGV)
""",
    "never comes to an end": "time.sleep(300)",
    "closes its output and never comes to an end": "os.close(1); time.sleep(300)",
    "says nothing of use": "print('all is well')",
    "says half of an answer": "print(forged()[:-20])",
    "says a list": "print('[]')",
    "says numbers": "print(json.dumps(dict.fromkeys(wanted, 0)))",
    "says everything was refused, controls too": "print(json.dumps(dict.fromkeys(wanted, 'PermissionError')))",
    "says everything worked": "print(json.dumps(dict.fromkeys(wanted, '')))",
    "forges the answer and runs nothing": "print(forged())",
    "forges the answer and runs the command as it is": PLAIN_EXEC_AND_FORGED,
}


# ---- those that leave one thing out ----


def leaving_out(*operations: str) -> str:
    return f"go_on(without(*{operations!r}))"


def granting_everywhere(bits: int) -> str:
    """This right is granted on `/`, as if it had been left out of what the ruleset handles."""
    return f"""
root = slot_of_root()
for step in steps:
    if step[:2] == ["allow", root]:
        step[2] = str(int(step[2]) | {bits})
go_on(steps)
"""


def with_operand(operation: str, index: int, expression: str) -> str:
    """`was` is what stood there."""
    return f"""
for step in steps:
    if step[0] == {operation!r}:
        was = int(step[{index}])
        step[{index}] = str({expression})
go_on(steps)
"""
