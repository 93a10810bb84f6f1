"""Output is kept to its limit: the tail, exactly, with an exact count of what was dropped."""

from __future__ import annotations

import resource

import pytest

from cases import case
from corral import LocalEnvironment, Policy, PolicyError
from jail.world import World, python

pytestmark = pytest.mark.jail

PRINT = "import sys; sys.stdout.write('x' * int(sys.argv[1])); sys.stdout.write(sys.argv[2])"


@case("tracker-52")
def test_of_a_long_output_exactly_the_limit_is_kept_and_the_rest_is_counted(
    backend: str, world: World
) -> None:
    with world.environment(backend) as environment:
        done = environment.run(python(PRINT, "200000", ""), output_limit=1024)
    assert (len(done.stdout_bytes), done.stdout_truncated, done.stdout_bytes_dropped) == (1024, True, 198976)


@case("tracker-53")
def test_output_as_long_as_the_limit_is_whole_and_a_byte_more_loses_the_first(
    backend: str, world: World
) -> None:
    with world.environment(backend) as environment:
        whole = environment.run(["printf", "12345678"], output_limit=8)
        assert (whole.stdout, whole.stdout_truncated, whole.stdout_bytes_dropped) == ("12345678", False, 0)
        more = environment.run(["printf", "123456789"], output_limit=8)
        assert (more.stdout, more.stdout_truncated, more.stdout_bytes_dropped) == ("23456789", True, 1)


@case("tracker-54")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_was_printed_last_is_there_after_a_flood(backend: str, world: World, stream: str) -> None:
    source = PRINT.replace("stdout", stream)
    with world.environment(backend) as environment:
        done = environment.run(python(source, "120000", "THE-MARKER"), output_limit=65536)
    text = getattr(done, stream)
    assert text.endswith("xTHE-MARKER")
    assert len(text) == 65536
    assert getattr(done, f"{stream}_bytes_dropped") == 120010 - 65536


@case("tracker-55")
def test_a_flood_on_one_stream_does_not_mark_the_other(backend: str, world: World) -> None:
    source = "import sys; sys.stderr.write('x' * 100000); print('short')"
    with world.environment(backend) as environment:
        done = environment.run(python(source), output_limit=1000)
    assert (done.stdout, done.stdout_truncated, done.stdout_bytes_dropped) == ("short\n", False, 0)
    assert (done.stderr_truncated, done.stderr_bytes_dropped) == (True, 99000)


def test_the_default_limit_is_the_policys_and_there_is_always_one(backend: str, world: World) -> None:
    with LocalEnvironment(
        world.workspace, Policy.workspace_write(backend=backend, output_limit=10)
    ) as environment:
        assert environment.run(["printf", "0123456789ab"]).stdout == "23456789ab"
        for none in (0, -1):
            with pytest.raises(PolicyError, match="output_limit"):
                environment.run(["true"], output_limit=none)
    with world.environment(backend) as environment:
        done = environment.run(["head", "-c", str(11 << 20), "/dev/zero"])
        assert (len(done.stdout_bytes), done.stdout_bytes_dropped) == (10 << 20, 1 << 20)


@case("rubino-42", "peers-L2")
def test_a_flood_without_end_stays_bounded_in_memory(backend: str, world: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with world.environment(backend) as environment:
        done = environment.run(["cat", "/dev/zero"], output_limit=1 << 20, timeout=1)
    assert done.timed_out
    assert done.stdout_bytes_dropped > 20 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@case("peers-L2")
def test_a_flood_that_is_no_text_and_has_no_line_ends_is_kept_as_it_is(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        done = environment.shell("head -c 3000000 /dev/zero | tr '\\0' '\\377'", output_limit=1000)
    assert (done.stdout_bytes, done.stdout) == (b"\xff" * 1000, "\ufffd" * 1000)
    assert (done.stdout_truncated, done.stdout_bytes_dropped) == (True, 2999000)


def test_merged_streams_come_in_order_under_one_limit(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        done = environment.run(["sh", "-c", "echo 1; echo 2 >&2; echo 3"], stderr="merged")
        assert (done.stdout, done.stderr) == ("1\n2\n3\n", "")
        cut = environment.run(["sh", "-c", "echo 1; echo 2 >&2; echo 3"], stderr="merged", output_limit=3)
        assert (cut.stdout, cut.stdout_bytes_dropped) == ("\n3\n", 3)


def test_bytes_that_are_no_text_are_kept_as_they_are(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        done = environment.run(["printf", r"\377\000a"])
    assert done.stdout_bytes == b"\xff\x00a"
    assert done.stdout == "�\x00a"
