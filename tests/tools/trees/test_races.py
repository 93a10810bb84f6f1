"""Looking through a tree while somebody exchanges a directory in it with a link to outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from files.racer import racing
from tools.room import Room

pytestmark = pytest.mark.jail

ROUNDS = 150


def test_no_tool_is_led_outside_by_a_directory_that_becomes_a_link(room: Room, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "found-outside").write_text("the-outside\n")
    room.file("d/found-inside", "the-inside\n")
    (room.root / "link").symlink_to(outside)
    seen: set[str] = set()
    with racing(room.root / "d", room.root / "link") as flips:
        before = flips.count
        for _ in range(ROUNDS):
            for tool, args in (
                ("search_files", {"pattern": "the-"}),
                ("search_files", {"pattern": "the-", "path": "d"}),
                ("find_files", {"pattern": "found-*"}),
                ("list_dir", {"path": "d"}),
                ("checksum_tree", {}),
            ):
                response = room.call(tool, **args)
                text = str(response.get("result", response.get("error")))
                assert "outside\n" not in text
                assert "found-outside" not in text
                seen.update(word for word in ("the-inside", "found-inside") if word in text)
        assert flips.count > before
    assert seen == {"the-inside", "found-inside"}
