"""A plan: which guests move where, and the benefit for each program. Plain values, with conversion to JSON
and back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

DISAGREE = 2.0
"""The factor between prediction and measurement from which on they are said to disagree."""


@dataclass(frozen=True)
class PlannedMove:
    """One guest from one host to another."""

    guest: str
    source: str
    target: str
    programs: tuple[str, ...]
    """The programs for which it moves."""
    why: str


def id_of(moves: Iterable[PlannedMove]) -> str:
    """The name of a plan of these moves. It is the same for the same moves, whenever and why they are planned."""
    said = sorted((move.guest, move.source, move.target) for move in moves)
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:8]


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
    """Seconds that a second of the run on one site on reference cores takes longer; negative on fast cores."""
    loss_then: float
    remaining: float
    """Seconds that the programs are expected to run on."""
    gain: float
    """Seconds of these that the moves save."""
    cost: float
    """Seconds that the moves cost."""
    moves: int
    wan_now: float = 0.0
    """The part of `loss_now` that the WAN takes; the rest is slow processors, or fast ones if it is negative."""
    wan_then: float = 0.0
    speed_now: float = 1.0
    """The speed of the slowest core that has a guest; 1 is that of a reference core."""
    speed_then: float = 1.0
    compute: float = 0.0
    """Of a second of the run on one site on reference cores, seconds of computing."""
    in_mpi: float | None = None
    """The share of its time in MPI of the rank with the least; None if it was not measured."""
    correction: float = 1.0
    """What it loses to the WAN over what the model alone predicts."""
    barred: tuple[str, ...] = ()
    """Why hosts cannot run its guests, a sentence for each host."""

    def reason(self) -> str:
        """What it loses now and as planned, for the journal."""
        said = f"a second takes {self.wan_now:.2f} s longer by the WAN, {self.wan_then:.2f} s as planned"
        if self.speed_then == self.speed_now:
            return said
        return f"{said}; its slowest core has speed {self.speed_now:.2f}, {self.speed_then:.2f} as planned"

    def doubt(self) -> str:
        """Where prediction and measurement disagree by more than a factor of 2, and what that usually means."""
        if 1 / DISAGREE <= self.correction <= DISAGREE or self.wan_now <= 0:
            return ""
        whole = 1 + self.loss_now
        predicted = self.wan_now / self.correction if self.correction > 0 else float("inf")
        share = predicted / (whole - self.wan_now + predicted) if predicted < float("inf") else 1.0
        return (
            f"the model predicts that it loses {100 * share:.0f} % to the WAN, and measurements allow "
            f"{100 * self.wan_now / whole:.0f} %; the latency in the sites file is probably wrong"
        )


@dataclass(frozen=True)
class SitesPlan:
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
    def of(fields: Mapping[str, Any]) -> SitesPlan:
        """The plan of that JSON."""
        judged = tuple(
            ProgramAssessment(
                **{**one, "programs": tuple(one["programs"]), "barred": tuple(one.get("barred", ()))}
            )
            for one in fields["judged"]
        )
        moves = tuple(PlannedMove(**{**one, "programs": tuple(one["programs"])}) for one in fields["moves"])
        return SitesPlan(
            **{**fields, "judged": judged, "moves": moves, "room": tuple(fields.get("room", ()))}
        )
