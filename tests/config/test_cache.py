"""A second start parses nothing and imports nothing for it; and a cache that lies is not believed."""

from __future__ import annotations

import marshal
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from config.desk import Desk
from corral.config import default_text, load_policy, source

TEXT = """
mode = "workspace-write"
writable = ["src/**"]
rw = ["/srv/cache"]
hide = ["secret"]
unhide = ["~/.npmrc"]
demand = ["keys"]
[limits]
wall = "10m"
memory = "2G"
[environment]
rules = ["drop CI_*", "keep MY_TOKEN", "set CI=1"]
[profile.look]
mode = "read-only"
"""

# -S: what `site` and editable installs import is not ours to count.
LOAD_AND_TELL = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from corral.config import load
loaded = load("look", sys.argv[2])
print(loaded.policy.mode, *sorted(set(sys.modules) - before))
"""
SLOW = {"tomllib", "re", "typing", "pathlib", "json", "dataclasses", "enum", "difflib", "hashlib", "tempfile"}


def modules_of_a_load(desk: Desk) -> set[str]:
    package = Path(str(source.__file__)).parents[2]
    command = [sys.executable, "-I", "-S", "-c", LOAD_AND_TELL, str(package), str(desk.project)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    mode, *modules = done.stdout.split()
    assert mode == "read-only"
    return {name.split(".")[0] for name in modules} | set(modules)


def cache_file(desk: Desk) -> Path:
    (found,) = (desk.state / "config-cache").iterdir()
    return found


def test_a_warm_start_imports_nothing_slow(desk: Desk) -> None:
    desk.user(TEXT)
    desk.theirs('limits.wall = "1m"')
    assert "tomllib" in modules_of_a_load(desk)
    warm = modules_of_a_load(desk)
    assert not warm & SLOW
    assert "corral.config.schema" in warm


def test_without_files_not_even_the_schema_is_imported(desk: Desk) -> None:
    code = "import sys; from corral.config import load; load(); print('corral.config.schema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_cache_is_the_users_alone(desk: Desk) -> None:
    desk.user(TEXT)
    load_policy()
    assert stat.S_IMODE(cache_file(desk).stat().st_mode) == 0o600
    assert stat.S_IMODE(cache_file(desk).parent.stat().st_mode) == 0o700


def test_a_change_within_the_same_stamp_is_seen(desk: Desk) -> None:
    desk.user('mode = "strict"')
    info = desk.user_file.stat()
    assert load_policy().mode == "strict"
    with desk.user_file.open("r+") as file:
        file.write('mode = "casual"')
    os.utime(desk.user_file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert load_policy().mode == "casual"
    assert len(list((desk.state / "config-cache").iterdir())) == 1


def planted(desk: Desk) -> bytes:
    """A cache in the right format that says something else than the file."""
    payload = marshal.dumps((desk.user_file.read_bytes(), {"mode": "off"}))
    return source._CACHE_FORMAT + source._fingerprint(payload).encode() + b"\0" + payload


def test_the_cache_is_what_is_used(desk: Desk) -> None:
    """The positive control of the tests below: a well-made cache is believed."""
    desk.user(TEXT)
    load_policy()
    cache_file(desk).write_bytes(planted(desk))
    assert load_policy().mode == "off"


@pytest.mark.parametrize(
    "spoil", ["truncate", "flip", "empty", "garbage", "mode", "link", "directory", "no dict"]
)
def test_a_spoiled_cache_is_ignored_and_made_again(desk: Desk, spoil: str) -> None:
    desk.user(TEXT)
    good = load_policy()
    file = cache_file(desk)
    content = planted(desk)
    file.write_bytes(content)
    if spoil == "truncate":
        file.write_bytes(content[:-3])
    elif spoil == "flip":
        file.write_bytes(content.replace(b"off", b"ogf"))
    elif spoil == "empty":
        file.write_bytes(b"")
    elif spoil == "garbage":
        file.write_bytes(os.urandom(500))
    elif spoil == "mode":
        file.chmod(0o666)
    elif spoil == "link":
        file.rename(desk.home / "elsewhere")
        file.symlink_to(desk.home / "elsewhere")
    elif spoil == "directory":
        file.unlink()
        file.mkdir()
    else:
        payload = marshal.dumps((desk.user_file.read_bytes(), []))
        file.write_bytes(source._CACHE_FORMAT + source._fingerprint(payload).encode() + b"\0" + payload)
    assert load_policy() == good
    if spoil != "directory":
        assert marshal.loads(file.read_bytes().partition(b"\0")[2])[1]["mode"] == "workspace-write"


def test_a_cache_of_somebody_else_is_ignored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.user(TEXT)
    load_policy()
    cache_file(desk).write_bytes(planted(desk))
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert load_policy().mode == "workspace-write"


def test_without_a_state_directory_it_works_all_the_same(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.user(TEXT)
    monkeypatch.setenv("CORRAL_STATE_DIR", "/proc/nowhere")
    assert load_policy().limits.wall == 600
    (desk.home / "file").write_text("")
    monkeypatch.setenv("CORRAL_STATE_DIR", str(desk.home / "file"))
    assert load_policy().limits.wall == 600


def test_a_wrong_file_stays_wrong_when_its_parsed_form_is_cached(desk: Desk) -> None:
    desk.user('\nmode = "readonly"')
    first = desk.refusal(desk.user_file, 2)
    assert cache_file(desk).exists()
    assert desk.refusal(desk.user_file, 2) == first


def test_many_threads_share_one_cache(desk: Desk) -> None:
    desk.user(default_text())
    found: list[str] = []

    def load_often() -> None:
        for _ in range(20):
            found.append(load_policy().mode)
            for file in (desk.state / "config-cache").iterdir():
                if "." not in file.name:
                    file.unlink(missing_ok=True)

    threads = [threading.Thread(target=load_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["workspace-write"] * 160
    load_policy()
    assert cache_file(desk).exists(), "one file, and nothing temporary beside it"
