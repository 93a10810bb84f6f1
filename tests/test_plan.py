"""Plans: their language, their text, and the order of their steps in both tiers."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.errors import CommandNotExecutable, CommandNotFound, LaunchRefused, PolicyError
from corral.jail import kernel, landlock, namespaces
from corral.jail.host import Host
from corral.jail.plan import INLINE_LIMIT, Draft, Plan, describe
from corral.jail.site import Masks, Site
from corral.paths.places import pin_directory
from corral.policy import Limits, Policy
from launcher.table import OPERATIONS, SLOTS

HEADER = Path(__file__).parents[1] / "launcher" / "launch.h"
ALL_LIMITS = Limits(wall=9, file_size=1 << 20, cpu=5, open_files=64, processes=100, memory=1 << 28)


# ---- the language ----


def test_the_table_of_the_tests_is_the_table_of_the_launcher() -> None:
    text = HEADER.read_text()
    listed = re.findall(r'^    X\("(\w+)",\s+"(\w*)",\s+op_(\w+)\)', text, re.MULTILINE)
    assert {name: kinds for name, kinds, _ in listed} == OPERATIONS
    assert all(name == function for name, _, function in listed)
    assert len(listed) == len(OPERATIONS)
    assert set("".join(OPERATIONS.values())) <= set("dsaonNw")
    assert f"SLOTS = {SLOTS}," in text


# ---- the two tiers ----


def host(*, uid: int = 1000, abi: int = 7, no_overlay: str = "", no_proc: str = "") -> Host:
    return Host("x86_64", (6, 18), abi, "", no_proc, no_overlay, uid, uid)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    names = ("work", "data", "home", "private")
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "home" / ".ssh").mkdir()
    places = {name: pin_directory(str(tmp_path / name)) for name in names}
    yield Site(
        roots=(places["work"],),
        writable=(places["work"],),
        read_only=(places["data"],),
        hidden=(),
        homes=(places["home"],),
        cwd=places["work"],
        temp=places["private"],
    )
    for place in places.values():
        place.close()


def masks_of(site: Site) -> Masks:
    (home,) = site.homes
    return Masks({home.path: (".ssh", ".config/gh", ".netrc")}, ("/etc/shadow",), ())


def plan_of(tier: str, site: Site, policy: Policy, facts: Host, *, inline: bool = False) -> Plan:
    draft = Draft()
    if tier == "landlock":
        landlock.compile_plan(draft, policy, site, facts, inline=inline)
    else:
        namespaces.compile_plan(draft, policy, site, facts, masks_of(site))
    return Plan(tier, tuple(draft.steps), ("true",), tuple(draft.passed))


VARIANTS = {
    "user": (Policy(), host()),
    "root": (Policy(), host(uid=0)),
    "limits": (Policy(limits=ALL_LIMITS), host()),
    "open network": (Policy(network="open"), host()),
    "read-only": (Policy.read_only(), host()),
    "old kernel": (Policy(), host(abi=3, no_overlay="overlay: refused")),
    "no proc": (Policy(), host(no_proc="mount: refused")),
    "shared memory": (Policy(shared_memory=True), host()),
    "root, limits": (Policy(limits=ALL_LIMITS), host(uid=0)),
}


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> tuple[Policy, Host]:
    return VARIANTS[request.param]


@pytest.fixture(params=["landlock", "namespaces"])
def plan(request: pytest.FixtureRequest, variant: tuple[Policy, Host], site: Site) -> Plan:
    return plan_of(request.param, site, *variant)


# LAUNCHER.md "Order", a line a stage; what is in brackets need not be there.
FENCE = """
    chdir stdio (keep)* (open)* nonewprivs (open)*
    ruleset (allow)* (port)* restrict
    (rlimit)? nocaps seccomp
"""
ORDERS = {
    "namespaces": """
    (open|fd)* close (rlimit)* (memory)? (oom)?
    ((enter)* namespaces|namespaces ids (loopback)?) (group)?
    (open|tree|mount open attach|make|whiteout|overlay)*
    readonly
    (mount|open|tree|make|attach|attributes)*
    (pids)? (open|tree|attach)*
    (rlimit)?
    init (open)*
    """
    + FENCE,
    "landlock": """
    (open|fd)* close (rlimit)* (memory)? (oom)?
    supervise (group)?
    """
    + FENCE,
}


def follows(order: str, operations: list[str]) -> bool:
    """Each word of the order is one operation; brackets, bars, stars and question marks are a pattern's own."""
    words = re.findall(r"[a-z]+|[^a-z\s]", order)
    pattern = "".join(f"(?:{word} )" if word.isalpha() else word for word in words)
    return re.fullmatch(pattern, "".join(f"{operation} " for operation in operations)) is not None


def test_the_steps_come_in_the_order_of_the_specification(plan: Plan) -> None:
    assert follows(ORDERS[plan.backend], plan.operations()), plan.operations()


def test_an_order_that_is_not_kept_is_noticed(site: Site) -> None:
    for tier, order in ORDERS.items():
        operations = plan_of(tier, site, Policy(), host()).operations()
        assert follows(order, operations)
        for left_out in ("close", "chdir", "stdio", "nonewprivs", "restrict", "nocaps", "seccomp"):
            assert not follows(order, [o for o in operations if o != left_out]), left_out
        assert not follows(order, [*operations[:-2], "seccomp", "nocaps"])


def test_every_step_has_the_operands_of_the_table(plan: Plan) -> None:
    for words, why in plan.steps:
        assert len(words) - 1 == len(OPERATIONS[words[0]]), words
        assert why


def test_slots_are_filled_once_and_before_they_are_used(plan: Plan) -> None:
    filled: set[str] = set()
    for words, _ in plan.steps:
        for kind, word in zip(OPERATIONS[words[0]], words[1:], strict=True):
            if kind == "d":
                assert word not in filled
                assert int(word) < SLOTS
                filled.add(word)
            elif kind == "s" or (kind == "a" and word != "/"):
                assert word in filled, words
            elif kind == "n":
                assert word.isdecimal(), words


def test_paths_occur_in_one_operation_only(plan: Plan) -> None:
    for words, _ in plan.steps:
        if words[0] != "open" and not (words[0] == "make" and words[4].startswith("->")):
            assert not any(word.startswith("/") for word in words), words


def test_no_path_of_a_plan_has_a_link_in_it(plan: Plan) -> None:
    for words, _ in plan.steps:
        if words[0] == "open":
            assert os.path.realpath(words[3]) == words[3], words


def test_what_was_pinned_is_compared_by_device_and_inode(site: Site) -> None:
    pinned = {place.path: place for place in (*site.writable, *site.read_only, *site.homes)}
    for tier, inline in (("namespaces", False), ("landlock", True)):
        plan = plan_of(tier, site, Policy(), host(), inline=inline)
        compared: set[str] = set()
        for words, _ in plan.steps:
            if words[0] == "open" and words[3] in pinned and words[6] != "-":
                place = pinned[words[3]]
                assert words[5:] == (str(place.kind), str(place.device), str(place.inode))
                compared.add(words[3])
        wanted = {place.path for place in site.writable} if tier == "landlock" else set(pinned)
        assert wanted <= compared


def test_the_working_directory_is_opened_after_the_last_mount(site: Site) -> None:
    plan = plan_of("namespaces", site, Policy(), host())
    operations = plan.operations()
    chdir = operations.index("chdir")
    slot = plan.steps[chdir][0][1]
    opened = next(i for i, (words, _) in enumerate(plan.steps) if words[:2] == ("open", slot))
    assert opened > max(i for i, operation in enumerate(operations) if operation == "attach")


def test_parents_are_attached_before_children(site: Site) -> None:
    plan = plan_of("namespaces", site, Policy(), host())
    paths = {words[1]: words[3] for words, _ in plan.steps if words[0] == "open"}
    order = [paths[words[2]] for words, _ in plan.steps if words[0] == "attach" and words[2] in paths]
    for position, path in enumerate(order):
        assert not any(later != path and path.startswith(later + "/") for later in order[position + 1 :]), (
            path
        )


def test_the_process_limit_waits_for_the_user_namespace_and_is_off_without_one(site: Site) -> None:
    """That on open files comes last: the steps need descriptors of their own."""

    def limits(tier: str) -> list[tuple[int, str]]:
        steps = plan_of(tier, site, Policy(limits=ALL_LIMITS), host()).steps
        return [(i, words[1]) for i, (words, _) in enumerate(steps) if words[0] == "rlimit"]

    processes = str(kernel.RLIMIT["processes"])
    assert processes not in [resource for _, resource in limits("landlock")]
    operations = plan_of("namespaces", site, Policy(limits=ALL_LIMITS), host()).operations()
    ((at, _),) = [(i, resource) for i, resource in limits("namespaces") if resource == processes]
    assert operations.index("ids") < at < operations.index("init")
    for tier in ("landlock", "namespaces"):
        *early, last = [resource for _, resource in limits(tier)]
        assert last == str(kernel.RLIMIT["open_files"])
        assert str(kernel.RLIMIT["open_files"]) not in early


def test_hidden_names_lie_below_home_and_directories_on_the_way_are_made(site: Site) -> None:
    plan = plan_of("namespaces", site, Policy(), host())
    assert [words[2] for words, _ in plan.steps if words[0] == "whiteout"] == [".ssh", "gh", ".netrc"]
    assert ".config" in [words[3] for words, _ in plan.steps if words[0] == "make"]
    assert "whiteout" not in plan_of("namespaces", site, Policy(), host(no_overlay="no")).operations()


def test_a_root_gets_a_small_dev_and_a_proc_it_cannot_write(site: Site) -> None:
    plan = plan_of("namespaces", site, Policy(), host(uid=0))
    opened = {words[3] for words, _ in plan.steps if words[0] == "open"}
    dangerous = {f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")}
    assert {"/dev/null", "/dev/zero", "/proc/sys"} <= opened
    assert {path for path in dangerous if os.path.exists(path)} <= opened
    assert not any(path.startswith("/dev/sd") or path == "/dev/kmsg" for path in opened)
    ordinary = {
        words[3] for words, _ in plan_of("namespaces", site, Policy(), host()).steps if words[0] == "open"
    }
    assert "/proc/sys" not in ordinary


def test_an_open_network_has_no_namespace_of_its_own(site: Site) -> None:
    closed, opened = (plan_of("namespaces", site, Policy(network=n), host()) for n in ("off", "open"))

    def flags(plan: Plan) -> int:
        return next(int(words[1]) for words, _ in plan.steps if words[0] == "namespaces")

    assert flags(closed) & kernel.CLONE_NEW["net"]
    assert not flags(opened) & kernel.CLONE_NEW["net"]
    assert "loopback" in closed.operations()
    assert "loopback" not in opened.operations()


@pytest.mark.parametrize(
    ("abi", "scoped", "net", "size"),
    [(1, 0, 0, 8), (3, 0, 0, 8), (4, 0, 3, 16), (6, 3, 3, 24), (99, 3, 3, 24)],
)
def test_a_ruleset_is_sized_by_what_the_kernel_knows(
    abi: int, scoped: int, net: int, size: int, site: Site
) -> None:
    plan = plan_of("landlock", site, Policy(), host(abi=abi))
    (ruleset,) = [words for words, _ in plan.steps if words[0] == "ruleset"]
    assert ruleset[1:] == (str(kernel.all_fs_rights(abi)), str(net), str(scoped), str(size))
    (supervise,) = [words for words, _ in plan.steps if words[0] == "supervise"]
    assert supervise[1] == str(int(abi >= 6))


def test_rules_on_files_hold_no_right_of_directories(plan: Plan) -> None:
    kinds = {words[1]: int(words[5]) for words, _ in plan.steps if words[0] == "open"}
    directories_only = sum(bit for bit, _, on_file in kernel.FS_RIGHTS.values() if not on_file)
    handled = next((int(words[1]) for words, _ in plan.steps if words[0] == "ruleset"), 0)
    for words, _ in plan.steps:
        if words[0] == "allow":
            assert int(words[2]) & ~handled == 0
            if kinds.get(words[1], stat.S_IFDIR) != stat.S_IFDIR:
                assert int(words[2]) & directories_only == 0, words


# ---- rights ----


@pytest.mark.parametrize(
    ("abi", "known"),
    [(0, 0), (1, 0x1FFF), (2, 0x3FFF), (3, 0x7FFF), (4, 0x7FFF), (5, 0xFFFF), (8, 0xFFFF), (9, 0x1FFFF)],
)
def test_rights_by_abi(abi: int, known: int) -> None:
    assert kernel.all_fs_rights(abi) == known


def test_device_nodes_are_never_made_inside() -> None:
    made = kernel.FS_RIGHTS["make-char"][0] | kernel.FS_RIGHTS["make-block"][0]
    for rights in (kernel.READ, kernel.WRITE, kernel.DEVICE, kernel.TERMINALS, kernel.SHARED_MEMORY):
        assert kernel.fs_rights(rights, 99) & made == 0


# ---- text ----

STEPS = (
    (("open", "0", "/", "/work", "0", "16384", "1", "2"), "/work is writable"),
    (("chdir", "0"), "work in /work"),
    (("stdio", "1"), "check the standard descriptors"),
)
SMALL = Plan("landlock", STEPS, ("echo", "a b", ""))


def test_words_are_the_steps_then_the_command() -> None:
    opened = ["open", "0", "/", "/work", "0", "16384", "1", "2"]
    assert SMALL.words() == [*opened, "chdir", "0", "stdio", "1", "--", "echo", "a b", ""]
    assert SMALL.encode() == "\0".join(SMALL.words()).encode() + b"\0"
    assert SMALL.inline() == SMALL.words()
    assert SMALL.operations() == ["open", "chdir", "stdio"]


def test_bytes_that_are_not_utf_8_go_through() -> None:
    plan = SMALL.replace(argv=(os.fsdecode(b"\xff"),))
    assert plan.encode().endswith(b"--\0\xff\0")


def test_steps_can_be_left_out_to_show_that_they_matter() -> None:
    assert SMALL.without("chdir", "stdio").operations() == ["open"]
    assert SMALL.operations() == ["open", "chdir", "stdio"]


def test_an_inline_plan_is_small_and_inherits_nothing() -> None:
    with pytest.raises(PolicyError, match="inherits descriptors"):
        SMALL.replace(passed=(5,)).inline()
    with pytest.raises(PolicyError, match="longer than 64 KB"):
        SMALL.replace(argv=("x" * INLINE_LIMIT,)).inline()
    fixed = sum(len(word) + 1 for word in SMALL.replace(argv=()).words())
    assert SMALL.replace(argv=("x" * (INLINE_LIMIT - fixed - 1),)).inline()
    with pytest.raises(PolicyError):
        SMALL.replace(argv=("x" * (INLINE_LIMIT - fixed),)).inline()


@pytest.mark.parametrize(
    ("step", "errno", "text"),
    [
        (0, 2, "/work is writable: /work is gone, or hidden inside the jail; nothing was run"),
        (0, 40, "replaced by a symbolic link"),
        (0, 116, "replaced since it was checked"),
        (0, 13, "Permission denied"),
        (1, 13, "work in /work: Permission denied; nothing was run"),
        (2, 21, "a standard descriptor is a directory"),
    ],
)
def test_a_failed_step_becomes_a_sentence(step: int, errno: int, text: str) -> None:
    error = SMALL.refusal(step, errno)
    assert isinstance(error, LaunchRefused)
    assert text in str(error)
    assert (error.step, error.errno, error.path) == (step, errno, "/work" if step == 0 else None)


def test_a_failed_exec_is_about_the_program() -> None:
    missing, closed = SMALL.refusal(3, 2), SMALL.refusal(3, 13)
    assert isinstance(missing, CommandNotFound)
    assert isinstance(missing, FileNotFoundError)
    assert isinstance(closed, CommandNotExecutable)
    assert (missing.path, closed.path) == ("echo", "echo")


def test_a_plan_is_described_a_line_a_step() -> None:
    lines = describe(SMALL.replace(notes=("a note",))).splitlines()
    assert lines[:3] == ["backend    landlock", "command    echo 'a b' ''", "note       a note"]
    assert [line.split()[0] for line in lines[4:]] == ["/work", "work", "check"]
    assert all(len(line) <= 100 for line in lines)


def test_a_plan_as_data_holds_all_of_it() -> None:
    as_data = SMALL.to_dict()
    assert as_data["argv"] == ["echo", "a b", ""]
    assert as_data["steps"][1] == {"step": ["chdir", "0"], "why": "work in /work"}


def test_a_draft_hands_out_slots_in_order() -> None:
    draft = Draft(first_slot=7)
    assert [draft.slot(), draft.inherit(5, "why"), draft.fill("mount", "tmpfs", "", 0, why="why")] == [
        "7",
        "8",
        "9",
    ]
    assert draft.passed == [5]
    assert draft.steps == [(("fd", "8", "5"), "why"), (("mount", "9", "tmpfs", "", "0"), "why")]
