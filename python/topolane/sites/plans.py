"""What a plan is: which guests move where, and what that brings each program. Plain values, JSON and back."""

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
    """For which it moves."""
    why: str


@dataclass(frozen=True)
class ProgramAssessment:
    """Programs that share guests, and so move together, as a policy sees them."""

    programs: tuple[str, ...]
    guests: int
    now: dict[str, int]
    """Guests on each site."""
    then: dict[str, int]
    turns: float
    """A second across the best middle, of the rank that waits most."""
    bytes: float
    """A second across it, in the busier direction."""
    loss_now: float
    """Seconds that a second of the run on one site takes longer."""
    loss_then: float
    remaining: float
    """Seconds the programs are expected to run on."""
    gain: float
    """Seconds of these that are saved."""
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
    """That making it took."""
    left_out: dict[str, str]
    """Programs for which nothing can be moved now, with the reason."""
    room: tuple[str, ...] = ()
    """Of a plan that makes room for guests that arrive: a host for each of them, after the moves."""

    def json(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Plan:
        """From that JSON."""
        judged = tuple(
            ProgramAssessment(**{**one, "programs": tuple(one["programs"])}) for one in fields["judged"]
        )
        moves = tuple(PlannedMove(**{**one, "programs": tuple(one["programs"])}) for one in fields["moves"])
        return Plan(**{**fields, "judged": judged, "moves": moves, "room": tuple(fields.get("room", ()))})
