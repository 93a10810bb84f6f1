"""Where a regular expression matches a text, group by group. Also the program that does so in a process of its own, for
expressions that some text may make slow: that can be ended. It imports only what it needs."""

from __future__ import annotations

import json
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # From and to of the whole match and of each group; (-1, -1) for a group that took no part.
    Spans = list[list[tuple[int, int]]]


def spans(expression: re.Pattern[str], text: str) -> Spans:
    groups = range(expression.groups + 1)
    return [[match.span(group) for group in groups] for match in expression.finditer(text)]


if __name__ == "__main__":
    pattern, flags = json.loads(sys.stdin.readline())
    compiled = re.compile(pattern, flags)
    for line in sys.stdin:
        print(json.dumps(spans(compiled, json.loads(line))))
