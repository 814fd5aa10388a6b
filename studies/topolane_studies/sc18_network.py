"""The network study of SC'18: what isolation gives jobs that communicate, by pattern.

Random workloads fill a machine. Each is placed twice, at random (oblivious) and isolated, and the
speed-up of a job is its time of one iteration's communication among the others in the first
placement over that in the second. The paper measures packets (10,648 nodes) and Cab itself; here
the models of `docs/explanation/contention.md` answer, with one rank a node. Both models share links by bytes
alone, so message sizes cancel out of every speed-up.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING

import numpy as np
from topolane import _engine
from topolane._engine import Refusal, State, Traffic
from topolane.sources import machine
from topolane.sweep import over

from topolane_studies import PaperRow
from topolane_studies.judging import direction, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from topolane_studies import Verdict

PATTERNS = ("stencil4d", "unstructured3d", "pairs", "suba2a")
MODELS = ("congestion", "max-min", "max-min-flows")
ROUTINGS = ("d-mod-k", "adaptive")
OBLIVIOUS = ("random", "churned")
"""Oblivious placements: nodes drawn at random, and first fit on a machine in use."""
WORKLOADS = 15

JUDGED = ("random", "d-mod-k", "max-min")
"""What the paper's figures are held against: its routing is static, its placement unstated."""
TOLERANCE = 0.1
"""A mean speed-up agrees within a tenth of the paper's. Fixed before the first run."""


@dataclasses.dataclass(frozen=True)
class Sc18Study:
    """One column of the paper: jobs of `smallest` to `largest` nodes on a machine, and the mean speed-ups."""

    name: str
    machine: str
    smallest: int
    largest: int
    dims: int
    """Axes along which `suba2a` communicates."""
    paper: dict[str, float]
    """Mean speed-up by pattern and of all jobs."""
    greatest: float | None = None
    """Mean speed-up of the workload that gains most; as we read the paper, which says greatest only."""


def _paper(*values: float) -> dict[str, float]:
    return dict(zip((*PATTERNS, "all"), values))


STUDIES = (
    Sc18Study(
        "10,648 nodes, jobs of 512-4,096",
        "sc18-network",
        512,
        4096,
        2,
        _paper(1.58, 1.68, 1.06, 1.14, 1.36),
        1.5,
    ),
    Sc18Study("Cab, jobs of 4-512", "cab", 4, 512, 3, _paper(1.26, 1.14, 1.10, 1.55, 1.30), 1.4),
    Sc18Study("Cab, jobs of 4-128", "cab", 4, 128, 3, _paper(1.32, 1.29, 1.08, 1.74, 1.35)),
)
COMMUNICATION, PAPER_MEAN, PAPER_MOST = 0.3, 1.08, 1.31
"""Jobs of 4-128 nodes on Cab that communicate about this share of their time: mean and most."""


@dataclasses.dataclass(frozen=True)
class StudyCase:
    """One workload of one study."""

    study: Sc18Study
    seed: int


@dataclasses.dataclass(frozen=True)
class Speedups:
    """What isolation gives every job of a case, by oblivious placement, routing and model."""

    patterns: list[str]
    nodes: list[int]
    of: dict[tuple[str, str, str], list[float]]


def workload(case: StudyCase) -> list[tuple[str, int, list[int]]]:
    """Jobs that fill the machine isolated: pattern, nodes, and the isolated placement.

    Sizes are drawn evenly on a logarithmic scale; one that no longer fits is drawn again, 20 times
    in a row.
    """
    draw = np.random.default_rng(case.seed)
    fabric = machine(case.study.machine)
    state, failures = State(fabric), 0
    jobs: list[tuple[str, int, list[int]]] = []
    low, high = np.log(case.study.smallest), np.log(case.study.largest)
    while failures < 20:
        nodes = int(np.exp(draw.uniform(low, high)).round())
        placed = state.place("isolated", nodes, id=len(jobs))
        if isinstance(placed, Refusal):
            failures += 1
            continue
        failures = 0
        state.hold(placed.nodes)
        jobs.append((PATTERNS[int(draw.integers(len(PATTERNS)))], nodes, placed.nodes))
    return jobs


def churned(case: StudyCase, sizes: Sequence[int]) -> list[list[int]]:
    """First fit on a machine in use: jobs of the same sizes come and go at random, then these come."""
    draw = np.random.default_rng(case.seed + 1_000_000)
    nodes = machine(case.study.machine).nodes
    free = np.ones(nodes, bool)
    held: list[np.ndarray] = []

    def first_fit(wanted: int) -> np.ndarray:
        chosen = np.flatnonzero(free)[:wanted]
        free[chosen] = False
        return chosen

    for _ in range(20 * len(sizes)):
        wanted = int(draw.choice(sizes))
        while free.sum() < wanted:
            free[held.pop(int(draw.integers(len(held))))] = True
        held.append(first_fit(wanted))
    placements = []
    for wanted in sizes:
        while free.sum() < wanted:
            free[held.pop(int(draw.integers(len(held))))] = True
        placements.append(first_fit(wanted).tolist())
    return placements


def measure(case: StudyCase) -> Speedups:
    """The speed-ups of one case."""
    jobs = workload(case)
    fabric = machine(case.study.machine)
    parameters = {"suba2a": f"suba2a(dims={case.study.dims})"}
    traffic = [Traffic.pattern(parameters.get(name, name), nodes, case.seed) for name, nodes, _ in jobs]
    sizes = [nodes for _, nodes, _ in jobs]
    drawn = np.random.default_rng(case.seed + 2_000_000).permutation(fabric.nodes).tolist()
    ends = np.cumsum(sizes)
    placements = {
        "random": [drawn[end - nodes : end] for end, nodes in zip(ends, sizes)],
        "churned": churned(case, sizes),
    }
    isolated = [nodes for _, _, nodes in jobs]
    found = {}
    for routing in ROUTINGS:
        routes = fabric.routing(routing)
        for model in MODELS:
            best = _engine.contend(routes, model, list(zip(isolated, traffic))).times
            for name, placement in placements.items():
                times = _engine.contend(routes, model, list(zip(placement, traffic))).times
                found[name, routing, model] = (times / best).tolist()
    return Speedups([name for name, _, _ in jobs], sizes, found)


def cases(workloads: int) -> list[StudyCase]:
    """All cases of the study."""
    return [StudyCase(study, seed) for study in STUDIES for seed in range(1, workloads + 1)]


def study(
    workloads: int, *, workers: int | None = None, done: Callable[[], None] | None = None
) -> dict[str, list[Speedups]]:
    """The speed-ups of every workload, by the study's name."""
    planned = cases(workloads)
    found: dict[str, list[Speedups]] = {}
    for case, speedups in zip(planned, over(measure, planned, workers=workers, done=done)):
        found.setdefault(case.study.name, []).append(speedups)
    return found


def speedups_of(found: Sequence[Speedups], setting: tuple[str, str, str], pattern: str) -> list[float]:
    """The speed-ups of all jobs of a pattern, or of all jobs."""
    return [
        value
        for one in found
        for name, value in zip(one.patterns, one.of[setting])
        if pattern in (name, "all")
    ]


def settings() -> list[tuple[str, str, str]]:
    """Every (oblivious placement, routing, model)."""
    return [(placed, routing, model) for placed in OBLIVIOUS for routing in ROUTINGS for model in MODELS]


WHY = {
    "stencil4d": "flows have no packets here: nothing is hidden by buffers or by phases that drift apart",
    "unstructured3d": "the mesh's degrees and reach are not published (docs/reference/traffic.md has ours)",
    "pairs": "static routes make an isolated job meet itself",
    "suba2a": "all its flows are under way at once and the slowest counts; message sizes are not published",
    "all": "the mean of the rows above",
}


def rows(found: dict[str, list[Speedups]]) -> list[PaperRow]:
    """Every figure of the paper next to ours, judged under `JUDGED`; the other settings in `why`."""
    out = []
    for each in STUDIES:
        speedups = found[each.name]
        for pattern, paper in each.paper.items():
            ours = statistics.fmean(speedups_of(speedups, JUDGED, pattern))
            mild = statistics.fmean(speedups_of(speedups, ("churned", *JUDGED[1:]), pattern))
            why = f"{WHY[pattern]}; first fit on a machine in use gives {mild:.2f}"
            by_workload = [
                statistics.fmean(values)
                for one in speedups
                if (values := speedups_of([one], JUDGED, pattern))
            ]
            out.append(
                PaperRow(
                    f"{each.name}: {pattern}",
                    f"{paper:.2f}",
                    f"{ours:.2f} ({min(by_workload):.2f}-{max(by_workload):.2f})",
                    _verdict(ours, paper),
                    why if _verdict(ours, paper) == "differs" else "",
                    f"within {TOLERANCE:.0%}",
                )
            )
    return [
        *out,
        *communication_rows(found[STUDIES[2].name]),
        *(row for each in STUDIES for row in unvalued_rows(each, found[each.name])),
    ]


def unvalued_rows(study: Sc18Study, speedups: Sequence[Speedups]) -> list[PaperRow]:
    """The greatest speed-up, the order of the patterns, and the pairs that lose."""
    means = {pattern: statistics.fmean(speedups_of(speedups, JUDGED, pattern)) for pattern in study.paper}
    pairs = speedups_of(speedups, JUDGED, "pairs")
    slower = [value for value in pairs if value < 1]
    found = [
        rank(
            f"{study.name}: order of the patterns",
            [({name: value for name, value in study.paper.items() if name != "all"}, means)],
        ),
        direction(
            f"{study.name}: isolation in the mean",
            "faster",
            all(mean > 1 for mean in means.values()),
            ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()),
            "every pattern must be",
        ),
        direction(
            f"{study.name}: pairs",
            "sometimes slower isolated",
            bool(slower),
            f"{len(slower)} of {len(pairs)} jobs, at worst {min(pairs):.2f}",
            "the paper says it of Cab: static routing",
        ),
    ]
    if study.greatest is not None:
        ours = max(statistics.fmean(speedups_of([one], JUDGED, "all")) for one in speedups)
        found.append(
            PaperRow(
                f"{study.name}: greatest speed-up of a workload",
                f"{study.greatest:.1f}",
                f"{ours:.2f}",
                _verdict(ours, study.greatest),
                f"greatest of a job: {max(speedups_of(speedups, JUDGED, 'all')):.2f}",
                f"within {TOLERANCE:.0%}",
            )
        )
    return found


def communication_rows(speedups: Sequence[Speedups]) -> list[PaperRow]:
    """The case of jobs that communicate part of their time, phases independent of each other."""
    share = COMMUNICATION
    whole = speedups_of(speedups, JUDGED, "all")
    values = [1 + share * share * (value - 1) for value in whole]
    together = 1 + share * (statistics.fmean(whole) - 1)
    why = f"phases of different jobs taken as independent; if all communicated at once the mean were {together:.2f}"
    mean, most = statistics.fmean(values), max(values)
    within = f"within {TOLERANCE:.0%}"
    return [
        PaperRow(
            "Cab, jobs of 4-128, 30 % communication: mean",
            f"{PAPER_MEAN}",
            f"{mean:.2f}",
            _verdict(mean, PAPER_MEAN),
            why,
            within,
        ),
        PaperRow(
            "Cab, jobs of 4-128, 30 % communication: most",
            f"{PAPER_MOST}",
            f"{most:.2f}",
            _verdict(most, PAPER_MOST),
            why,
            within,
        ),
    ]


def _verdict(ours: float, paper: float) -> Verdict:
    return "agrees" if abs(ours - paper) <= TOLERANCE * paper else "differs"
