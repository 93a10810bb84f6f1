"""How many in a second, from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def finished_in(once: Callable[[], object], seconds: float, threads: int) -> float:
    """Each thread goes on until the time is over; a run under way then is finished, and counted with its time."""
    counts = [0] * threads
    errors: list[BaseException] = []
    started = time.perf_counter()

    def work(number: int) -> None:
        try:
            while time.perf_counter() - started < seconds:
                once()
                counts[number] += 1
        except BaseException as error:  # noqa: BLE001 raised again below, in the thread that asked
            errors.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.perf_counter() - started)
