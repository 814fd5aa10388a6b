"""The sequence numbers received from a sender."""

from __future__ import annotations

WIDTH = 4096
"""No sender's buffer holds more frames than this (256 KiB of frames of at least 64 bytes)."""
_ALL = (1 << WIDTH) - 1


class Window:
    """Accepts each sequence number once, in any order: the anti-replay window of RFC 4303, 3.4.3.

    A number more than WIDTH behind the highest counts as received, because its sender has dropped the frame
    long ago.
    """

    __slots__ = ("highest", "holes", "kept")

    def __init__(self, highest: int = 0, holes: int = 0) -> None:
        self.highest = highest
        self.holes = holes
        """Bit i is set if `highest - i` is missing."""
        self.kept = highest
        """The highest sequence number when last stored. A restarted sender continues from there."""

    def take(self, sequence: int) -> bool:
        """Records a sequence number. Returns whether it is new."""
        ahead = sequence - self.highest
        if ahead > 0:
            gap = min(ahead, WIDTH)
            self.holes = (self.holes << gap | ((1 << gap) - 1) & ~1) & _ALL
            self.highest = sequence
            return True
        bit = 1 << -ahead if -ahead < WIDTH else 0
        if not self.holes & bit or sequence < 1:
            return False
        self.holes ^= bit
        return True
