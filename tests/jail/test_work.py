"""Ordinary work goes on inside: git, temp files, terminals, worker processes, shell constructions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral import LocalEnvironment, Policy
from jail.world import PYTHON, World, python

pytestmark = pytest.mark.jail

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def test_git_initialises_commits_branches_and_adds_a_worktree(backend: str, world: World) -> None:
    lines = (
        "git init -q -b main .",
        "echo one > file && git add file && git commit -q -m first",
        "git checkout -q -b topic && git mv file moved && git commit -q -am second",
        "git worktree add -q tree main && echo two > tree/file && git -C tree commit -q -am third",
        "git merge -q main -m merged && git gc -q && git fsck && git status --porcelain --ignored",
        "git stash list && git worktree remove --force tree",
    )
    with world.environment(backend) as environment:
        for line in lines:
            done = environment.shell(line, extra_env=IDENTITY)
            assert done.ok, f"{line}: {done.stderr}"
        assert environment.shell("git log --oneline --all | wc -l").stdout.strip() == "4"


def test_git_clones_what_can_be_read(backend: str, world: World) -> None:
    origin = world.outside / "origin"
    with LocalEnvironment(world.outside, Policy.workspace_write(backend=backend)) as outside:
        assert outside.shell(
            "git init -q origin && cd origin && git commit -q --allow-empty -m x", extra_env=IDENTITY
        ).ok
    with world.environment(backend) as environment:
        done = environment.shell(f"git clone -q --no-hardlinks {origin} copy && git -C copy log --format=%s")
        assert done.stdout == "x\n", done.stderr


def test_renames_and_links_across_directories_work_inside_one_root(backend: str, world: World) -> None:
    lines = "mkdir -p a/b c && echo x > a/b/f && mv a/b/f c/f && ln c/f a/b/f && mv a d && mv d c/d && cat c/d/b/f"
    with world.environment(backend) as environment:
        done = environment.shell(lines)
        assert done.stdout == "x\n", done.stderr
        exchange = "import ctypes; assert ctypes.CDLL(None).renameat2(-100, b'c', -100, b'e', 2) == 0"
        assert environment.shell("mkdir e").ok
        assert environment.run(python(exchange)).ok
    assert (world.workspace / "e/d/b/f").stat().st_nlink == 2


def test_harmless_devices_stay_usable(backend: str, world: World) -> None:
    line = "echo x > /dev/null && head -c4 /dev/zero | wc -c && head -c4 /dev/urandom | wc -c && echo y > /dev/stdout"
    with world.environment(backend) as environment:
        done = environment.shell(line)
        assert done.stdout.split() == ["4", "4", "y"], done.stderr
        assert not environment.shell("echo x > /dev/full").ok


def test_temp_files_are_made_where_programs_make_them(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        assert (
            environment.shell("f=$(mktemp) && d=$(mktemp -d) && mv $f $d/ && ls $d | wc -l").stdout == "1\n"
        )
        modern = (
            "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); print(tempfile.gettempdir())"
        )
        assert environment.run(python(modern)).ok
        assert environment.run(["sort", "-S", "1k"], stdin="\n".join(map(str, range(20000)))).ok


def test_shell_constructions_work(backend: str, world: World) -> None:
    line = """
cat <<EOF
here
EOF
cat <<< string
diff <(echo a) <(echo a) && echo same
echo x | tee >(cat > copied) > /dev/null; sleep 0.1; cat copied
coproc { read x; echo "got $x"; }; echo y >&"${COPROC[1]}"; read z <&"${COPROC[0]}"; echo $z
"""
    with world.environment(backend) as environment:
        done = environment.shell(line)
    assert done.stdout.split("\n") == ["here", "string", "same", "x", "got y", ""], done.stderr


POOL = """
import multiprocessing
def square(n):
    return n * n
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(square, range(10))))
    queue, lock = multiprocessing.Queue(), multiprocessing.Lock()
    worker = multiprocessing.Process(target=queue.put, args=("sent",))
    worker.start()
    with lock:
        print(queue.get())
    worker.join()
"""


def test_worker_processes_share_memory_in_the_namespaces_tier(world: World) -> None:
    (world.workspace / "pool.py").write_text(POOL)
    with world.environment("namespaces") as environment:
        assert environment.run([PYTHON, "pool.py"], timeout=20).stdout == "285\nsent\n"


def test_worker_processes_share_memory_in_the_landlock_tier_when_the_policy_allows_it(world: World) -> None:
    (world.workspace / "pool.py").write_text(POOL)
    with world.environment("landlock") as environment:
        assert "PermissionError" in environment.run([PYTHON, "pool.py"], timeout=20).stderr
    with world.environment("landlock", shared_memory=True) as environment:
        assert environment.run([PYTHON, "pool.py"], timeout=20).stdout == "285\nsent\n"


TERMINAL = """
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "tty; stty size < /dev/tty; echo done > /dev/tty"])
text = b""
try:
    while chunk := os.read(master, 1024):
        text += chunk
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.write(text.decode())
"""


def test_terminals_can_be_opened_in_the_namespaces_tier(world: World) -> None:
    with world.environment("namespaces") as environment:
        seen = environment.run(python(TERMINAL), timeout=20).stdout.split()
    assert (seen[0], seen[-1]) == ("/dev/pts/0", "done")


def test_a_program_made_inside_can_be_run(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        assert (
            environment.shell("printf '#!/bin/sh\\necho ran' > tool; chmod +x tool; ./tool").stdout == "ran\n"
        )


def test_who_we_are_is_the_same_inside(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        assert environment.run(["id", "-u"]).stdout == f"{os.getuid()}\n"
        assert environment.run(["id", "-g"]).stdout == f"{os.getgid()}\n"
        assert environment.shell("echo x > mine").ok
    assert (world.workspace / "mine").stat().st_uid == os.getuid()


def test_the_umask_passes_through_and_pipes_break_as_usual(backend: str, world: World) -> None:
    old = os.umask(0o027)
    try:
        with world.environment(backend) as environment:
            assert environment.shell("umask; touch made; yes | head -n1").stdout == "0027\ny\n"
    finally:
        os.umask(old)
    assert (world.workspace / "made").stat().st_mode & 0o777 == 0o640


def test_more_roots_than_one_are_writable(backend: str, world: World, tmp_path: Path) -> None:
    with world.environment(backend, roots=(str(tmp_path), str(world.granted))) as environment:
        for root in (world.workspace, tmp_path, world.granted):
            assert environment.shell(f"echo x > {root}/x").ok
        assert not environment.shell(f"echo x > {world.outside}/x").ok
