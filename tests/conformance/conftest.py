"""Other people's suites come with the `dev` extra. The run as an ordinary user has the `test` extra only."""

from __future__ import annotations

import os

import pytest

collect_ignore = (
    ["test_inspect.py", "test_langchain.py"] if os.environ.get("CORRAL_TEST_IDENTITY") == "user" else []
)

# Each reads megabytes in pages of a few kilobytes, a Python in a jail for each.
HEAVY = (
    "test_aread_large_text_payload_paginated_roundtrip",
    "test_write_read_download_large_text_with_escaped_content",
    "test_awrite_aread_adownload_large_text_with_escaped_content",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in HEAVY:
            item.add_marker(pytest.mark.soak)
