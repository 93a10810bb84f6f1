"""The table of key material, and what an editor leaves beside it."""

from __future__ import annotations

import os
from pathlib import Path

from cases import case
from corral.paths.sensitive import KEY_MATERIAL, existing_backups, with_backups

# What another fence hides by default, and the gaps that were found in its list.
KNOWN = (
    *(".ssh", ".gnupg", ".local/share/keyrings", ".netrc", ".git-credentials", ".aws", ".azure"),
    *(".config/gcloud", ".config/gh", ".config/Keybase", ".config/kube", ".docker", ".password-store"),
    *(".mozilla", ".config/BraveSoftware", ".config/chromium", ".config/google-chrome", ".config/mozilla"),
    *(".bash_history", ".zsh_history"),
)
GAPS = (
    *(".kube", ".npmrc", ".pypirc", ".config/op", ".cargo/credentials", ".cargo/credentials.toml"),
    *(
        ".terraform.d",
        ".config/rclone",
        ".claude",
        ".claude.json",
        ".codex",
        ".local/share/fish/fish_history",
    ),
    *(".python_history", ".psql_history", ".Xauthority"),
)
START_UP = (
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".config/fish",
    ".inputrc",
    ".gitconfig",
)


@case("jai-17")
def test_the_table_has_every_known_name_and_no_start_up_file() -> None:
    assert {*KNOWN, *GAPS} <= {*KEY_MATERIAL}
    assert not {*START_UP} & {*KEY_MATERIAL}
    assert len({*KEY_MATERIAL}) == len(KEY_MATERIAL)
    for name in KEY_MATERIAL:
        assert os.path.normpath(name) == name
        assert not name.startswith(("/", "..", "~"))
        assert not any(other != name and name.startswith(f"{other}/") for other in KEY_MATERIAL), name


def test_a_name_is_followed_by_all_that_editors_leave_beside_it() -> None:
    assert with_backups(["a/.netrc"]) == (
        *("a/.netrc", "a/.netrc~", "a/.#.netrc", "a/#.netrc#", "a/..netrc.swp", "a/.netrc.swp"),
        *("a/.netrc.bak", "a/.netrc.backup", "a/.netrc.old", "a/.netrc.orig", "a/.netrc.save"),
    )
    assert {"key~", ".#key", "#key#", ".key.swp", "key.bak"} <= {*with_backups(["key"])}
    assert with_backups([]) == ()


def test_only_those_that_are_there_are_found_dangling_links_too(tmp_path: Path) -> None:
    wanted = [str(tmp_path / ".netrc"), str(tmp_path / "missing/key")]
    assert existing_backups(wanted) == []
    (tmp_path / ".netrc~").write_text("x")
    (tmp_path / ".#.netrc").symlink_to("user@host.1:2")
    (tmp_path / ".netrc.other").write_text("x")
    assert existing_backups(wanted) == [str(tmp_path / ".netrc~"), str(tmp_path / ".#.netrc")]
