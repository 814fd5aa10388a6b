"""Waking seldom: a thousand ranks that report evenly spread would wake the manager for every single frame."""

from __future__ import annotations

import selectors
import time
from typing import Any

PAUSE = 0.02
"""Seconds from one look at the sockets to the next: what arrives meanwhile is taken in together."""


class ModeratedSelector(selectors.DefaultSelector):
    """Moderates interrupts as network cards do: what comes after a rest is answered at once, a stream by portions.

    A frame is some 20 microseconds of work; one that wakes a process that sleeps costs several times that.
    """

    def __init__(self) -> None:
        super().__init__()
        self._looked = -PAUSE

    def select(self, timeout: float | None = None) -> Any:
        """As the base class; rests first where the last look was a moment ago and nothing else is to be done."""
        rest = self._looked + PAUSE - time.monotonic()
        if timeout is not None:
            rest = min(rest, timeout)
        if rest > 0:
            time.sleep(rest)
            timeout = None if timeout is None else timeout - rest
        found = super().select(timeout)
        self._looked = time.monotonic()
        return found
