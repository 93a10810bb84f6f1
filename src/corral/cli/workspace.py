"""`corral workspace new|list|remove`: git worktrees for agents."""

from __future__ import annotations

import os

from corral.cli import harmless
from corral.errors import PolicyError
from corral.workspace import Identity, Workspace, create, remove, workspaces

USAGE = """usage: corral workspace new NAME [--repository DIR] [--base COMMIT] [--directory DIR]
                            [--name NAME] [--email ADDRESS] [--path DIR …]
       corral workspace list [--json]
       corral workspace remove [--force] NAME

A worktree of its own for an agent, on the branch corral/NAME/work. Run in it with corral run --workspace NAME …

  --repository DIR   cut it from the repository of DIR (default: of the working directory)
  --base COMMIT      start at this commit, branch or tag (default: what is checked out there)
  --directory DIR    put the worktree into DIR (default: ~/.local/share/corral/workspaces)
  --name, --email    who the agent's commits are by
  --path DIR         in front of PATH inside (may repeat; default: ~/.local/bin and the shims of mise)
  --force            remove it though it has commits or changes that are nowhere else"""

_OPTIONS = ("--repository", "--base", "--directory", "--name", "--email", "--path")


def main(_: str, words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help") or "--help" in words[1:]:
        print(USAGE)
        return 0 if words else 2
    verbs = {"new": _new, "list": _list, "remove": _remove}
    if words[0] not in verbs:
        from corral.policy import nearest

        raise PolicyError(
            f"corral workspace knows {', '.join(verbs)}, not {words[0]!r}{nearest(words[0], verbs)}; try --help"
        )
    return verbs[words[0]](words[1:])


def _new(words: list[str]) -> int:
    name, options = _parsed(words)
    identity = Identity()
    for field, given in (("name", options["--name"]), ("email", options["--email"])):
        identity = identity.replace(**{field: given[-1]}) if given else identity
    prepend = tuple(os.path.abspath(os.path.expanduser(path)) for path in options["--path"])
    made = create(
        name,
        _last(options["--repository"], "."),
        base=_last(options["--base"], "HEAD"),
        directory=_last(options["--directory"], "") or None,
        identity=identity,
        path_prepend=prepend or None,
    )
    print(f"{made.path} on {made.branch}\nrun in it: corral run --workspace {made.name} -- COMMAND")
    return 0


def _parsed(words: list[str]) -> tuple[str, dict[str, list[str]]]:
    options: dict[str, list[str]] = {option: [] for option in _OPTIONS}
    names: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, has_value, value = word.partition("=")
        if option in options and (has_value or rest):
            options[option].append(value if has_value else rest.pop(0))
        elif word.startswith("-"):
            raise PolicyError(
                f"corral workspace new does not take {word}, or not without a value; try --help"
            )
        else:
            names.append(word)
    if len(names) != 1:
        raise PolicyError("corral workspace new takes one name")
    return names[0], options


def _last(values: list[str], default: str) -> str:
    return values[-1] if values else default


def _list(words: list[str]) -> int:
    if words not in ([], ["--json"]):
        raise PolicyError(f"corral workspace list takes --json and nothing else, not {' '.join(words)}")
    found = workspaces()
    if words:
        import json

        print(json.dumps([_plain(workspace) for workspace in found], indent=2))
        return 0
    for workspace in found:
        gone = "" if os.path.isdir(workspace.path) else "  (gone)"
        print(
            harmless(
                f"{workspace.name:<16} {workspace.branch:<24} {workspace.path}  of {workspace.repository}{gone}"
            )
        )
    return 0


def _plain(workspace: Workspace) -> dict[str, object]:
    shown = ("name", "path", "repository", "branch", "base")
    return {name: getattr(workspace, name) for name in shown} | {"exists": os.path.isdir(workspace.path)}


def _remove(words: list[str]) -> int:
    force = "--force" in words
    names = [word for word in words if word != "--force"]
    if len(names) != 1 or names[0].startswith("-"):
        raise PolicyError("corral workspace remove takes one name, and --force if its work may be lost")
    gone = remove(names[0], force=force)
    print(f"removed {gone.path} and the branches below {gone.refs}")
    return 0
