"""Boot every kernel of expected.toml, let inside.py look at it, and compare. One line a guest; 1 if any differs.

PYTHONPATH=src:tests python3 -m kernels.run_kernels [KERNEL …]
"""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from corral.claims import CLAIMS
from kernels.boot import NOT_RUN, boot
from kernels.guest import kernel as prepare_kernel
from kernels.guest import root_image

COMMAND = "python3 -m kernels.inside"
ATTEMPTS = 3
NEVER_A_GAP = {"hidden", "read-only-inside"}  # the policies here hide and narrow nothing
OPEN_NETWORK = ("casual", "bare", "strict")
NETWORK_OFF = {"tcp", "udp"}
# Casual and bare do without rules about files, so that other sandboxes nest in them.
BY_FILE_RULES = {"devices", "pathname-sockets"}
# Claims that a mode does not make anywhere, and one that without a network of its own is Landlock's.
NOT_MADE = {
    "casual": {*NETWORK_OFF, "families", *BY_FILE_RULES},
    "bare": {*NETWORK_OFF, "families", *BY_FILE_RULES},
    "strict": {*NETWORK_OFF, "families"},
}
ABSTRACT_SOCKETS_ABI = 6
NOT_FOR_ROOT = ("casual", "bare")


def main(series: list[str]) -> int:
    guests = tomllib.loads(Path(__file__).with_name("expected.toml").read_text())["guest"]
    unknown = set(series) - {guest["kernel"] for guest in guests}
    if unknown:
        sys.exit(f"not in expected.toml: {', '.join(sorted(unknown))}")
    wanted = [guest for guest in guests if not series or guest["kernel"] in series]
    pairs = [(guest, identity) for guest in wanted for identity in guest["as"]]
    for guest in wanted:  # one at a time: each may have to be made
        root_image()
        prepare_kernel(guest["kernel"])
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # an emulated guest keeps one processor busy
        return 0 if all(list(pool.map(lambda pair: is_as_expected(*pair), pairs))) else 1


def is_as_expected(guest: dict[str, Any], identity: str) -> bool:
    began = time.monotonic()
    status, output = boot_patiently(guest["kernel"], identity, guest.get("append", ""))
    took = time.monotonic() - began
    name = f"{guest['kernel']:<5}{identity:<5}{guest.get('append', ''):<34}"
    try:
        found = json.loads(output.splitlines()[-1]) if status == 0 else None
    except (ValueError, IndexError):
        found = None
    if found is None:
        print(f"{name}FAILED with status {status} after {took:.0f} s\n{output}", flush=True)
        return False
    differences = list(compare(guest, identity, found))
    verdict = f"{name}{summary(found)}  {took:.0f} s  {'DIFFERS' if differences else 'ok'}"
    print("\n    ".join([verdict, *differences]), flush=True)
    return not differences


def boot_patiently(series: str, identity: str, append: str) -> tuple[int, str]:
    """An emulated processor now and then fails a kernel that is blameless (qemu 7.2: one boot in twenty or so)."""
    status, output = NOT_RUN, ""
    for _ in range(ATTEMPTS):
        status, output = boot(series, COMMAND, as_user=identity == "user", append=append)
        if status != NOT_RUN:
            break
        print(f"     kernel {series} stopped or hung before its end; booting it again", flush=True)
    return status, output


def summary(found: dict[str, Any]) -> str:
    if "abi" not in found:
        return f"{'home on NFS':<57}runs: {len(found['homes']):<3}"
    tiers = dict.fromkeys(mode["tier"] for mode in found["modes"].values() if mode["tier"] != "none")
    proven = [
        f"{tier} {len(modes['workspace-write']['proven'])}/{len(CLAIMS)}"
        for tier, modes in found["proofs"].items()
    ]
    runs = [value for tier in found["runs"].values() for value in tier.values()] + list(
        found["homes"].values()
    )
    taken = f"takes {', '.join(tiers)}" if tiers else "refused"
    return f"ABI {found['abi']:<3}{taken:<17}proven: {', '.join(proven) or 'none':<33}runs: {len(runs):<3}"


# ---- comparing ----


def compare(guest: dict[str, Any], identity: str, found: dict[str, Any]) -> Iterator[str]:
    yield from compare_homes(guest, found["homes"])
    if guest.get("far_home"):
        return
    yield from differ("Landlock ABI", guest["abi"], found["abi"])
    yield from differ("missing", guest["missing"], [part for part, why in found["missing"].items() if why])
    yield from differ("rungs", guest["rungs"], [tier for tier, why in found["rungs"].items() if not why])
    for tier, lacks in guest.get("lacks", {}).items():
        for mode, proof in found["proofs"].get(tier, {}).items():
            made = [claim for claim in CLAIMS if claim not in lacks]
            yield from differ(f"{tier}, {mode}: proven", made, proof["proven"])
            yield from (f"{tier}, {mode}: {claim}: {why}" for claim, why in proof["failed"].items())
    for mode, tier in guest["tiers"].items():
        closed = identity == "root" and mode in NOT_FOR_ROOT
        yield from compare_mode(
            guest, mode, "none" if closed else tier, found["modes"][mode], is_closed=closed
        )
    yield from compare_command(guest, found["command"])
    yield from differ("a control group holds memory", True, found["group"])
    yield from compare_default(guest, identity, found["default"])
    yield from compare_runs(guest, identity, found["runs"])


def compare_mode(
    guest: dict[str, Any], mode: str, tier: str, found: dict[str, Any], *, is_closed: bool
) -> Iterator[str]:
    yield from differ(f"{mode}: tier", tier, found["tier"])
    if found["tier"] == "none":
        words = (
            ["does not run as root"]
            if is_closed
            else guest.get("refusals", {}).get(mode, guest.get("refusal", []))
        )
        yield from missing_words(f"{mode}: refusal", words, found["refusal"])
    elif found["tier"] == tier:
        lacks = {*guest["lacks"][tier], *NOT_MADE.get(mode, ())}
        if mode in OPEN_NETWORK and guest["abi"] < ABSTRACT_SOCKETS_ABI:
            lacks.add("abstract-sockets")
        yield from differ(f"{mode}: enforcing", True, found["enforcing"])
        yield from differ(f"{mode}: covered", [c for c in CLAIMS if c not in lacks], found["covered"])
        moot = NEVER_A_GAP | (NETWORK_OFF if mode in OPEN_NETWORK else set())
        gaps = [claim for claim in CLAIMS if claim in lacks and claim not in moot]
        yield from differ(f"{mode}: not covered", gaps, found["not_covered"])


def compare_command(guest: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    refused = guest["tiers"]["workspace-write"] == "none"
    yield from differ("corral run: status", 125 if refused else 7, found["status"])
    yield from missing_words("corral run: says", guest["refusal"] if refused else [], found["said"])


def compare_default(guest: dict[str, Any], identity: str, found: dict[str, Any]) -> Iterator[str]:
    """Casual where it is held, else workspace-write and why, else a refusal."""
    casual, other = guest["tiers"]["casual"], guest["tiers"]["workspace-write"]
    if casual != "none" and identity != "root":
        status, words = 7, [f"corral: casual ({casual})"]
    elif other != "none":
        status, words = 7, [f"corral: workspace-write ({other}), not casual: "]
    else:
        status, words = 125, guest["refusal"]
    yield from differ("corral run without a mode: status", status, found["status"])
    yield from missing_words("corral run without a mode: says", words, found["said"])


def compare_homes(guest: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """Every sentence is true but those that the guest names, with the words of their refusal."""
    refused = guest.get("refused_homes", {})
    for sentence, value in found.items():
        if sentence in refused:
            yield from missing_words(sentence, ["refused: ", *refused[sentence]], str(value))
        elif value is not True:
            yield f"{sentence}: {value}"
    yield from (f"{sentence}: not tried" for sentence in set(refused) - set(found))


def compare_runs(guest: dict[str, Any], identity: str, found: dict[str, Any]) -> Iterator[str]:
    untrue = guest.get("untrue", {})
    yield from differ("tiers that run", list(untrue), list(found))
    for tier, said in found.items():
        excused = {
            *untrue.get(tier, ()),
            *(guest.get("untrue_for_root", {}).get(tier, ()) if identity == "root" else ()),
        }
        for sentence, value in said.items():
            if (value is True) == (sentence in excused):
                yield f"{tier}: {sentence}: {value}"
        yield from (f"{tier}: {sentence}: not tried" for sentence in excused - set(said))


def differ(what: str, expected: object, found: object) -> Iterator[str]:
    if isinstance(expected, list) and isinstance(found, list):
        if set(expected) != set(found):
            lost, more = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
            yield f"{what}: expected and not there: {lost}; there and not expected: {more}"
    elif expected != found:
        yield f"{what}: expected {expected!r}, found {found!r}"


def missing_words(what: str, words: list[str], text: str) -> Iterator[str]:
    yield from (f"{what}: no {word!r} in {text!r}" for word in words if word not in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
