"""Who takes part, and how each is told the one policy: everything readable, one workspace writable, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PLAIN = "plain exec"
HERE = Path(__file__).resolve().parent
CODEX_BINARY = "@openai/codex-linux-*/vendor/*/bin/codex"


class Place(NamedTuple):
    """Where things are: ``tools`` holds what installing.py put there, ``home`` belongs to who measures."""

    home: str
    workspace: str
    outside: str
    tools: str

    @property
    def peers_python(self) -> str:
        return f"{self.tools}/python/bin/python"

    @property
    def node_modules(self) -> str:
        return f"{self.tools}/node/node_modules"

    @property
    def srt_settings(self) -> str:
        return f"{self.home}/srt-settings.json"


Words = Callable[[Place], list[str]]


class Contestant(NamedTuple):
    """``words``: what stands before the command on a command line. ``library``: the process that answers for it as a
    library, without the words it is given (worker.py tells what it reads). ``version``: a command that prints it."""

    name: str
    words: Words | None
    library: Words | None
    version: Words
    network: str = "off"
    remark: str = ""


# ---- command lines ----


def corral(*options: str) -> Words:
    return lambda place: [f"{sys.prefix}/bin/corral", "run", *options, "--"]


def bwrap(place: Place) -> list[str]:
    spaces = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net"]
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    own = ["--bind", place.workspace, place.workspace, "--chdir", place.workspace]
    return ["bwrap", *spaces, *view, *own, "--die-with-parent", "--new-session", "--"]


def firejail(place: Place) -> list[str]:
    # A read-only / does not reach the home directory, which firejail mounts again.
    files = ["--read-only=/", f"--read-only={place.home}", f"--read-write={place.workspace}"]
    return ["firejail", "--quiet", "--noprofile", "--private-dev", *files, "--net=none", "--"]


def systemd_run(place: Place) -> list[str]:
    properties = (
        *("PrivateUsers=yes", "ProtectSystem=strict", "ProtectHome=read-only", "PrivateTmp=yes"),
        *(f"ReadWritePaths={place.workspace}", "PrivateNetwork=yes", f"WorkingDirectory={place.workspace}"),
    )
    asked = [word for one in properties for word in ("--property", one)]
    return ["systemd-run", "--user", "--quiet", "--wait", "--pipe", "--collect", *asked, "--"]


def codex(place: Place) -> list[str]:
    """The native program: npm's `codex` only adds the start of a Node to it."""
    found = sorted(Path(place.node_modules).glob(CODEX_BINARY))
    program = str(found[0]) if found else f"{place.node_modules}/.bin/codex"
    return [program, "sandbox", "--permission-profile", ":workspace", "--cd", place.workspace, "--"]


def srt(place: Place) -> list[str]:
    return [f"{place.node_modules}/.bin/srt", "--settings", place.srt_settings]


def sdk(name: str) -> Words:
    """Its wheel brings no command: a new interpreter that imports it is its command line."""
    return lambda place: [place.peers_python, str(HERE / "worker.py"), "once", name, place.workspace]


# ---- libraries: a warm process each, so that no one's threads or heap weigh on another ----


def serving(python: Callable[[Place], str], adapter: str, words: Words | None = None) -> Words:
    def line(place: Place) -> list[str]:
        prefix = words(place) if words else []
        return [python(place), str(HERE / "worker.py"), "serve", adapter, place.workspace, *prefix]

    return line


def this_python(_: Place) -> str:
    return sys.executable


def peers_python(place: Place) -> str:
    return place.peers_python


def srt_library(place: Place) -> list[str]:
    module = f"{place.node_modules}/@anthropic-ai/sandbox-runtime/dist/index.js"
    return ["node", str(HERE / "srt_worker.mjs"), module, place.srt_settings, place.workspace]


# ---- versions ----


def says(*words: str) -> Words:
    return lambda place: list(words)


def metadata(package: str) -> Words:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return lambda place: [place.peers_python, "-c", program]


def package_json(package: str) -> Words:
    return lambda place: ["node", "-p", f"require('{place.node_modules}/{package}/package.json').version"]


def corral_version(_: Place) -> list[str]:
    return [f"{sys.prefix}/bin/corral", "--version"]


SRT = "@anthropic-ai/sandbox-runtime"

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(PLAIN, lambda place: [], serving(this_python, "words"), says("uname", "-r")),
    Contestant(
        "corral, namespaces",
        corral("-m", "workspace-write", "--backend", "namespaces", "--network", "off"),
        serving(this_python, "corral-namespaces-off"),
        corral_version,
    ),
    Contestant(
        "corral, namespaces, network open",
        None,
        serving(this_python, "corral-namespaces-open"),
        corral_version,
        network="open",
    ),
    Contestant(
        "corral, landlock",
        corral("-m", "workspace-write", "--backend", "landlock", "--network", "off"),
        serving(this_python, "corral-landlock-off"),
        corral_version,
    ),
    Contestant(
        "corral -m casual",
        corral("-m", "casual"),
        None,
        corral_version,
        network="open",
        remark="home is copy-on-write",
    ),
    Contestant("bubblewrap", bwrap, serving(this_python, "words", bwrap), says("bwrap", "--version")),
    Contestant("firejail", firejail, serving(this_python, "words", firejail), says("firejail", "--version")),
    Contestant(
        "systemd-run",
        systemd_run,
        serving(this_python, "words", systemd_run),
        says("systemd-run", "--version"),
    ),
    Contestant(
        "Codex",
        codex,
        serving(this_python, "words", codex),
        lambda place: [codex(place)[0], "--version"],
    ),
    Contestant("srt", srt, srt_library, package_json(SRT)),
    Contestant("sandlock", sdk("sandlock"), serving(peers_python, "sandlock"), metadata("sandlock")),
    Contestant("nono-py", sdk("nono"), serving(peers_python, "nono"), metadata("nono-py")),
)

# Not jails: what an interpreter alone costs, so that nobody takes it for the jail's.
REFERENCES: tuple[tuple[str, list[str]], ...] = (
    ("python3 -I -S -c pass", ["/usr/bin/python3", "-I", "-S", "-c", "pass"]),
    ("node -e 0", ["node", "-e", "0"]),
)


def prepare(place: Place) -> None:
    """What a contestant reads from a file."""
    files = {"denyRead": [], "allowWrite": [place.workspace], "denyWrite": []}
    settings = {"filesystem": files, "network": {"allowedDomains": [], "deniedDomains": []}}
    Path(place.srt_settings).write_text(json.dumps(settings))
    Path(place.outside).mkdir(exist_ok=True)


def version_of(contestant: Contestant, place: Place) -> str:
    """Its last word that begins with a digit, as `bubblewrap 0.8.0` has it."""
    words = contestant.version(place)
    if not (os.path.exists(words[0]) or shutil.which(words[0])):
        raise FileNotFoundError(f"{os.path.basename(words[0])} is not there")
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if "rror" in line]  # Node ends with its own version
        raise RuntimeError((telling or lines or [f"exit code {done.returncode}"])[-1].strip())
    first = (done.stdout.strip().splitlines() or [""])[0]
    numbers = [word.strip("()v") for word in first.split() if word.strip("()v")[:1].isdigit()]
    return numbers[0] if numbers else first
