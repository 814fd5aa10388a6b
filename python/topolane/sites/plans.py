"""A plan: which guests move where, and the benefit for each program. Plain values, with conversion to JSON
and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PlannedMove:
    """One guest from one host to another."""

    guest: str
    source: str
    target: str
    programs: tuple[str, ...]
    """The programs for which it moves."""
    why: str


@dataclass(frozen=True)
class ProgramAssessment:
    """A policy's assessment of programs that share guests, and so move together."""

    programs: tuple[str, ...]
    guests: int
    now: dict[str, int]
    """How many guests are on each site."""
    then: dict[str, int]
    turns: float
    """Turns per second across the best middle, of the rank that waits most."""
    bytes: float
    """Bytes per second across it, in the busier direction."""
    loss_now: float
    """Seconds that a second of the run on one site takes longer."""
    loss_then: float
    remaining: float
    """Seconds that the programs are expected to run on."""
    gain: float
    """Seconds of these that the moves save."""
    cost: float
    """Seconds that the moves cost."""
    moves: int


@dataclass(frozen=True)
class Plan:
    """A policy's answer for all programs at one moment."""

    id: str
    made: float
    """Seconds since 1970."""
    policy: str
    judged: tuple[ProgramAssessment, ...]
    moves: tuple[PlannedMove, ...]
    seconds: float
    """Seconds that making the plan took."""
    left_out: dict[str, str]
    """Programs that cannot be moved now, with the reason."""
    room: tuple[str, ...] = ()
    """If the plan makes room for arriving guests: a host for each of them, after the moves."""

    def json(self) -> dict[str, Any]:
        """The plan for JSON."""
        return asdict(self)

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Plan:
        """The plan of that JSON."""
        judged = tuple(
            ProgramAssessment(**{**one, "programs": tuple(one["programs"])}) for one in fields["judged"]
        )
        moves = tuple(PlannedMove(**{**one, "programs": tuple(one["programs"])}) for one in fields["moves"])
        return Plan(**{**fields, "judged": judged, "moves": moves, "room": tuple(fields.get("room", ()))})
