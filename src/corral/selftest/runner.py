"""Run the cases: once without a jail, to see what is possible here at all, and once in it."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import time

from corral.errors import NotEnforceable
from corral.jail.bait import is_readable
from corral.jail.host import this_host
from corral.jail.ladder import choose
from corral.jail.probe import interpreter
from corral.policy import HOME_MODES, Policy
from corral.record import Record
from corral.selftest import GROUPS, case, limits
from corral.selftest.case import Case, cases_of
from corral.selftest.scene import Scene
from corral.state import homes, made_state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # From the scene to the words in front of the program that tries the cases.
    Front = Callable[[Scene], list[str]]

TIMEOUT = 30.0
ENTRY = "import sys; from corral.cli import main; sys.exit(main())"
# Only the host can tell whether these worked.
SEEN_OUTSIDE = (("leftovers", "daemon"), ("network", "udp"))


class Result(Record):
    """One case. ``verdict``: held, BROKEN, not covered (the tier does not promise it), or impossible (here it cannot be
    done without a jail either, so that a refusal would say nothing)."""

    group: str
    name: str
    tried: str
    must: str
    claim: str
    happened: str
    verdict: str


class Report(Record):
    mode: str
    backend: str
    results: tuple[Result, ...]
    changed: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.changed and all(result.verdict != "BROKEN" for result in self.results)


def every_case() -> list[tuple[str, Case]]:
    modules = ((group, importlib.import_module(f"corral.selftest.{group}")) for group in GROUPS)
    return [(group, one) for group, module in modules for one in cases_of(module)]


def selftest(mode: str = "workspace-write", backend: str = "auto", *, front: Front | None = None) -> Report:
    """``front``: for tests, another way in than `corral run`."""
    policy = Policy(mode=mode, backend=backend, network="off")  # type: ignore[arg-type]
    choice = choose(policy, this_host((homes() or ("/",))[0], made_state_directory()))
    if choice.backend == "none":
        raise NotEnforceable("mode off has no jail to test; name another with --mode")
    possible, _ = _try(lambda _: [], home_is_real=True, udp_counts=True)
    entrance = front or (lambda scene: corral_run(scene, mode, choice.backend))
    answers, changed = _try(entrance, home_is_real=mode not in HOME_MODES, udp_counts=False)
    promised = {*choice.covered, ""}
    results = [_judged(group, one, possible, answers, promised) for group, one in every_case()]
    broken_writes = [path for path in changed if "writes" in promised and not _only_metadata(promised, path)]
    return Report(mode, choice.backend, tuple(results), tuple(broken_writes))


def corral_run(scene: Scene, mode: str, backend: str) -> list[str]:
    sized = ["--limit", f"file-size={limits.FILE_SIZE}", "--limit", f"open-files={limits.OPEN_FILES}"]
    options = ["-m", mode, "--backend", backend, "--network", "off", "--cd", scene.bait.inside, *sized]
    options += ["--hide", "hidden"] if backend == "namespaces" else []
    options += (
        ["--rw", scene.bait.inside] if mode == "read-only" else []
    )  # what must work has to work somewhere
    return [sys.executable, "-c", ENTRY, "run", "--quiet", *options, "--"]


def _only_metadata(promised: set[str], path: str) -> bool:
    """Where metadata is not promised the attempts on `victim` leave their mark."""
    return "metadata" not in promised and os.path.basename(path) == "victim"


def _judged(
    group: str,
    one: Case,
    possible: dict[tuple[str, str], str],
    answers: dict[tuple[str, str], str],
    promised: set[str],
) -> Result:
    key = (group, one.name)
    said = answers.get(key, "no answer")
    if one.must == "work":
        verdict = "held" if said == "" else "BROKEN"
    elif possible.get(key) != "":
        verdict = "impossible"
    elif one.claim not in promised:
        verdict = "not covered"
    else:
        verdict = "held" if said not in ("", "no answer") else "BROKEN"
    return Result(group, one.name, one.tried, one.must, one.claim, said or "it worked", verdict)


# ---- one run ----


def _try(
    front: Front, *, home_is_real: bool, udp_counts: bool
) -> tuple[dict[tuple[str, str], str], list[str]]:
    """What each case said, empty if it worked; and what was changed outside."""
    with Scene(home_is_real=home_is_real, udp_counts=udp_counts) as scene:
        output, was_left = _run(scene, front(scene))
        answers = {(group, name): said for group, name, said in map(json.loads, output.splitlines())}
        for key, worked in zip(SEEN_OUTSIDE, (was_left, scene.packet_arrived()), strict=True):
            if key in answers:
                answers[key] = "" if worked else "the host sees nothing of it"
        return answers, scene.changed()


def _run(scene: Scene, front: list[str]) -> tuple[bytes, bool]:
    words = [*front, interpreter(), "-I", "-S", "-c", _text("inside")]
    sent = json.dumps(
        {"case": _text("case"), "groups": {group: _text(group) for group in GROUPS}, "given": scene.given()}
    )
    reader, writer = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                words,
                cwd=scene.bait.inside,
                env=scene.variables(),
                stdin=subprocess.PIPE,
                stdout=writer,
                stderr=subprocess.PIPE,
                pass_fds=scene.descriptors,
            )
        finally:
            os.close(writer)
        with process:
            output, ended = _talk(process, sent.encode(), reader)
    finally:
        os.close(reader)
    return output, not ended


def _talk(process: subprocess.Popen[bytes], sent: bytes, reader: int) -> tuple[bytes, bool]:
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin as stream:
            stream.write(sent)
        output, ended = _listen(process, reader)
    finally:
        process.kill()
    if not output:
        said = process.stderr.read().decode("utf-8", "replace").strip().removeprefix("corral: ")
        raise NotEnforceable(f"no case could be tried: {said or 'it ended without a word'}")
    return output, ended


def _listen(process: subprocess.Popen[bytes], reader: int) -> tuple[bytes, bool]:
    """All it says until it ends, and whether the stream ends with it: whoever holds it longer was left behind."""
    deadline, output = time.monotonic() + TIMEOUT, b""
    while time.monotonic() < deadline:
        if is_readable(reader, time.monotonic() + 0.02):
            piece = os.read(reader, 1 << 16)
            if not piece:
                return output, True
            output += piece
        elif process.poll() is not None:
            deadline = min(deadline, time.monotonic() + 1) if deadline - time.monotonic() > 1 else deadline
    return output, False


def _text(module: str) -> str:
    with open(os.path.join(os.path.dirname(case.__file__), f"{module}.py")) as file:
        return file.read()
