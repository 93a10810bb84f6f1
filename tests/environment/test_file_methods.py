"""The file half of a local environment, held to the same places as its commands."""

from __future__ import annotations

import io
import os
from pathlib import Path

import anyio
import pytest

from corral import AsyncLocalEnvironment, LocalEnvironment, PathEscape, PathNotAllowed, Policy, SensitivePath
from leaks import no_leaks

pytestmark = pytest.mark.jail


@pytest.fixture(params=["off", "namespaces", "landlock"])
def policy(request: pytest.FixtureRequest) -> Policy:
    if request.param == "off":
        return Policy.off()
    return Policy.workspace_write(backend=request.param)


def test_files_and_commands_see_the_same_workspace(policy: Policy, tmp_path: Path) -> None:
    with LocalEnvironment(tmp_path, policy) as env:
        assert env.write_file("a/b/note.txt", "hello") == 5
        assert env.shell("cat a/b/note.txt; echo more > a/other").stdout == "hello"
        assert env.read_file("a/other") == "more\n"
        assert env.read_bytes("a/b/note.txt") == b"hello"
        assert sorted(entry.name for entry in env.list_dir("a")) == ["b", "other"]
        assert env.glob("**/*.txt") == ["a/b/note.txt"]
        assert env.stat("a/other").st_size == 5
        env.rename("a/other", "moved")
        with env.open("moved") as file:
            assert file.read() == "more\n"
        env.write_file("copy", io.BytesIO(b"bytes"))
        env.remove_file("moved")
        env.remove_tree("a")
        env.make_dir("empty")
        assert env.working_dir == os.path.realpath(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["copy", "empty"]


def test_what_leads_outside_or_holds_secrets_is_refused_and_leaves_nothing(
    policy: Policy, tmp_path: Path
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / "link").symlink_to(outside)
    (work / ".env").write_text("SECRET=1")
    with LocalEnvironment(work, policy) as env:
        for path in ("../x", "link/x", str(outside / "x"), "missing/../../x"):
            with pytest.raises(PathEscape):
                env.write_file(path, "x")
        with pytest.raises(SensitivePath):
            env.read_file(".env")
        env.write_file("fine", "x")
    assert os.listdir(outside) == []
    assert sorted(os.listdir(work)) == [".env", "fine", "link"]


def test_writable_globs_bind_files_exactly_and_read_only_binds_them_all(tmp_path: Path) -> None:
    with LocalEnvironment(tmp_path, Policy.workspace_write(writable=("out/*.md",))) as env:
        env.write_file("out/a.md", "x")
        for path in ("out/a.txt", "b.md"):
            with pytest.raises(PathNotAllowed):
                env.write_file(path, "x")
    with LocalEnvironment(tmp_path, Policy.read_only()) as env:
        with pytest.raises(PathNotAllowed):
            env.write_file("out/a.md", "y")
        assert env.read_file("out/a.md") == "x"


def test_an_added_root_counts_for_files_too_and_nothing_leaks(policy: Policy, tmp_path: Path) -> None:
    work, added = tmp_path / "work", tmp_path / "added"
    work.mkdir()
    added.mkdir()
    with no_leaks(), LocalEnvironment(work, policy) as env:
        with pytest.raises(PathEscape):
            env.write_file(str(added / "x"), "x")
        env.add_root(added)
        env.write_file(str(added / "x"), "x")
    assert (added / "x").read_text() == "x"


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_async_twin_opens_files_for_reading_and_writing(loop: str, tmp_path: Path) -> None:
    async def use() -> None:
        async with AsyncLocalEnvironment(tmp_path, Policy.off()) as env:
            async with await env.open("d/f", "w") as writing:
                assert await writing.write("one\n") == 4
                await writing.writelines(["two\n"])
                assert not (tmp_path / "d/f").exists()
            async with await env.open("d/f") as reading:
                assert await reading.read() == "one\ntwo\n"
            with pytest.raises(FileExistsError):
                await env.open("d/f", "xb")
            with pytest.raises(ZeroDivisionError):
                async with await env.open("d/f", "wb") as broken:
                    await broken.write(b"half")
                    raise ZeroDivisionError
            async with await env.open("d/f", "rb") as raw:
                assert await raw.read() == b"one\ntwo\n"
            await env.write_file("g", io.StringIO("text"), existing="refuse", encoding="utf-16-le")
            assert await env.read_bytes("g") == "text".encode("utf-16-le")
            assert [top async for top, _, _ in env.walk()] == [".", "d"]
            handle = await env.open("h", "w")
            with anyio.CancelScope() as scope:
                async with handle:
                    scope.cancel()
                    await anyio.sleep(1)
            assert handle.closed
        assert sorted(os.listdir(tmp_path)) == ["d", "g"]

    anyio.run(use, backend=loop)


def test_further_names_hold_secrets_if_the_policy_says_so_besides_those_that_always_do(
    tmp_path: Path,
) -> None:
    for name in ("server.pem", "deep/Server.pem", "pem", ".env"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("server.pem")
    os.link(tmp_path / "server.pem", tmp_path / "other-name")
    with LocalEnvironment(tmp_path, Policy.workspace_write(sensitive=["*.pem"])) as env:
        for path in ("server.pem", "deep/Server.pem", "link", "other-name", "new.pem/below", ".env"):
            with pytest.raises(SensitivePath):
                env.read_file(path)
        with pytest.raises(SensitivePath):
            env.write_file("new.pem", "x")
        assert env.read_file("./pem") == "x"
        assert env.glob("**/*") == ["deep", "link", "other-name", "pem"]
