"""Reading the record back, and checking that it is whole."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from corral.audit.log import (
    GENESIS,
    HEAD,
    HEAD_BYTES,
    START,
    Position,
    segment_numbers,
    segment_path,
)
from corral.digest import digest
from corral.record import Record

PROBLEMS_SHOWN = 20


class Report(Record):
    """What `verify` found. ``head`` stands for the whole log: noted elsewhere, it can be asked for later."""

    records: int
    first: int
    last: int
    head: str
    problems: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return not self.problems


@contextlib.contextmanager
def standing_still(directory: str) -> Iterator[Position | None]:
    """The position of the log, with every writer waiting. None if the head is not there or is no head of ours."""
    try:
        fd = os.open(os.path.join(directory, HEAD), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        raw = os.pread(fd, HEAD_BYTES, 0)
        yield Position.decode(raw) if raw else START
    finally:
        os.close(fd)


def lines(directory: str, first: int = 0) -> Iterator[tuple[str, bytes]]:
    """Every line with the name of its place, oldest first."""
    for number in segment_numbers(directory):
        if number < first:
            continue
        path = segment_path(directory, number)
        with open(path, "rb") as file:
            for count, line in enumerate(file, 1):
                yield f"{os.path.basename(path)}:{count}", line


def last_records(directory: str, count: int) -> list[dict[str, Any]]:
    """The last records; lines that are none are left out, which is for `verify` to say."""
    from collections import deque

    kept: deque[dict[str, Any]] = deque(maxlen=count)
    if os.path.isdir(directory):
        for _, line in lines(directory):
            record = _parsed(line)
            if record is not None:
                kept.append(record)
    return list(kept)


def verify(directory: str, expected: str | None = None) -> Report:
    """Walk the whole chain. ``expected``: a head that was noted earlier, which must still be part of it."""
    if not os.path.isdir(directory):
        return _ended(Walk(START, expected), None)
    with standing_still(directory) as position:
        numbers = segment_numbers(directory)
        walk = Walk(position or START, expected)
        if position is None and numbers:
            walk.complain("the head is missing or is not ours: what is missing at the end cannot be told")
        if position is not None and position.count:
            for number in range(position.first, position.segment + 1):
                if number not in numbers:
                    walk.complain(f"{os.path.basename(segment_path(directory, number))} is missing")
        for place, line in lines(directory, position.first if position else 0):
            walk.step(place, line)
        return _ended(walk, position)


class Walk:
    """Goes along the chain and notes where it does not hold; after a fault it goes on from what it finds."""

    def __init__(self, start: Position, expected: str | None) -> None:
        self.count, self.hash = start.base_count, start.base_hash
        self.first = start.base_count + 1
        self.expected = expected
        self.met = expected in (None, GENESIS)
        self.seen = 0
        self.at_head = (start.count, start.hash) == (self.count, self.hash)
        self.after_head = 0
        self.problems: list[str] = []
        self._head = (start.count, start.hash)

    def complain(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(problem)

    def step(self, place: str, line: bytes) -> None:
        content = line.removesuffix(b"\n")
        record = _parsed(line)
        if record is None:
            self.complain(f"{place}: not a record")
            return
        number = record["n"]
        if number != self.count + 1:
            self.complain(f"{place}: record {number} stands where record {self.count + 1} belongs")
        elif record["previous"] != self.hash:
            self.complain(
                f"{place}: record {self.count or number} is not the one that record {number} follows"
            )
        if record.get("kind") == "break":
            self.complain(f"{place}: the chain was broken before this: {record.get('reason')}")
        self.count, self.hash = number, digest(content)
        self.seen += 1
        self.after_head += self.at_head
        self.at_head = self.at_head or (self.count, self.hash) == self._head
        self.met = self.met or self.hash == self.expected


def _ended(walk: Walk, position: Position | None) -> Report:
    """A single record after the head is a writer's that was ended before it could say so: the next one counts it."""
    if position is not None and not walk.at_head:
        if walk.count < position.count:
            walk.complain(f"the last {position.count - walk.count} of {position.count} records are missing")
        else:
            walk.complain(f"record {position.count} is not the one that was written last")
    elif position is not None and walk.after_head > 1:
        walk.complain(f"{walk.after_head} records after the last that was written")
    if not walk.met:
        walk.complain(f"{walk.expected} is not part of this log")
    return Report(walk.seen, walk.first, walk.count, walk.hash, tuple(walk.problems))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """None if it is no record: torn, not JSON, or without its number and its link."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("previous"), str):
        return None
    return record if isinstance(record.get("n"), int) else None
