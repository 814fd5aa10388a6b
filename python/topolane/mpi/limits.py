"""What a receiver takes at most, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a receiver takes at most."""

    connections: int = 20_000
    """Fewer where the process may not have as many file descriptors."""
    programs: int = 1_000
    """In memory; where there are as many, those that ended first go."""
    ranks: int = 65_536
    """Of one program."""
    entries: int = 8_000_000
    """Of the matrices of all programs; each takes some 60 bytes."""
    senders: int = 200_000
    """Ranks of all programs; one that is started again counts again."""
    buffered: int = 256 << 20
    """Bytes of frames that have come in part."""
    hello: float = 10.0
    """Seconds to say who one is."""


@dataclass(frozen=True)
class Event:
    """Something a person may want to know."""

    kind: str
    """program-began, program-ended, rank-gone, rank-began-again, frames-dropped, garbled, refused, not-kept, not-accepted."""
    program: str
    text: str
