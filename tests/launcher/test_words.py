"""The language: what is a plan and what is not. A plan that is not one runs nothing."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

import pytest

from launcher.driver import (
    LIST_DESCRIPTORS,
    NOT_EXECUTABLE,
    REFUSED,
    Finished,
    held_descriptors,
    launch,
    launch_file,
    launch_words,
    opened,
    python,
    refused_step,
)
from launcher.table import OPERATIONS, SLOTS

pytestmark = pytest.mark.jail


def malformed(done: Finished) -> str:
    """Why the plan was called malformed, in the one line there is."""
    assert done.returncode == REFUSED, done
    assert done.stdout == b""
    text = done.stderr.decode("ascii")
    assert text.startswith("corral: the plan is malformed: "), text
    assert text.endswith("; nothing was run\n"), text
    assert text.count("\n") == 1
    return text.removeprefix("corral: the plan is malformed: ").removesuffix("; nothing was run\n")


def encoded(*words: object) -> bytes:
    return b"".join((w if isinstance(w, bytes) else str(w).encode()) + b"\0" for w in words)


def operands(kinds: str) -> list[str]:
    """Words that fit: slot 0 is filled beforehand, slot 1 is free."""
    return [{"d": "1", "a": "0", "o": "-", "s": "0", "n": "0", "N": "-", "w": "w"}[kind] for kind in kinds]


FILL = opened(0, "/")


# ---- counts ----


@pytest.mark.parametrize("operation", [name for name, kinds in OPERATIONS.items() if kinds])
def test_an_operation_with_an_operand_too_few_takes_the_next_word_for_it(
    operation: str, tmp_path: Path
) -> None:
    words = [operation, *operands(OPERATIONS[operation])[:-1]]
    done = launch([*FILL, *words], ["touch", tmp_path / "witness"])
    why = malformed(done)
    assert why.startswith(("not a", "unknown operation", "it ends inside", "no -- and")), why
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_with_an_operand_too_many_is_followed_by_an_unknown_one(
    operation: str, tmp_path: Path
) -> None:
    words = [operation, *operands(OPERATIONS[operation]), "surplus"]
    done = launch([*FILL, *words], ["touch", tmp_path / "witness"])
    assert malformed(done) == "unknown operation surplus"
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("operation", [name for name, kinds in OPERATIONS.items() if kinds])
def test_a_plan_that_ends_inside_an_operation_is_refused(operation: str) -> None:
    for count in range(len(OPERATIONS[operation])):
        words = [*FILL, operation, *operands(OPERATIONS[operation])[:count]]
        assert malformed(launch_words(words)) == f"it ends inside {operation}"
        assert malformed(launch_file(encoded(*words))) == f"it ends inside {operation}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_plan_that_ends_after_an_operation_has_no_command(operation: str) -> None:
    words = [*FILL, operation, *operands(OPERATIONS[operation])]
    assert malformed(launch_words(words)) == "no -- and command at its end"
    assert malformed(launch_words([*words, "--"])) == "no -- and command at its end"


# ---- kinds ----


def positions(*wanted: str) -> list[tuple[str, int]]:
    return [(name, i) for name, kinds in OPERATIONS.items() for i, kind in enumerate(kinds) if kind in wanted]


def with_operand(operation: str, index: int, word: str) -> list[object]:
    words = operands(OPERATIONS[operation])
    words[index] = word
    return [*FILL, operation, *words]


@pytest.mark.parametrize(("operation", "index"), positions("n", "N"))
def test_a_number_has_one_to_nineteen_decimal_digits(operation: str, index: int) -> None:
    for word in ("", "x", "-1", "0x1", "1 ", "+1", "1" * 20):
        done = launch(with_operand(operation, index, word), ["true"])
        assert malformed(done) == f"not a number: {word}"


@pytest.mark.parametrize(("operation", "index"), positions("n"))
def test_a_number_that_is_needed_cannot_be_left_open(operation: str, index: int) -> None:
    assert malformed(launch(with_operand(operation, index, "-"), ["true"])) == "not a number: -"


@pytest.mark.parametrize(("operation", "index"), positions("s", "a", "o"))
def test_a_slot_is_used_only_after_it_was_filled(operation: str, index: int) -> None:
    for word in ("7", str(SLOTS), "x", "", "-1"):
        done = launch(with_operand(operation, index, word), ["true"])
        assert malformed(done) == f"not a filled slot: {word}"


@pytest.mark.parametrize(("operation", "index"), positions("d"))
def test_a_slot_is_filled_once(operation: str, index: int) -> None:
    for word in ("0", str(SLOTS), "x", ""):
        done = launch(with_operand(operation, index, word), ["true"])
        assert malformed(done) == f"not a free slot: {word}"


def test_the_highest_slot_can_be_filled_and_used() -> None:
    done = launch([*opened(SLOTS - 1, "/usr"), "chdir", SLOTS - 1], ["pwd"])
    assert (done.returncode, done.stdout) == (0, b"/usr\n")


def test_a_slot_cannot_be_used_by_a_step_before_the_one_that_fills_it() -> None:
    assert malformed(launch(["chdir", 0, *FILL], ["true"])) == "not a filled slot: 0"


@pytest.mark.parametrize(("operation", "index"), positions("d", "s", "a"))
def test_only_a_slot_that_may_be_none_can_be_left_out(operation: str, index: int) -> None:
    kind = OPERATIONS[operation][index]
    why = "not a free slot: -" if kind == "d" else "not a filled slot: -"
    assert malformed(launch(with_operand(operation, index, "-"), ["true"])) == why


def test_only_open_can_begin_at_the_root(tmp_path: Path) -> None:
    """An operation that takes `/` for a slot it does not have would act on whatever descriptor 0 is."""
    stdin = os.open(tmp_path, os.O_RDONLY)
    try:
        done = launch(["make", 5, "/", "made", "dir", 0o700], ["touch", tmp_path / "witness"], stdin=stdin)
    finally:
        os.close(stdin)
    assert done.returncode == REFUSED
    assert list(tmp_path.iterdir()) == []


# ---- words ----


@pytest.mark.parametrize("word", ["", "opens", "ope", "OPEN", "-", "---", " open", "\x1b[2J"])
def test_an_unknown_word_is_refused(word: str, tmp_path: Path) -> None:
    done = launch([word], ["touch", tmp_path / "witness"])
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in word)
    assert malformed(done) == f"unknown operation {shown}"
    assert not (tmp_path / "witness").exists()


def test_an_unknown_word_late_in_a_plan_stops_the_first_step_too(tmp_path: Path) -> None:
    steps = [*opened(0, tmp_path), "make", 1, 0, "made", "dir", 0o700]
    assert malformed(launch([*steps, "nonsense"], ["true"])) == "unknown operation nonsense"
    assert list(tmp_path.iterdir()) == []
    assert launch(steps, ["true"]).returncode == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]


def test_bytes_outside_printable_ascii_reach_the_terminal_escaped() -> None:
    done = launch([b"\x1b]0;title\x07\xff\xc3\xa9\x7f"], ["true"])
    assert malformed(done) == r"unknown operation \x1b]0;title\x07\xff\xc3\xa9\x7f"


def test_operands_of_a_step_that_failed_are_escaped_too(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\x1b[31m\xff\n"
    done = launch(["open", 0, "/", path, 0, 0o40000, "-", "-"], ["true"])
    assert refused_step(done) == (0, 2)
    assert b"\\x1b[31m\\xff\\x0a" in done.stderr


def test_the_name_of_a_command_that_is_not_there_is_escaped_too() -> None:
    done = launch([], [b"no-such-\x1b[31m\xff"])
    assert done.stderr == rb"corral: no-such-\x1b[31m\xff: not found" + b"\n"


def test_a_very_long_word_is_shown_whole() -> None:
    word = b"\x01" * 5000 + b"end"
    assert malformed(launch([word], ["true"])) == "unknown operation " + r"\x01" * 5000 + "end"


# ---- steps that fail ----


def test_a_step_that_fails_in_the_middle_runs_nothing_and_leaves_later_steps_undone(tmp_path: Path) -> None:
    def plan(middle: str) -> list[object]:
        first = [*opened(0, tmp_path), "make", 1, 0, "before", "dir", 0o700]
        return [*first, *opened(2, tmp_path / middle), "make", 3, 0, "after", "dir", 0o700]

    done = launch(plan("missing"), ["touch", tmp_path / "witness"])
    assert refused_step(done) == (2, 2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["before"]
    (tmp_path / "before").rmdir()
    done = launch(plan("before"), ["touch", tmp_path / "witness"])
    assert done.returncode == 0, done
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["after", "before", "witness"]


@pytest.mark.parametrize("keeper", [["supervise", 0], ["supervise", 1]])
def test_a_step_that_fails_behind_the_supervisor_runs_nothing(keeper: list[object], tmp_path: Path) -> None:
    late = ["unset", "A", *opened(0, tmp_path / "missing"), "unset", "B"]
    done = launch([*keeper, *late], ["touch", tmp_path / "witness"])
    assert refused_step(done) == (2, 2)
    assert not (tmp_path / "witness").exists()


# ---- sizes ----


def test_a_plan_of_ten_thousand_words_is_carried_out(tmp_path: Path) -> None:
    words: list[object] = []
    for slot in range(1000):
        words += opened(slot, tmp_path)
    words += ["chdir", 999] * 1000
    assert len(words) == 10_000
    done = launch_file(encoded(*words, "--", "pwd"))
    assert (done.returncode, done.stdout.decode().strip()) == (0, str(tmp_path))
    assert (launch(words, ["pwd"])).stdout.decode().strip() == str(tmp_path)


def test_the_last_of_ten_thousand_words_is_checked_before_the_first_is_acted_on(tmp_path: Path) -> None:
    words = [*opened(0, tmp_path), "make", 1, 0, "made", "dir", 0o700, *["chdir", 0] * 5000, "chdir", 2]
    done = launch_file(encoded(*words, "--", "touch", tmp_path / "witness"))
    assert malformed(done) == "not a filled slot: 2"
    assert list(tmp_path.iterdir()) == []


def test_a_mebibyte_of_arguments_arrives_whole() -> None:
    words = [str(n % 10) * 100_000 for n in range(11)]
    count = python(
        "import sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])), sys.argv[-1][-1])", *words
    )
    done = launch_file(encoded("supervise", 1, "--", *count))
    assert (done.returncode, done.stdout) == (0, b"11 1100000 0\n")


def test_more_arguments_than_the_kernel_takes_are_a_clear_refusal() -> None:
    done = launch_file(encoded("--", "true", "x" * 200_000))
    assert (done.returncode, done.stderr) == (NOT_EXECUTABLE, b"corral: true: cannot be run\n")


# ---- plans by descriptor ----


def test_a_plan_by_descriptor_does_what_the_same_plan_does_as_arguments(tmp_path: Path) -> None:
    words = [
        *opened(0, tmp_path),
        "chdir",
        0,
        "unset",
        "GONE",
        "--",
        "sh",
        "-c",
        "pwd; echo $GONE$STAYS; exit 3",
    ]
    env = {"PATH": os.environ["PATH"], "GONE": "gone", "STAYS": "stays"}
    by_words, by_file = launch_words(words, env=env), launch_file(encoded(*words), env=env)
    assert by_words.stdout == by_file.stdout == f"{tmp_path}\nstays\n".encode()
    assert by_words.returncode == by_file.returncode == 3


def test_a_plan_without_its_final_nul_is_cut_off(tmp_path: Path) -> None:
    whole = encoded("--", "touch", tmp_path / "witness")
    assert malformed(launch_file(whole[:-1])) == "its last word is cut off"
    assert not (tmp_path / "witness").exists()
    assert launch_file(whole).returncode == 0
    assert (tmp_path / "witness").exists()


def test_a_plan_cut_off_anywhere_never_runs_the_command(tmp_path: Path) -> None:
    whole = encoded(*opened(0, "/"), "chdir", 0, "--", "touch", tmp_path / "witness")
    for length in range(len(whole)):
        done = launch_file(whole[:length])
        assert done.returncode in (REFUSED, 1), (length, done)  # 1: `touch` without an operand
        assert not (tmp_path / "witness").exists(), length
    assert launch_file(whole).returncode == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "nothing to read"),
        (b"\0", "unknown operation "),
        (b"\0\0\0", "unknown operation "),
        (b"--\0", "no -- and command at its end"),
        (b"close\0", "no -- and command at its end"),
        (b"close\0true\0", "unknown operation true"),
        (b"close", "its last word is cut off"),
    ],
)
def test_an_empty_plan_and_a_plan_without_a_command_are_refused(content: bytes, why: str) -> None:
    assert malformed(launch_file(content)) == why


def test_no_arguments_at_all_are_no_plan() -> None:
    assert malformed(launch_words([])) == "no -- and command at its end"
    assert malformed(launch_words(["--"])) == "no -- and command at its end"
    done = launch_words(["--", "echo", "ran"])
    assert (done.returncode, done.stdout) == (0, b"ran\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--plan-fd"],
        ["--plan-fd", "x"],
        ["--plan-fd", "1"],
        ["--plan-fd", "9", "--"],
        ["--plan-fd", "9", "0"],
        ["--plan-fd", "9", "-1"],
        ["--plan-fd", "9", str(1 << 40)],
        ["--plan-fd", "9", "9", "9"],
    ],
)
def test_a_descriptor_is_named_by_one_number_above_two(words: list[str]) -> None:
    assert malformed(launch_words(words)) == "unknown operation --plan-fd"


def launch_stream(content: bytes, told: int, *, rest: bytes = b"") -> Finished:
    """The plan by a stream that goes on after it, in pieces."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for at in range(0, len(content), 7):
            ours.send(content[at : at + 7])
        ours.send(rest)
        ours.shutdown(socket.SHUT_WR)
        return launch_words(["--plan-fd", theirs.fileno(), told], pass_fds=(theirs.fileno(),))


def test_a_plan_may_come_by_a_stream() -> None:
    content = encoded("--", "echo", "one")
    for rest in (b"", b"close\0", encoded("--", "echo", "two")):
        done = launch_stream(content, len(content), rest=rest)
        assert (done.returncode, done.stdout) == (0, b"one\n")


def test_a_stream_that_ends_before_the_plan_does_is_refused() -> None:
    content = encoded("--", "echo", "one")
    assert malformed(launch_stream(content, len(content) + 1)) == "nothing to read"
    assert malformed(launch_stream(content, len(content) - 1)) == "its last word is cut off"
    assert malformed(launch_stream(b"", 1)) == "nothing to read"
    assert malformed(launch_words(["--plan-fd", "77", "9"])) == "nothing to read"


def test_a_plan_descriptor_that_is_not_open_or_not_a_file_is_refused(tmp_path: Path) -> None:
    assert malformed(launch_words(["--plan-fd", "77"])) == "nothing to read"
    reader, writer = os.pipe()
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        os.write(writer, encoded("--", "true"))
        for fd in (reader, directory):
            malformed(launch_words(["--plan-fd", fd], pass_fds=(fd,)))
    finally:
        for fd in (reader, writer, directory):
            os.close(fd)


def test_the_command_does_not_hold_the_plan_descriptor() -> None:
    for keeper in ([], ["supervise", 1]):
        held = held_descriptors(launch_file(encoded(*keeper, "--", *LIST_DESCRIPTORS)))
        assert set(held) == {0, 1, 2}, held


def test_an_empty_word_is_a_word() -> None:
    done = launch_file(encoded("--", "printf", "<%s>", "", "a", ""))
    assert done.stdout == b"<><a><>"


def test_the_abi_is_a_number_and_the_option_stands_alone() -> None:
    done = launch_words(["--abi"])
    assert done.returncode == 0
    assert int(done.stdout) >= -95
    assert malformed(launch_words(["--abi", "--", "true"])) == "unknown operation --abi"


def test_the_launcher_can_wait_for_the_end_of_its_input() -> None:
    """What holds a namespace until its caller has opened it."""
    done = launch_words(["--wait"], stdin=None, input=b"anything")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\n", b"")
    assert malformed(launch_words(["--wait", "x"])) == "unknown operation --wait"


def test_random_plans_are_refused_and_never_crash_the_launcher(tmp_path: Path) -> None:
    """Steps that change something outside the launcher's own process are left out: started by root, without
    namespaces, those about mounts would change the host's."""
    of_mounts = ("readonly", "private", "attach", "pivot", "attributes")
    harmless = [
        name for name in OPERATIONS if name not in (*of_mounts, "oom", "make", "whiteout", "pids", "loopback")
    ]
    chance = random.Random(20_000)
    ran = 0
    for _ in range(300):
        words: list[str] = []
        for _ in range(chance.randrange(6)):
            name = chance.choice(harmless)
            fits = [
                str(len(words)) if k == "d" else w
                for k, w in zip(OPERATIONS[name], operands(OPERATIONS[name]), strict=True)
            ]
            words += [name, *fits]
        if words and chance.random() < 0.8:
            words[chance.randrange(len(words))] = chance.choice(
                ["", "--", "0", "99999999999999999999", "w", "\x01"]
            )
        done = launch_file(encoded(*FILL, *words, "--", "true"))
        assert done.returncode >= 0 or done.returncode == -9, (
            words,
            done,
        )  # 9: `deadline 0` and such end the run
        assert done.returncode != 139, words
        ran += done.returncode == 0
    assert ran > 0
