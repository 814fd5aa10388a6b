"""A selector that wakes rarely: otherwise a thousand ranks would wake the manager for every single frame."""

from __future__ import annotations

import selectors
import time
from typing import Any

PAUSE = 0.02
"""Seconds between two looks at the sockets: frames that arrive meanwhile are received together."""


class ModeratedSelector(selectors.DefaultSelector):
    """Moderates wake-ups like the interrupts of network cards: data after a pause is handled at once, a
    stream in batches.

    A frame takes about 20 microseconds of work; waking a sleeping process costs several times that.
    """

    def __init__(self) -> None:
        super().__init__()
        self._looked = -PAUSE

    def select(self, timeout: float | None = None) -> Any:
        """Like the base class, but sleeps first if the last look was a moment ago and nothing else is
        pending.
        """
        rest = self._looked + PAUSE - time.monotonic()
        if timeout is not None:
            rest = min(rest, timeout)
        if rest > 0:
            time.sleep(rest)
            timeout = None if timeout is None else timeout - rest
        found = super().select(timeout)
        self._looked = time.monotonic()
        return found
