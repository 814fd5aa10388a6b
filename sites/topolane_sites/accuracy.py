"""Compares what moves were predicted to gain with what they gained."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from topolane.mpi.counts import WatchedProgram

from topolane_sites.plans import ProgramAssessment, SitesPlan
from topolane_sites.state import ManagerDatabase

SETTLE = 5.0
"""Seconds after the last move of a program before its speed is measured."""
WATCH = 30.0
"""Seconds for which its speed is then measured."""
PATIENCE = 3600.0
"""Seconds after which moves that are not over are not compared any more."""
ALIKE = 1.2
"""Bytes per message may change by this factor; beyond it the program does something else than before."""
LEAST_MESSAGES = 1.0
"""Messages per second below which progress cannot be measured."""
MOST_CORRECTION = 10.0
KEEP = 1000
"""Pairs that are kept."""


@dataclass(frozen=True)
class GainComparison:
    """A predicted gain and the measured one."""

    program: str
    name: str
    plan: str
    when: float
    """Seconds since 1970."""
    predicted: float
    """The speed after the moves over the speed before."""
    measured: float | None
    """The same, from messages per second; None if it cannot be measured."""
    why: str = ""
    """Why it cannot be measured."""
    correction: float | None = None
    """The loss to the WAN over the prediction that both speeds together give, if they do."""


@dataclass
class _Waiting:
    plan: SitesPlan
    judged: ProgramAssessment
    program: str
    targets: dict[str, str]
    messages: float
    """Per second, before the moves."""
    bytes: float
    since: float
    settled: float | None = None
    """When the last move was over."""
    first: tuple[float, float, float] | None = None
    """Seconds that its ranks were watched, messages and bytes when the measurement began."""


class Accuracy:
    """The comparisons of a manager: those that are kept, and moves that are still under way."""

    def __init__(self, state: ManagerDatabase, clock: Callable[[], float] = time.time) -> None:
        self._state, self._clock = state, clock
        self.comparisons = [
            GainComparison(**fields)
            for fields in sorted(state.get("accuracy").values(), key=lambda one: float(one["when"]))
        ]
        self._waiting: list[_Waiting] = []

    def corrections(self) -> dict[str, float]:
        """For each program the newest correction that two measured speeds gave."""
        return {one.program: one.correction for one in self.comparisons if one.correction is not None}

    def began(self, plan: SitesPlan, programs: Mapping[str, WatchedProgram]) -> None:
        """Notes the speeds of the programs whose guests a plan moves."""
        for judged in plan.judged:
            for id in judged.programs:
                program = programs.get(id)
                targets = {move.guest: move.target for move in plan.moves if id in move.programs}
                if program is None or not targets:
                    continue
                rates = program.rates()
                messages, size = float(rates.messages.sum()), float(rates.bytes.sum())
                self._waiting = [one for one in self._waiting if one.program != id]
                self._waiting.append(_Waiting(plan, judged, id, targets, messages, size, self._clock()))

    def look(
        self, programs: Mapping[str, WatchedProgram], hosts: Mapping[str, str | None], moving: set[str]
    ) -> None:
        """Measures the programs whose moves are over. hosts: of every guest. Raises StateError."""
        for one in list(self._waiting):
            program = programs.get(one.program)
            if program is None or program.ended is not None:
                self._waiting.remove(one)
                if program is not None:
                    self._keep(one, program.name, None, "it ended before its speed was measured")
            elif self._clock() - one.since > PATIENCE:
                self._waiting.remove(one)
            elif not moving.intersection(one.targets):
                self._measure(one, program, hosts)

    def _measure(self, one: _Waiting, program: WatchedProgram, hosts: Mapping[str, str | None]) -> None:
        now = self._clock()
        if any(hosts.get(guest) != target for guest, target in one.targets.items()):
            self._waiting.remove(one)  # a move failed, so the prediction does not hold
            return
        if one.settled is None:
            one.settled = now
        if now - one.settled < SETTLE:
            return
        seen = _seen(program)
        if one.first is None:
            one.first = seen
        elif seen[0] - one.first[0] >= WATCH:
            self._waiting.remove(one)
            seconds, messages, size = (after - before for after, before in zip(seen, one.first))
            why = _cannot_tell((one.messages, one.bytes), (messages / seconds, size / seconds))
            self._keep(one, program.name, None if why else messages / seconds / one.messages, why)

    def _keep(self, one: _Waiting, name: str, measured: float | None, why: str) -> None:
        judged = one.judged
        predicted = (1 + judged.loss_now) / (1 + judged.loss_then)
        correction = None if measured is None else refitted(judged, measured)
        made = GainComparison(
            one.program, name, one.plan.id, self._clock(), predicted, measured, why, correction
        )
        self._state.put("accuracy", f"{one.plan.id}/{one.program}", asdict(made))
        # The same moves may be made again, as a plan of the same name: the newest comparison of it is kept.
        self.comparisons[:] = [
            old for old in self.comparisons if (old.plan, old.program) != (made.plan, made.program)
        ]
        self.comparisons.append(made)
        for old in self.comparisons[:-KEEP]:
            self._state.drop("accuracy", f"{old.plan}/{old.program}")
        del self.comparisons[:-KEEP]


def refitted(judged: ProgramAssessment, speedup: float) -> float | None:
    """The loss to the WAN over the model's own prediction that explains a measured change of speed; None if the
    moves changed nothing of the WAN, or no value explains it.
    """
    before = judged.wan_now / judged.correction if judged.correction > 0 else 0.0
    after = judged.wan_then / judged.correction if judged.correction > 0 else 0.0
    whole = 1 + judged.loss_now
    cores = judged.compute / judged.speed_then - judged.compute / judged.speed_now
    if speedup <= 0 or abs(before - after) < 0.02 * whole:
        return None
    found = (whole + cores - whole / speedup) / (before - after)
    return found if 0 < found <= MOST_CORRECTION else None


def summary(comparisons: Iterable[GainComparison]) -> dict[str, Any]:
    """All pairs, and the mean error of those that were measured, in per cent of the measured speed."""
    every = list(comparisons)
    errors = [one.predicted / one.measured - 1 for one in every if one.measured]
    count = len(errors)
    return {
        "pairs": [asdict(one) for one in every],
        "measured": count,
        "mean_error": 100 * sum(errors) / count if count else None,
        "mean_absolute_error": 100 * sum(abs(error) for error in errors) / count if count else None,
    }


def _seen(program: WatchedProgram) -> tuple[float, float, float]:
    matrix = program.matrix()
    return program.observed, float(matrix.messages.sum()), float(matrix.bytes.sum())


def _cannot_tell(before: tuple[float, float], after: tuple[float, float]) -> str:
    """Why two rates of messages and bytes do not tell how the speed changed; empty if they do."""
    if before[0] < LEAST_MESSAGES or after[0] < LEAST_MESSAGES:
        return f"it sends less than {LEAST_MESSAGES:g} message per second"
    change = (after[1] / after[0]) / (before[1] / before[0]) if before[1] > 0 and after[1] > 0 else 0.0
    if before[1] != after[1] and not 1 / ALIKE <= change <= ALIKE:
        return "its messages have another size than before, so it does something else"
    return ""
