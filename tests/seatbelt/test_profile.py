"""Seatbelt, as text: what the profile of a policy decides, row by row, and that each of its lines matters.

The real thing runs on macOS only. These are the rules read by an evaluator of our own; see evaluator.py for what it
takes for granted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cases import case
from corral import NotEnforceable, PolicyError
from corral.claims import CLAIMS
from corral.jail import seatbelt
from corral.paths.sensitive import KEY_MATERIAL
from corral.policy import MODES, Grant, Policy
from seatbelt.evaluator import Evaluator, NotAProfile, Operation

PTY = {"extension": "com.apple.sandbox.pty"}
DEVICE = {"vnode-type": "CHARACTER-DEVICE"}
HIDDEN = (".ssh", ".netrc", "Library/Keychains", ".config/gh")
RESOLVER = "/private/var/run/mDNSResponder"


class Mac:
    """Directories that look like a Mac's, below one of ours, and the policy that is tried on them."""

    def __init__(self, top: Path) -> None:
        self.home = top / "Users/u"
        self.root = self.home / "work/proj"
        self.other = self.home / "work/other"
        self.temp = top / "private-temp"
        for path in (
            self.root / ".git/objects/info",
            self.root / "sub/keep",
            self.other,
            self.temp,
            self.home / ".ssh",
        ):
            path.mkdir(parents=True)
        (self.home / "Library/Keychains").mkdir(parents=True)
        (self.root / "corral.toml").write_text("")

    def policy(self, **fields: object) -> Policy:
        grants = (
            Grant.ro(str(self.root / ".git")),
            Grant.rw(str(self.root / ".git/objects")),
            Grant.ro(str(self.root / ".git/objects/info")),
            Grant.hide(str(self.root / "sub/keep")),
            Grant.rw("/private/tmp/shared-with-us", "create"),
            Grant.ro("/private/tmp/shown", "create"),
        )
        # The list of key material is long and each of its lines the same: a few stand for all.
        few = tuple(name for name in (*KEY_MATERIAL, *seatbelt.KEY_MATERIAL) if name not in HIDDEN)
        return Policy(**{"grants": grants, "unhide": few, **fields})  # type: ignore[arg-type]

    def profile(self, policy: Policy | None = None) -> seatbelt.Profile:
        return seatbelt.compile_profile(
            policy or self.policy(), str(self.root), temp=str(self.temp), own_homes=(str(self.home),)
        )

    def rows(self, *, network: str = "off") -> list[tuple[Operation, str]]:
        """Operation and what must be decided. What must work stands beside what must not."""
        home, root, other, temp = map(str, (self.home, self.root, self.other, self.temp))
        writes = ("create", "data", "flags", "mode", "owner", "times", "unlink", "xattr")
        table: list[tuple[str, str | None, dict[str, str], str]] = []

        def add(decision: str, *names: str, path: str | None = None, **facts: str) -> None:
            table.extend(
                (name, path, {k.replace("_", "-"): v for k, v in facts.items()}, decision) for name in names
            )

        every_write = tuple(f"file-write-{what}" for what in writes)
        for path in (
            f"{root}/new",
            f"{root}/deep/er/new",
            f"{temp}/x",
            f"{root}/.git/objects/ab/cd",
            "/private/tmp/shared-with-us/x",
            f"{root}x/../x".replace("x/../x", "/x"),
        ):
            add("allow", *every_write, "file-read-data", path=path)
        for path in (
            f"{root}x",
            f"{other}/x",
            f"{home}/x",
            f"{home}/work",
            "/etc/passwd",
            "/usr/bin/x",
            f"{temp}x",
            f"{root}/.git",
            f"{root}/.git/config",
            f"{root}/.git/hooks/post-commit",
            f"{root}/.git/objectsx",
            f"{root}/.git/objects/info/alternates",
            f"{root}/corral.toml",
            f"{root}/sub/keep/x",
            "/private/tmp/x",
            "/private/var/tmp/x",
            "/private/var/folders/x",
            "/private/tmp/shared-with-usx",
            f"{home}/.ssh/id",
            f"{home}/Library/Keychains/login",
            "/dev/disk0",
            "/dev/ttys001",
        ):
            add("deny", *every_write, path=path)
        for path in (
            "/etc/hosts",
            "/usr/lib/x",
            f"{home}/.profile",
            f"{other}/x",
            f"{root}/.git/config",
            f"{root}/corral.toml",
            f"{root}/.git/objects/info/packs",
            "/private/tmp/shared-with-us/x",
            "/dev/tty",
        ):
            add("allow", "file-read-data", "file-read-metadata", path=path)
        for path in (
            f"{home}/.ssh",
            f"{home}/.ssh/id",
            f"{home}/.netrc",
            f"{home}/.config/gh/hosts.yml",
            f"{home}/Library/Keychains/login",
            f"{root}/sub/keep/x",
            "/private/tmp/x",
            "/private/var/tmp/x",
            "/private/var/folders/ab/T/x",
            "/dev/ttys001",
            "/dev/tty.usb",
        ):
            add("deny", "file-read-data", "file-read-metadata", path=path)
        for path in (
            "/private/etc/x",
            "/private/var/db/x",
            f"{home}/Library/Fonts/x",
            "/private/tmp/shown/x",
        ):
            add("allow", "file-read-data", path=path)
        for path in ("/private/tmp/shown/x", f"{home}/.local/state/corral/x", f"{home}/.config/corral/x"):
            add("deny", *every_write, path=path)
        for path in (f"{home}/.local/state/corral/x", f"{home}/.config/corral/x"):
            add("deny", "file-read-data", path=path)
        add("allow", "file-read-metadata", path="/private/tmp")
        add("deny", "file-read-data", path="/private/tmp")
        # Renaming what leads to a fenced place would take it out of its rule.
        for path in (root, f"{root}/sub", f"{root}/.git/objects", f"{root}/.git"):
            add("deny", "file-write-unlink", path=path)
        add("allow", "file-write-unlink", path=f"{root}/deep")
        add("allow", "file-write-mode", path=f"{root}/sub")
        # Devices and terminals.
        add("allow", "file-write-data", path="/dev/null", **{"vnode-type": "CHARACTER-DEVICE"})
        add("deny", "file-write-data", path="/dev/null", **{"vnode-type": "REGULAR-FILE"})
        add("deny", "file-write-unlink", "file-write-mode", path="/dev/null", **DEVICE)
        add("allow", "file-write-data", path="/dev/tty")
        add("allow", "file-write-data", path="/dev/fd/1")
        add("allow", "file-write-data", path="/dev/stderr")
        add("deny", "file-ioctl", path="/dev/tty")
        add("deny", "file-ioctl", path="/dev/ttys001")
        add("allow", "file-ioctl", "file-read-data", "file-write-data", path="/dev/ptmx")
        add("allow", "file-ioctl", "file-read-data", "file-write-data", path="/dev/ttys009", **PTY)
        add("deny", "file-write-data", path="/dev/disk0", **PTY)
        add(
            "allow", "pseudo-tty", "process-fork", "process-exec", "process-exec-interpreter", "ipc-posix-sem"
        )
        # Other processes.
        add("allow", "signal", "process-info-pidinfo", target="same-sandbox")
        add("deny", "signal", "process-info-pidinfo", "process-info-listpids", target="others")
        add("deny", "mach-priv-task-port", target="others")
        add("deny", "nvram-get", "nvram-set", "sysctl-write", "iokit-open", "appleevent-send", "job-creation")
        add("deny", "ipc-sysv-shm", "ipc-sysv-sem", "mach-register", "user-preference-write")
        add("deny", "ipc-posix-shm-read-data", "ipc-posix-shm-write-data")
        add("allow", "sysctl-read", sysctl_name="hw.ncpu")
        add("deny", "sysctl-read", sysctl_name="kern.proc.all")
        add("deny", "sysctl-read", sysctl_name="kern.procargs2")
        for name in seatbelt.SERVICES:
            add("allow", "mach-lookup", global_name=name)
        for name in ("com.apple.SecurityServer", "com.apple.coreservices.launchservicesd", "com.apple.logdx"):
            add("deny", "mach-lookup", global_name=name)
        # Network.
        way = "allow" if network == "open" else "deny"
        add(way, "network-outbound", "network-inbound", "network-bind", "system-socket")
        for name in seatbelt.NETWORK_SERVICES:
            add(way, "mach-lookup", global_name=name)
        add(way, "network-outbound", path=RESOLVER)
        for path in (
            "/private/var/run/docker.sock",
            f"{home}/.docker/run.sock",
            "/private/tmp/agent",
            f"{other}/s",
            f"{home}/.ssh/agent",
            f"{root}/sub/keep/s",
        ):
            add("deny", "network-outbound", path=path)
        add("allow", "network-outbound", "network-bind", path=f"{root}/socket")
        add("deny", "network-bind", path=f"{root}/.git/socket")
        return [(Operation(name, path, facts), decision) for name, path, facts, decision in table]


def red(profile: seatbelt.Profile, rows: list[tuple[Operation, str]]) -> list[str]:
    """Rows that come out wrong."""
    evaluator = Evaluator(profile.text, dict(profile.parameters))
    return [
        f"{operation.name} {operation.path or dict(operation.facts)} must be {wanted}"
        for operation, wanted in rows
        if evaluator.decides(operation) != wanted
    ]


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    made = Mac(Path(os.path.realpath(tmp_path)))
    monkeypatch.setenv("HOME", str(made.home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CORRAL_CONFIG_DIR", "CORRAL_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.mark.parametrize("network", ["off", "open"])
def test_every_row_comes_out_as_it_must(mac: Mac, network: str) -> None:
    assert red(mac.profile(mac.policy(network=network)), mac.rows(network=network)) == []


def test_read_only_writes_nothing_but_the_temp_directory_and_grants(mac: Mac) -> None:
    policy = mac.policy(mode="read-only")
    rows = [
        (Operation("file-write-data", f"{mac.root}/x"), "deny"),
        (Operation("file-write-create", f"{mac.root}/sub/x"), "deny"),
        (Operation("file-read-data", f"{mac.root}/x"), "allow"),
        (Operation("file-write-data", f"{mac.temp}/x"), "allow"),
        (Operation("file-write-data", f"{mac.root}/.git/objects/x"), "allow"),
    ]
    assert red(mac.profile(policy), rows) == []


def test_globs_bind_to_their_directory(mac: Mac) -> None:
    rows = [
        (Operation("file-write-data", f"{mac.root}/out/a.md"), "allow"),
        (Operation("file-write-data", f"{mac.root}/x"), "deny"),
        (Operation("file-read-data", f"{mac.root}/x"), "allow"),
    ]
    assert red(mac.profile(Policy(writable=("out/*.md",))), rows) == []


def test_shared_memory_is_opened_only_if_asked_for(mac: Mac) -> None:
    rows = [(Operation("ipc-posix-shm-write-data"), "allow"), (Operation("ipc-sysv-shm"), "deny")]
    assert red(mac.profile(mac.policy(shared_memory=True)), rows) == []
    assert "ipc" not in seatbelt.claims(mac.policy(shared_memory=True))


def test_key_material_of_every_system_and_of_this_one_is_hidden(mac: Mac) -> None:
    profile = mac.profile(Policy())
    names = (*KEY_MATERIAL, *seatbelt.KEY_MATERIAL, ".config/corral/corral.toml", ".local/state/corral/x")
    rows = [(Operation("file-read-data", f"{mac.home}/{name}"), "deny") for name in names]
    assert red(profile, rows) == []


# ---- each line matters ----


def mutants(profile: seatbelt.Profile) -> list[tuple[str, seatbelt.Profile]]:
    lines = profile.text.splitlines()
    found = [
        (
            "default turned over",
            profile.replace(text=profile.text.replace("(deny default)", "(allow default)")),
        )
    ]
    for n, line in enumerate(lines):
        if line == "(version 1)":
            continue
        rest = [*lines[:n], *lines[n + 1 :]]
        used = {name for name, _ in profile.parameters if any(f'"{name}"' in left for left in rest)}
        kept = tuple((name, value) for name, value in profile.parameters if name in used)
        found.append((f"without {line}", seatbelt.Profile("\n".join(rest), kept)))
    for n, (name, value) in enumerate(profile.parameters):
        wider = (*profile.parameters[:n], (name, os.path.dirname(value)), *profile.parameters[n + 1 :])
        found.append((f"{name} widened to {os.path.dirname(value)}", profile.replace(parameters=wider)))
    return found


@pytest.mark.parametrize("network", ["off", "open"])
def test_every_mutation_of_the_profile_turns_a_row_red(mac: Mac, network: str) -> None:
    profile = mac.profile(mac.policy(network=network))
    rows = mac.rows(network=network)
    changed = mutants(profile)
    assert len(changed) > 40
    survivors = [what for what, mutant in changed if not red(mutant, rows)]
    assert survivors == [], "\n".join(survivors)


@pytest.mark.parametrize("network", ["off", "open"])
def test_two_rules_that_meet_cannot_change_places(mac: Mac, network: str) -> None:
    """Wherever an allowing and a refusing rule both match a row, the later must stay the later."""
    profile = mac.profile(mac.policy(network=network))
    rows = mac.rows(network=network)
    evaluator = Evaluator(profile.text, dict(profile.parameters))
    lines = profile.text.splitlines()
    first = len(lines) - len(evaluator.rules)  # the two lines that are no rules
    swapped = 0
    for i, one in enumerate(evaluator.rules):
        for j, two in enumerate(evaluator.rules[i + 1 :], i + 1):
            decisive = [
                operation
                for operation, _ in rows
                if evaluator.applies(one, operation)
                and evaluator.applies(two, operation)
                and not any(evaluator.applies(later, operation) for later in evaluator.rules[j + 1 :])
            ]
            if one.decision == two.decision or not decisive:
                continue
            other = list(lines)
            other[first + i], other[first + j] = other[first + j], other[first + i]
            assert red(profile.replace(text="\n".join(other)), rows), (
                f"{lines[first + i]} and {lines[first + j]}"
            )
            swapped += 1
    assert swapped > 10


@pytest.mark.parametrize(
    "line",
    [
        "(allow file-raed*)",
        "(allow)",
        '(import "bsd.sb")',
        '(allow file-read* (subpth "/"))',
        '(allow file-read* (subpath (param "NONE")))',
        "(allow file-read* (vnode-type NOTHING))",
        "(allow file-read*",
        "(allow file-read*))",
        "(permit file-read*)",
        '(allow default (literal "/"))',
        '(allow file-read* "/")',
        "'x",
    ],
)
def test_what_the_evaluator_does_not_know_is_an_error(mac: Mac, line: str) -> None:
    profile = mac.profile()
    with pytest.raises(NotAProfile):
        Evaluator(f"{profile.text}{line}\n", dict(profile.parameters))
    with pytest.raises(NotAProfile):
        Evaluator(profile.text.removeprefix("(version 1)\n"), dict(profile.parameters))
    with pytest.raises(NotAProfile):
        Evaluator(profile.text, {**dict(profile.parameters), "UNUSED": "/"})


# ---- the command ----


@case("rubino-6")
def test_the_prefix_is_the_systems_own_program_with_text_and_parameters(mac: Mac) -> None:
    words = seatbelt.prefix(Policy(network="open"), str(mac.root))
    assert words[:2] == ["/usr/bin/sandbox-exec", "-p"]
    assert words[-1] == "--"
    assert f"-DWRITABLE_ROOT_0={mac.root}" in words
    text = words[2]
    for part in (
        "(deny default)",
        "(allow file-read*)",
        "(allow network*)",
        '(subpath (param "WRITABLE_ROOT_0"))',
    ):
        assert part in text
    made = Policy(grants=(Grant.rw("made", "create"), Grant.rw("missing", "skip")))
    assert seatbelt.command(made, str(mac.root), ["ls", "-l"])[-3:] == ["--", "ls", "-l"]
    assert (mac.root / "made").is_dir()
    assert not (mac.root / "missing").exists()


@pytest.mark.parametrize(
    "name", ["a b", 'a"b', "a)(allow default)", "a\nb", "a\\b", "ä", "-D", "a;b", '#"x"']
)
def test_no_character_of_a_path_gets_into_the_text(mac: Mac, name: str) -> None:
    root = mac.root / name
    root.mkdir()
    plain = seatbelt.compile_profile(Policy(), str(mac.other), own_homes=(str(mac.home),))
    odd = seatbelt.compile_profile(Policy(), str(root), own_homes=(str(mac.home),))
    assert odd.text == plain.text
    rows = [
        (Operation("file-write-data", f"{root}/x"), "allow"),
        (Operation("file-write-data", f"{mac.root}/x"), "deny"),
    ]
    assert red(odd, rows) == []


def test_links_are_followed_to_what_the_system_compares(mac: Mac) -> None:
    link = mac.home / "link"
    link.symlink_to(mac.other)
    (mac.home / ".aws").symlink_to(mac.home / "real-aws")
    (mac.home / "real-aws").mkdir()
    profile = seatbelt.compile_profile(Policy(), str(link), own_homes=(str(mac.home),))
    assert ("WRITABLE_ROOT_0", str(mac.other)) in profile.parameters
    assert red(profile, [(Operation("file-read-data", f"{mac.home}/real-aws/key"), "deny")]) == []


def test_what_cannot_be_granted_is_refused_as_everywhere(mac: Mac) -> None:
    for grant in (
        Grant.rw("/"),
        Grant.rw(str(mac.home)),
        Grant.ro(str(mac.home / ".config/corral"), "create"),
    ):
        with pytest.raises(PolicyError):
            mac.profile(Policy(grants=(grant,)))
    with pytest.raises(PolicyError, match="nothing"):
        mac.profile(Policy(grants=(Grant.rw(str(mac.home / "missing")),)))
    with pytest.raises(PolicyError, match="hidden"):
        mac.profile(Policy(grants=(Grant.ro(str(mac.home / ".ssh/config"), "create"),)))
    taken = mac.profile(Policy(grants=(Grant.rw(str(mac.home / ".ssh")),)))
    assert red(taken, [(Operation("file-read-data", f"{mac.home}/.ssh/id"), "allow")]) == []
    shown = mac.profile(Policy(unhide=(".ssh",)))
    assert red(shown, [(Operation("file-read-data", f"{mac.home}/.ssh/id"), "allow")]) == []


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in seatbelt.MODES])
def test_modes_that_need_another_home_are_refused(mac: Mac, mode: str) -> None:
    with pytest.raises(NotEnforceable, match=mode):
        mac.profile(Policy(mode=mode))  # type: ignore[arg-type]


def test_it_claims_only_what_the_table_knows_and_never_that_nothing_is_left_behind() -> None:
    for policy in (Policy(), Policy(network="open"), Policy(mode="read-only")):
        held = seatbelt.claims(policy)
        assert held <= set(CLAIMS)
        assert "tree" not in held
    assert {"tcp", "udp", "families"} <= seatbelt.claims(Policy())
    assert not {"tcp", "udp"} & seatbelt.claims(Policy(network="open"))


def test_it_is_there_on_macos_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seatbelt.missing() == "macOS only"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert seatbelt.missing() == "/usr/bin/sandbox-exec is not there"
