"""Counters that grow, as rates since the last look."""

from __future__ import annotations

import time
from collections.abc import Mapping


class Rates:
    """Remembers counters by name. A counter that is new, or smaller than before, began at 0 since the last look."""

    def __init__(self) -> None:
        self._before: Mapping[str, float] | None = None
        self._at = 0.0

    def look(self, counters: Mapping[str, float]) -> dict[str, float]:
        """What each grew by in a second; empty at the first look."""
        now, before = time.monotonic(), self._before
        passed, self._at, self._before = now - self._at, now, dict(counters)
        if before is None or passed <= 0:
            return {}
        return {name: _grown(before.get(name, 0.0), value) / passed for name, value in counters.items()}


def _grown(before: float, value: float) -> float:
    return value - before if value >= before else value
