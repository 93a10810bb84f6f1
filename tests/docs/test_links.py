"""The pages outside the site, whose links mkdocs does not see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.blocks import ROOT

LINK = re.compile(r"\]\((?!https?://)([^)#]+)")


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: str(page.name))
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert not [link for link in LINK.findall(page.read_text()) if not (ROOT / link).is_file()]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 120
