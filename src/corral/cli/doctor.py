"""`corral doctor` and `corral status`: what this host holds, proven, and what to do about the rest."""

from __future__ import annotations

import os
import sys

from corral.claims import CLAIMS
from corral.doctor import BackendFinding, Finding, ModeFinding, examine, try_backends, try_modes
from corral.errors import PolicyError
from corral.jail.host import launcher_path
from corral.policy import Policy

USAGE = {
    "doctor": "usage: corral doctor [-m|--mode MODE] [-C|--config FILE] [--fix apparmor] [--json]\n\n"
    "Tries every piece of this host; says what is missing and the exact remedy. Exit code 0 only if the mode is held.",
    "status": "usage: corral status [-m|--mode MODE] [-C|--config FILE] [--json]\n\n"
    "Mode, mechanism, and whether it is proven.",
}
MARKS = {True: "ok", False: "NO", None: "-"}


def main(subcommand: str, words: list[str]) -> int:
    mode, config, fix, as_json = _options(subcommand, words)
    if mode == "help":
        print(USAGE[subcommand])
        return 0
    if fix is not None:
        return fix_apparmor(fix)
    policy = _policy(mode, config)
    modes = try_modes(policy)
    backends = try_backends()
    if subcommand == "status":
        return _status(policy, modes[0], backends, as_json)
    findings = examine()
    print(_json(findings, backends, modes) if as_json else _text(findings, backends, modes))
    return 0 if modes[0].enforcing else 125


def _options(subcommand: str, words: list[str]) -> tuple[str | None, str | None, str | None, bool]:
    found: dict[str, str] = {}
    rest = list(words)
    names = {"-m": "mode", "--mode": "mode", "-C": "config", "--config": "config", "--fix": "fix"}
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return "help", None, None, False
        if word == "--json":
            found["json"] = "yes"
        elif word in names and rest and not (word == "--fix" and subcommand == "status"):
            found[names[word]] = rest.pop(0)
        else:
            raise PolicyError(f"corral {subcommand} does not take {word}; try --help")
    return found.get("mode"), found.get("config"), found.get("fix"), "json" in found


def _policy(mode: str | None, config: str | None) -> Policy:
    from corral.config import load

    policy = load(user=config).policy
    return policy if mode is None else policy.replace(mode=mode, network=None)


def _status(policy: Policy, found: ModeFinding, backends: list[BackendFinding], as_json: bool) -> int:
    held = found.backend or "nothing"
    state = {
        "mode": policy.mode,
        "mechanism": held if found.backend else "none",
        "active": bool(found.backend) and policy.mode != "off",
        "enforcing": found.enforcing,
        "required": policy.require,
        "not_covered": list(found.not_covered),
        "why_not": found.why_not,
        "backends": [_plain(backend) for backend in backends],
    }
    if as_json:
        import json

        print(json.dumps(state, indent=2))
    else:
        word = (
            "enforcing (proven on this boot)"
            if found.enforcing
            else f"NOT enforcing: {found.why_not or 'off'}"
        )
        print(f"{policy.mode}, held by {held}, {word}, {'required' if policy.require else 'best effort'}")
        for claim in found.not_covered:
            print(f"  not covered: {CLAIMS[claim]} ({claim})")
        for backend in backends:
            print(f"  {backend.backend}: {_standing(backend)}")
        if not found.enforcing and policy.mode != "off":
            print(f"next: corral doctor -m {policy.mode} has the remedy for each gap")
    return 0 if found.enforcing or policy.mode == "off" else 125


def _standing(backend: BackendFinding) -> str:
    if backend.proven:
        return "present, proven on this boot"
    return f"present, not proven: {backend.why_not}" if backend.present else f"not there: {backend.why_not}"


def _plain(record: Finding | BackendFinding | ModeFinding) -> dict[str, object]:
    return {name: getattr(record, name) for name in record._fields}


def _json(findings: list[Finding], backends: list[BackendFinding], modes: list[ModeFinding]) -> str:
    import json

    host = [_plain(finding) for finding in findings]
    tiers = [_plain(backend) for backend in backends]
    return json.dumps(
        {"host": host, "backends": tiers, "modes": [_plain(mode) for mode in modes[1:]]}, indent=2
    )


def _text(findings: list[Finding], backends: list[BackendFinding], modes: list[ModeFinding]) -> str:
    lines = ["This host"]
    for finding in findings:
        lines.append(f"  {MARKS[finding.ok]:<3} {finding.name:<22}{finding.detail}")
        if finding.remedy:
            lines.append(f"      {'':<22}remedy: {finding.remedy}")
    lines += ["", "Backends"]
    for backend in backends:
        mark = MARKS[True if backend.proven else False if backend.present else None]
        lines.append(f"  {mark:<3} {backend.backend:<22}{_standing(backend)}")
    lines += ["", "Modes"]
    for found in modes[1:]:
        how = (
            f"held by {found.backend}, proven"
            if found.enforcing
            else f"{found.why_not or 'present, not enforcing'}"
        )
        lines.append(f"  {MARKS[found.enforcing]:<3} {found.mode:<22}{how}")
        lines += [f"      {'':<22}not covered: {CLAIMS[claim]}" for claim in found.not_covered]
    first = modes[0]
    lines += ["", _meanwhile(first)]
    return "\n".join(lines)


def _meanwhile(first: ModeFinding) -> str:
    if first.enforcing:
        return (
            f"Your mode is {first.mode}: held by {first.backend}, every demanded claim proven on this host."
        )
    if first.mode == "off":
        return "Your mode is off: commands are not jailed. Choose another with -m, or with mode = in your corral.toml."
    return (
        f"Your mode is {first.mode}, and nothing here holds it: corral refuses to run commands ({first.why_not}). "
        "Remedies stand above, beside each NO."
    )


# ---- AppArmor ----

PROFILE = """# Lets this one program make user namespaces; everything else stays as it is.
abi <abi/4.0>,
include <tunables/global>

profile corral-launch {path} flags=(unconfined) {{
  userns,
}}
"""


def fix_apparmor(name: str) -> int:
    """Print the file and ask before writing it. Only for a launcher that nobody but root can replace."""
    if name != "apparmor":
        raise PolicyError(f"corral doctor --fix knows apparmor, not {name}")
    path = launcher_path()
    target = "/etc/apparmor.d/corral-launch"
    text = PROFILE.format(path=path)
    print(f"{target}:\n\n{text}\nthen: apparmor_parser -r {target}\n")
    if not _owned_by_root(path):
        raise PolicyError(
            f"{path} is not root's alone: a profile for it would be anybody's. Install corral system-wide first."
        )
    if not sys.stdin.isatty():
        print("Nothing was written: there is nobody to ask. Run this on a terminal, as root.")
        return 125
    if input("Write it? [y/N] ").strip().lower() != "y":
        print("Nothing was written.")
        return 1
    try:
        with open(target, "w") as file:
            file.write(text)
    except OSError as error:
        raise PolicyError(f"{target}: {error.strerror}; run this as root") from None
    status = os.spawnlp(os.P_WAIT, "apparmor_parser", "apparmor_parser", "-r", target)
    print("The profile is loaded." if status == 0 else "apparmor_parser did not take it; see above.")
    return 0 if status == 0 else 125


def _owned_by_root(path: str) -> bool:
    while True:
        info = os.stat(path)
        if info.st_uid != 0 or info.st_mode & 0o022:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)
