"""`corral mcp`: the tools over MCP, on standard input and output."""

from __future__ import annotations

import sys

from corral.cli.options import directory_of
from corral.cli.serving import chosen_tools, help_text, policy_of, typed
from corral.errors import NotEnforceable, PolicyError

USAGE = """usage: corral mcp [OPTION …]     an MCP server on standard input and output

It protects nothing while the client has a shell and file tools of its own: docs/mcp.md says how to take them away."""
OWN = (
    (("--tools",), "LIST", "offer only these, separated by commas"),
    (("--roots",), "", "add the roots that the client names to the workspace"),
)


def main(subcommand: str, words: list[str]) -> int:
    given = typed(subcommand, words, OWN)
    if given.parsed.has("--help"):
        print(help_text(USAGE, OWN))
        return 0
    if given.parsed.words:
        raise PolicyError(f"corral mcp takes no argument: {given.parsed.words[0]!r}; try --help")
    if sys.stdin.isatty():
        print(
            "corral: a client speaks MCP to this on its standard input; docs/mcp.md says how", file=sys.stderr
        )
    tools = chosen_tools(given.own.get("--tools"))
    directory = directory_of(given.parsed)
    policy = policy_of(given.parsed, directory)
    # The one who would say force here is the model itself.
    policy = policy.replace(approval=policy.approval.replace(allow_force=False))
    try:
        from corral.serve.mcp import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise NotEnforceable("corral mcp needs the MCP SDK, version 2: pip install 'corral[mcp]'") from None
    serve(directory, policy, tools, with_roots="--roots" in given.own)
    return 0
