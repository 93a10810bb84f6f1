"""Where the cases take place: a workspace, a home with keys, a neighbour, and baits to reach for. All of it is ours."""

from __future__ import annotations

import os
import shutil
import subprocess

from corral.jail.bait import Bait
from corral.jail.probe import playground
from corral.record import Record
from corral.selftest import environment
from corral.state import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VICTIMS = ("taken", "exchanged", "linked-victim", "hard-linked", "leaked")
HOME = (".netrc", ".bashrc", "hidden")
KNOWN = ("host", "proofs")  # what is known of this host need not be found out again


class Fact(Record):
    """Something of the scene that must be as it was: path, size, mode, time, links."""

    path: str
    facts: tuple[int, ...]


class Scene:
    def __init__(self, *, home_is_real: bool, udp_counts: bool) -> None:
        self._flags = {"home_is_real": home_is_real, "udp_counts": udp_counts}
        self._place = playground()
        self.top = self._place.name
        self.bait = Bait(self.top)
        self._fds: list[int] = []

    def __enter__(self) -> Scene:
        bait = self.bait
        for directory, names in ((bait.outside, VICTIMS), (bait.home, HOME)):
            for name in names:
                with open(os.path.join(directory, name), "w") as file:
                    file.write("content\n")
        with open(os.path.join(bait.inside, "corral.toml"), "w") as file:
            file.write("# a policy that tightens nothing\n")
        self.state, self.config = (os.path.join(self.top, name) for name in ("state", "config"))
        for path in (self.state, self.config):
            os.mkdir(path, 0o700)
        for name in KNOWN:
            if os.path.isfile(os.path.join(state_directory(), name)):
                shutil.copy(os.path.join(state_directory(), name), self.state)
        bait.__enter__()
        self._bystander = subprocess.Popen(
            ["sleep", "60"], cwd=bait.outside, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self._fds = [
            os.open(os.path.join(bait.outside, "leaked"), os.O_WRONLY),
            os.open(bait.outside, os.O_RDONLY | os.O_DIRECTORY),
        ]
        self._before = self._facts()
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)
        self._bystander.kill()
        self._bystander.wait()
        self.bait.__exit__()
        self._place.cleanup()

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(self._fds)

    def given(self) -> dict[str, Any]:
        known = self.bait.given()
        return {
            **dict.fromkeys(("tcp", "udp", "abstract", "control", "terminal", "shm_key")),
            **known,
            **self._flags,
            "home": self.bait.home,
            "state": self.state,
            "config": self.config,
            "bystander": self._bystander.pid,
            "leaked_file": self._fds[0],
            "leaked_directory": self._fds[1],
        }

    def variables(self) -> dict[str, str]:
        """The caller's environment, with things in it that must not arrive."""
        planted = {**environment.SECRETS, **environment.HANDLES, **environment.INJECTION}
        own = {"HOME": self.bait.home, "CORRAL_STATE_DIR": self.state, "CORRAL_CONFIG_DIR": self.config}
        own["XDG_CACHE_HOME"] = os.path.join(self.top, "cache")
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM", "USER") if name in os.environ}
        return {**kept, **planted, **own}

    def packet_arrived(self) -> bool:
        return any(claim == "udp" for claim, _ in self.bait.seen())

    def changed(self) -> list[str]:
        """What is not as it was, outside of the workspace."""
        before, after = ({fact.path: fact for fact in facts} for facts in (self._before, self._facts()))
        return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))

    def _facts(self) -> list[Fact]:
        found = []
        for top in (self.bait.outside, self.bait.home, self.config):
            for directory, names, files in os.walk(top):
                for name in (*names, *files):
                    path = os.path.join(directory, name)
                    info = os.lstat(path)
                    facts = (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                    found.append(Fact(path, facts if not os.path.isdir(path) else facts[:1]))
        return found
