"""A project's file that a jail could change is not believed again before a person has looked."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from config.desk import Desk
from corral.config import accept_project, check_project, load_policy, remember_project
from corral.errors import ConfigError


def record(desk: Desk) -> Path:
    return desk.state / "projects" / hashlib.sha256(os.fsencode(desk.project.resolve())).hexdigest()


def test_an_unchanged_file_is_fine(desk: Desk) -> None:
    desk.theirs('network = "off"')
    check_project(desk.project)
    assert remember_project(desk.project)
    check_project(desk.project)
    assert remember_project(desk.project)
    assert desk.load().policy.network == "off"


def refusals(desk: Desk) -> list[str]:
    """What each way to use the project says."""
    messages = []
    for use in (check_project, remember_project, lambda project: load_policy(project=project)):
        with pytest.raises(ConfigError) as caught:
            use(desk.project)
        messages.append(str(caught.value))
        assert caught.value.grant == f"corral trust {desk.project}"
    return messages


@pytest.mark.parametrize("now", ["", 'network = "open"', 'network = "off"\n', "no toml", None])
def test_a_changed_or_removed_file_is_refused_until_it_is_accepted(desk: Desk, now: str | None) -> None:
    desk.user('network = "open"')
    desk.theirs('network = "off"')
    remember_project(desk.project)
    if now is None:
        desk.project_file.unlink()
    else:
        desk.theirs(now)
    what = "was removed" if now is None else "changed"
    told = f"{desk.project_file}: {what} while a jail that could not protect it was in use; "
    told += f"look at it, then accept it with: corral trust {desk.project}"
    assert set(refusals(desk)) == {told}
    assert accept_project(desk.project)
    check_project(desk.project)
    if now == "no toml":
        desk.refusal(desk.project_file, 1)
        return
    assert load_policy(project=desk.project).network == (
        "open" if now in ("", None, 'network = "open"') else "off"
    )


def test_the_way_to_the_project_does_not_matter(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.theirs("")
    (desk.home / "link").symlink_to(desk.project)
    remember_project(desk.home / "link")
    desk.theirs("# changed")
    refusals(desk)
    monkeypatch.chdir(desk.project)
    with pytest.raises(ConfigError, match="changed while a jail"):
        check_project(".")


def test_another_project_is_not_concerned(desk: Desk) -> None:
    desk.theirs("")
    remember_project(desk.project)
    desk.theirs("# changed")
    other = desk.home / "other"
    other.mkdir()
    (other / "corral.toml").write_text("# anything")
    check_project(other)
    load_policy(project=other)


def test_a_project_without_a_file_has_nothing_to_remember(desk: Desk) -> None:
    assert not remember_project(desk.project)
    assert not accept_project(desk.project)
    check_project(desk.project)
    desk.theirs("")
    check_project(desk.project)


def test_the_record_is_private_and_sha256sum_reads_it(desk: Desk) -> None:
    desk.theirs("# a comment\n")
    remember_project(desk.project)
    assert stat.S_IMODE(record(desk).stat().st_mode) == 0o600
    subprocess.run(["sha256sum", "--check", "--strict", record(desk)], check=True, capture_output=True)


def test_a_spoiled_record_is_no_permission(desk: Desk) -> None:
    desk.theirs("")
    remember_project(desk.project)
    for content in (b"", b"\xff" * 64, b"0" * 64):
        record(desk).write_bytes(content)
        refusals(desk)
    record(desk).unlink()
    record(desk).mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        check_project(desk.project)


def test_where_nothing_can_be_kept_that_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.theirs("")
    monkeypatch.setenv("CORRAL_STATE_DIR", "/proc/nowhere")
    assert not remember_project(desk.project)


def test_a_file_swapped_for_a_link_is_refused(desk: Desk) -> None:
    desk.theirs("")
    remember_project(desk.project)
    desk.project_file.unlink()
    (desk.home / "same").write_text("")
    desk.project_file.symlink_to(desk.home / "same")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        check_project(desk.project)
