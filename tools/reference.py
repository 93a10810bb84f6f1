"""The reference pages, made from the code. A hook of mkdocs: each build makes them anew, none is kept."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import corral
from corral import claims
from corral.cli import manual
from corral.config.default import default_text
from corral.config.schema import ALIASES, KEYS, NEVER_IN_PROJECTS, SETTINGS
from corral.errors import CorralError
from corral.jail import ladder
from corral.jail.host import Host
from corral.policy import MODES, Policy
from corral.record import Record
from corral.selftest.runner import every_case
from corral.tools import registry

# The Landlock ABIs at which something changes, and the kernel that brought each.
KERNELS = {1: "5.13", 3: "6.2", 4: "6.7", 5: "6.10", 6: "6.12", 9: "7.1"}
PROTECTION = """\
Made from the claims that each tier makes: what a command is kept from, and from which kernel on. **no** is a gap:
`corral status` and every result list it as `not_covered`, and a policy that [demands](../concepts.md#claims) the claim
is refused there. `corral selftest` [tries them](../selftest.md) on your machine."""
TESTED = ("namespaces", "landlock")
TRIED = """\
Every case of `corral selftest`, and what must come of it on the newest kernel, with the network off and, in read-only,
one directory that may be written. **no**: this tier does not promise it. The test suite runs all of them in every mode
and tier; `corral selftest --mode MODE --backend TIER` does on your machine."""
REQUIRED = object()
STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
ASYNC = ("AsyncLocalEnvironment", "AsyncProcess", "AsyncJob")


def on_files(files: Any, *, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    return files


# ---- command line ----


def command_line() -> str:
    parts = [
        "# Command line",
        "Made from the help texts. Exit codes are in [concepts](../concepts.md#exit-codes-of-corral-run).",
        table(
            ["command", "what it does"],
            ([f"[{e.name}](#corral-{e.name})", e.summary] for e in manual.entries()),
        ),
    ]
    for entry in manual.entries():
        parts += [f"## corral {entry.name}", "```text\n" + "\n".join(entry.usage) + "\n```"]
        told = "\n".join(entry.prose).strip("\n")
        if told:
            parts.append(f"```text\n{told}\n```")
        if entry.name in ("sh", "explain", "why"):
            parts.append("The options are those of [run](#corral-run).")
            continue
        parts.append(table(["option", ""], ([_names(option), cell(option.text)] for option in entry.options)))
    return "\n\n".join(parts)


def _names(option: manual.Option) -> str:
    operand = f" {option.operand}" if option.operand else ""
    return cell(", ".join(f"`{name}`" for name in option.names) + operand)


# ---- config ----


def config_keys() -> str:
    rows = [
        [
            f"`{key}`",
            f"`Policy.{field}`",
            _in_projects(key, who),
            f"`{ALIASES[key]}`" if key in ALIASES else "",
        ]
        for key, (field, _, who) in KEYS.items()
    ]
    rows += [[f"`{key}`", "the run", "no", ""] for key in SETTINGS]
    return "\n\n".join(
        (
            "# corral.toml",
            "[Configuration](../configuration.md) says what each key means. These are all there are:",
            table(["key", "sets", "in a project's file", "the same as"], rows),
            "## What `corral init` writes",
            f"```toml\n{default_text().rstrip()}\n```",
        )
    )


def _in_projects(key: str, who: str) -> str:
    return "no" if key in NEVER_IN_PROJECTS or who == "user" else "can only tighten"


# ---- tools ----


def tools() -> str:
    parts = [
        "# Tools",
        "What [corral mcp and corral tool](../mcp.md) offer. [Tools](../tools.md) tells how they behave.",
    ]
    for tool in registry.load_all():
        schema = tool.schema
        required = schema.get("required", [])
        kinds = [name.removesuffix("Hint") for name, on in tool.annotations.items() if on]
        parts += [f"## {tool.name}", tool.help, f"Annotations: {', '.join(kinds) or 'none'}."]
        rows = [
            [
                f"`{name}`",
                _kind(field),
                "required" if name in required else _default(field),
                cell(field["description"]),
            ]
            for name, field in schema["properties"].items()
        ]
        parts.append(table(["argument", "type", "default", ""], rows) if rows else "It takes no arguments.")
    return "\n\n".join(parts)


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return cell(" ".join(f"`{word}`" for word in field["enum"]))
    if field.get("type") == "array":
        return f"list of {field['items'].get('type', 'object')}"
    return str(field.get("type", "anything"))


def _default(field: dict[str, Any]) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else ""


# ---- errors ----


def errors() -> str:
    rows = [
        [f"`{kind.__name__}`", ", ".join(f"`{base.__name__}`" for base in kind.__bases__), cell(doc(kind))]
        for kind in _descendants(CorralError)
    ]
    return "\n\n".join(
        (
            "# Errors",
            f"`CorralError`: {doc(CorralError)} Each of them is also the matching built-in.",
            table(["error", "is also a", "when"], rows),
            "Error codes of the tools are in [Tools](../tools.md).",
        )
    )


def _descendants(kind: type[CorralError]) -> Iterable[type[CorralError]]:
    for child in kind.__subclasses__():
        if child.__module__ == "corral.errors":
            yield child
            yield from _descendants(child)


# ---- API ----


def api() -> str:
    parts = [
        "# Python",
        "Everything here is imported from `corral`. Errors have [their own page](errors.md).",
    ]
    for name in (*corral.__all__, *ASYNC):
        value = getattr(corral, name)
        if inspect.isclass(value) and issubclass(value, CorralError):
            continue
        parts.append(f"## {name}")
        if inspect.isclass(value):
            parts += _class(name, value)
        elif inspect.isfunction(value):
            parts += [_signature(name, value), doc(value)]
        else:
            parts.append(f"`{value!r}`")
    return "\n\n".join(part for part in parts if part)


def _class(name: str, kind: type) -> list[str]:
    parts = [_signature(name, kind), doc(kind)]
    rows = []
    for member, value in inspect.getmembers(kind):
        if member.startswith("_"):
            continue
        plain = inspect.getattr_static(kind, member)
        if isinstance(plain, property):
            rows.append([f"`{member}`", cell(doc(plain))])
        elif callable(value) and (inspect.isfunction(value) or inspect.ismethod(value)):
            rows.append([cell(f"`{member}{_arguments(value)}`"), cell(doc(value))])
    return [*parts, table(["", ""], rows) if rows else ""]


def _signature(name: str, value: Callable[..., object]) -> str:
    return f"```text\n{name}{_arguments(value)}\n```"


def _arguments(value: Callable[..., object]) -> str:
    if inspect.isclass(value) and issubclass(value, Record):
        fields = (f"{name}{_value(value._defaults.get(name, REQUIRED))}" for name in value._fields)
        return f"({', '.join(fields)})"
    signature = inspect.signature(value)
    shown, starred = [], False
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            shown.append("*")
        stars = STARS.get(parameter.kind.name, "")
        starred = starred or stars == "*"
        kind = f": {parameter.annotation}" if isinstance(parameter.annotation, str) else ""
        shown.append(f"{stars}{name}{kind}{_value(parameter.default)}")
    returns = signature.return_annotation
    back = f" -> {returns}" if isinstance(returns, str) and not inspect.isclass(value) else ""
    return f"({', '.join(shown)}){back}"


def _value(default: object) -> str:
    return "" if default is REQUIRED or default is inspect.Parameter.empty else f" = {default!r}"


# ---- what each mode protects ----


def protection() -> str:
    parts = [
        "# What each mode protects, by tier",
        PROTECTION,
    ]
    for mode, (network, meaning) in MODES.items():
        parts += [f"## {mode}", f"{meaning[:1].upper()}{meaning[1:]}; network {network}."]
        if mode == "off":
            parts.append("Nothing is held: the command can do all that you can.")
            continue
        policy = Policy().replace(mode=mode, network=None)
        tiers = [tier for tier in (*ladder.RUNGS, "seatbelt") if not ladder._unfit(tier, policy)]
        rows = [
            [cell(text), *(_since(tier, policy, claim) for tier in tiers), f"`{claim}`"]
            for claim, text in claims.CLAIMS.items()
        ]
        parts.append(table(["it is kept from this:", *tiers, "claim"], rows))
    return "\n\n".join((*parts, "## What the selftest tries", TRIED, selftest_table()))


def selftest_table() -> str:
    """Each case, in each mode and tier that the selftest is run in."""
    columns, held = [], []
    for mode in MODES:
        policy = Policy().replace(mode=mode, network="off")
        for tier in TESTED:
            if mode != "off" and not ladder._unfit(tier, policy):
                columns.append(f"{mode}, {tier}")
                held.append(("", *ladder.held(tier, policy, _host(max(KERNELS)))))
    rows = []
    for group, case in every_case():
        promised = "works" if case.must == "work" else "refused"
        cells = [promised if case.claim in here else "**no**" for here in held]
        rows.append([group, cell(case.tried), *cells])
    return table(["", "tried", *columns], rows)


def _since(tier: str, policy: Policy, claim: str) -> str:
    """The first kernel on which a tier holds a claim; that tier itself is there from another on."""
    for abi in (0, *KERNELS):
        if claim in ladder.held(tier, policy, _host(abi)):
            return "yes" if abi <= 1 else f"from {KERNELS[abi]} on"
    if policy.network == "open" and claim in claims.NETWORK_OFF:
        return "open"
    return "**no**"


def _host(abi: int) -> Host:
    return Host("x86_64", (7, 1), abi, "", "", "", 1000, 1000)


# ---- Markdown ----


def doc(value: object) -> str:
    """The docstring, with the marks of Sphinx as Markdown has them."""
    text = re.sub(r":[a-z]+:`~?([^`]+)`", r"`\1`", inspect.getdoc(value) or "")
    return text.replace("``", "`")


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAGES: dict[str, Callable[[], str]] = {
    "cli": command_line,
    "config": config_keys,
    "tools": tools,
    "errors": errors,
    "api": api,
    "protection": protection,
}
