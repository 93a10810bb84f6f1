"""A file of the user's with all that it includes: what is included lies below what includes it."""

from __future__ import annotations

import os

from corral.config.source import read, shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.config.source import Source, Where

INCLUDES = ("include", "include-optional")


def with_includes(source: Source) -> list[Source]:
    """Every file once, the included ones before the one that includes them."""
    if not any(key in source.data for key in INCLUDES):
        return [source]
    found: list[Source] = []
    _collect(source, [], found)
    return found


def _collect(source: Source, above: list[tuple[Source, Where]], found: list[Source]) -> None:
    for where, path in _included(source):
        target = read(path, follow=True)
        if target is None:
            if where[0] == "include":
                raise source.refuse(where, f"includes {shown_path(path)}, which is not there")
            continue
        chain = [*above, (source, where)]
        _refuse_loop(target, chain)
        if all(target.identity != other.identity for other in found):
            _collect(target, chain, found)
    found.append(source)


def _included(source: Source) -> list[tuple[Where, str]]:
    from corral.config.expansion import expanded
    from corral.config.values import Wrong, list_of
    from corral.config.values import path as read_path

    paths: list[tuple[Where, str]] = []
    for key in INCLUDES:
        if key not in source.data:
            continue
        try:
            names = list_of(read_path)(expanded(key, source.data[key]))
        except Wrong as wrong:
            raise source.refuse((key, *wrong.at), f"{key} {wrong.why}") from None
        directory = os.path.dirname(source.path)
        paths += [
            ((key, index), os.path.normpath(os.path.join(directory, os.path.expanduser(name))))
            for index, name in enumerate(names)
        ]
    return paths


def _refuse_loop(target: Source, chain: list[tuple[Source, Where]]) -> None:
    for outer, where in chain:
        if outer.identity == target.identity:
            last, at = chain[-1]
            first = f"{shown_path(outer.path)}:{outer.line(where)}"
            raise last.refuse(at, f"includes {shown_path(target.path)}, which leads back here from {first}")
