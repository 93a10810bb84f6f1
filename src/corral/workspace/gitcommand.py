"""git, run on the host on a repository whose config nobody vouches for: what it names is never executed.

Config is the way in: hooks, fsmonitor, filters, ssh commands, helpers. All of it is overridden by variables, which
count more than any file, and the user's own config is not read.
"""

from __future__ import annotations

import os
import subprocess

from corral.errors import CorralError, PolicyError

TIMEOUT = 600

# Keys whose value git runs, or that make it run something, in any command we use.
OVERRIDDEN: dict[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.alternateRefsCommand": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "diff.external": "",
    "gpg.program": "false",
    "commit.gpgSign": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "rerere.enabled": "false",
}
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
# What makes a filter do nothing. Their names are the repository's to choose.
_FILTER = {"smudge": "", "clean": "", "process": "", "required": "false"}


class GitFailed(CorralError, RuntimeError):
    """git said no; the message holds the command and the last line of what it said, ``said`` all of it."""

    def __init__(self, message: str, *, path: str, said: str = ""):
        super().__init__(message, path=path)
        self.said = said


def git(git_directory: str, *words: str, stdin: bytes = b"", filters: tuple[str, ...] = ()) -> str:
    """What it prints. ``filters``: names of filters that must not run, for commands that write files."""
    done = _run(git_directory, words, stdin, filters)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        last = said.split("\n")[-1] or f"exit status {done.returncode}"
        raise GitFailed(f"git {' '.join(words[:2])}: {last}", path=git_directory, said=said)
    return os.fsdecode(done.stdout)


def filters_of(git_directory: str) -> tuple[str, ...]:
    """Names of the filters that the repository's config defines. Reading config runs nothing."""
    done = _run(git_directory, ("config", "--null", "--name-only", "--get-regexp", r"^filter\."), b"", ())
    keys = os.fsdecode(done.stdout).split("\0") if done.returncode == 0 else []
    return tuple(dict.fromkeys(key.split(".", 1)[1].rpartition(".")[0] for key in keys if key.count(".") > 1))


def _run(
    git_directory: str, words: tuple[str, ...], stdin: bytes, filters: tuple[str, ...]
) -> subprocess.CompletedProcess[bytes]:
    settings = [*OVERRIDDEN.items()]
    settings += [(f"filter.{name}.{part}", value) for name in filters for part, value in _FILTER.items()]
    variables = {**_VARIABLES, "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), "HOME": "/"}
    variables["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{number}"], variables[f"GIT_CONFIG_VALUE_{number}"] = key, value
    try:
        return subprocess.run(
            ["git", f"--git-dir={git_directory}", *words],
            cwd="/",
            env=variables,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT,
        )
    except FileNotFoundError:
        raise PolicyError("a workspace needs git, and there is none on PATH; install it") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]}: no end after {TIMEOUT} s", path=git_directory) from None
