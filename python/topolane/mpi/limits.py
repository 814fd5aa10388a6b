"""The limits of a receiver, and the events that it reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of a receiver."""

    connections: int = 20_000
    """Lower if the process may not open that many file descriptors."""
    programs: int = 1_000
    """Programs in memory. Above this number, those that ended first are dropped."""
    ranks: int = 65_536
    """Ranks of one program."""
    entries: int = 8_000_000
    """Entries in the matrices of all programs; each takes about 60 bytes."""
    senders: int = 200_000
    """Ranks of all programs. A restarted rank counts again."""
    buffered: int = 256 << 20
    """Bytes of incomplete frames."""
    hello: float = 10.0
    """Seconds in which a HELLO must arrive."""


@dataclass(frozen=True)
class Event:
    """An event for the log."""

    kind: str
    """One of: program-began, program-ended, rank-gone, rank-began-again, frames-dropped, garbled, refused,
    not-kept, not-accepted.
    """
    program: str
    text: str
