"""Who holds a jail is told by a file and its lock; somebody who only looks must not take either away."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.jail.named import NamedJail
from corral.jail.stage import living
from homes.dweller import Dweller

pytestmark = pytest.mark.jail


def test_a_holder_about_to_be_one_is_left_alone_and_a_dead_one_is_removed(tmp_path: Path) -> None:
    holders = tmp_path / "holders"
    holders.mkdir()
    (holders / ".1-new").touch()
    (holders / "2-dead").write_text("2 3 4\nterms\n")
    assert list(living(NamedJail("any", str(tmp_path)))) == []
    assert [path.name for path in holders.iterdir()] == [".1-new"]


def test_a_jail_in_use_is_neither_removed_nor_set_aside(anybody: Dweller) -> None:
    run = anybody.starts("echo in; read line; echo $line > ~/kept", "-j", "busy", mode="strict")
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "in\n"
        for words in (("jails", "rm", "busy"), ("down", "-j", "busy", "--set-aside")):
            assert "in use by pid" in anybody.is_refused(*words, code=125)
        run.communicate("still there\n", timeout=30)
    finally:
        run.kill()
        run.wait()
    assert anybody.says("cat ~/kept", "-j", "busy", mode="strict") == "still there\n"
    assert anybody.reads("jails", "rm", "busy") == "removed busy\n"
