"""Compares slowdowns of jobs by `congestion`, by `max-min`, and of an MPI program under SMPI."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from cases import ROUTINGS, SHAPES, Job, Shape, Ways, job_nodes, weights
from components import Programs, run
from topolane._engine import Routing, Traffic, contend

SC18 = ("stencil4d", "unstructured3d", "pairs", "suba2a")
# Large messages, because bandwidth is compared. The patterns' other parameters keep their defaults.
MESSAGE = 1 << 20
# max-min with equal weights for all flows, which is not a model of Topolane.
ALIKE = "max-min of weights 1"

SMPI_SHAPES = (
    Shape("144 nodes, tapered 2:1", (12, 12), (1, 6), (1, 1)),
    Shape("128 nodes, parallel cables", (8, 4, 4), (1, 4, 2), (1, 1, 4)),
)


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation, with mean ranks for ties; values that differ only by rounding are ties."""
    frame = pl.DataFrame({"one": one.round(9), "other": other.round(9)})
    return float(frame.select(pl.corr("one", "other", method="spearman")).item())


def _slowest(ways: Ways, jobs: list[Job]) -> list[float]:
    """Seconds per iteration of jobs that run together, if all flows have the same weight."""
    ends, sizes = [], []
    for nodes, traffic in jobs:
        froms, tos, bytes_of, _ = traffic.arrays()
        ends.append([(nodes[a], nodes[b]) for a, b in zip(froms.tolist(), tos.tolist())])
        sizes.append(bytes_of)
    ways.add(pair for of_job in ends for pair in of_job)
    rates = np.split(ways.rates([pair for of_job in ends for pair in of_job]), np.cumsum([*map(len, sizes)]))
    return [float((size / rate).max()) for size, rate in zip(sizes, rates)]


@dataclass(frozen=True)
class JobSet:
    """Jobs that run on one machine at the same time."""

    shape: Shape
    routing: str
    patterns: list[str]
    jobs: list[Job]
    seed: int

    def ways(self) -> Routing:
        """The routing on which the jobs run."""
        return self.shape.machine().routing(self.routing, self.seed)

    def slowdowns(self, model: str) -> np.ndarray:
        """The slowdown of every job under a model, or under `ALIKE`: max-min with equal weights."""
        if model == ALIKE:
            ways = Ways(self.ways())
            alone = [_slowest(ways, [job])[0] for job in self.jobs]
            return np.array(_slowest(ways, self.jobs)) / np.array(alone)
        return contend(self.ways(), model, self.jobs).slowdowns


def job_set(shape: Shape, routing: str, seed: int, patterns: tuple[str, ...]) -> JobSet:
    """Random jobs of 4 ranks to a quarter of the machine that fill most of it, with one rank per node."""
    rng = np.random.default_rng(seed)
    nodes = shape.machine().nodes
    sizes: list[int] = []
    while sum(sizes) < 0.75 * nodes:
        size = int(rng.integers(4, max(5, nodes // 4)))
        sizes.append(min(size, nodes - sum(sizes)))
    sizes = [size for size in sizes if size > 1]
    names = [str(rng.choice(patterns)) for _ in sizes]
    traffic = [Traffic.pattern(f"{name}(bytes={MESSAGE})", size, seed) for name, size in zip(names, sizes)]
    return JobSet(shape, routing, names, list(zip(job_nodes(rng, nodes, sizes), traffic)), seed)


@dataclass(frozen=True)
class RankRow:
    """How similarly two models rank jobs by their slowdown."""

    what: str
    routing: str
    sets: int
    jobs: int
    slowed: int
    """The number of jobs that the second model slows down by more than 1 %."""
    spearman: float
    mean: float
    """Mean slowdown by the first model."""
    mean_other: float


def _row(what: str, routing: str, sets: int, one: list[np.ndarray], other: list[np.ndarray]) -> RankRow:
    first, second = np.concatenate(one), np.concatenate(other)
    slowed = int((second > 1.01).sum())
    rank = spearman(first, second)
    return RankRow(what, routing, sets, len(first), slowed, rank, float(first.mean()), float(second.mean()))


def model_rows(sets: int) -> list[RankRow]:
    """The rows for `congestion` and `max-min` on random jobs: by routing, with `sets` job sets on each
    machine, and in total.
    """
    shapes = [shape for shape in SHAPES if shape.machine().nodes >= 48]
    rows, all_first, all_second = [], [], []
    for place, routing in enumerate(ROUTINGS):
        first, second = [], []
        for index, shape in enumerate(shapes):
            for seed in range(sets):
                jobs = job_set(shape, routing, 1000 * index + 10 * seed + place, SC18)
                first.append(jobs.slowdowns("congestion"))
                second.append(jobs.slowdowns("max-min"))
        rows.append(_row("congestion, max-min", routing, len(first), first, second))
        all_first, all_second = all_first + first, all_second + second
    return [*rows, _row("congestion, max-min", "all", len(all_first), all_first, all_second)]


SMPI_OPTIONS = (
    "network/model:CM02",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "network/weight-S:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "smpi/simulate-computation:no",
)


# Seconds of latency of a route whose flow has weight 1; little compared with the 0.26 ms of a message.
LATENCY = 1e-7


def smpi(programs: Programs, jobs: JobSet, iterations: int, weighted: bool) -> np.ndarray:
    """Seconds per iteration of every job alone and with the others, replayed under SMPI; shape (jobs, 2).

    weighted: flows share links as in Topolane's models, by their part of what their node sends; otherwise all
    equally.
    """
    nodes = [node for of_job, _ in jobs.jobs for node in of_job]
    routing = jobs.ways()
    ways = Ways(routing)
    ways.add((a, b) for a in nodes for b in nodes if a != b)
    if weighted:
        for job in jobs.jobs:
            ways.weight.update(weights(job))
    # All jobs communicate for the time that the slowest needs for some iterations together with the others.
    seconds = iterations * float(contend(routing, "max-min", jobs.jobs).times.max())
    lines = [str(len(jobs.jobs)), *(f"{seconds!r} {len(of_job)}" for of_job, _ in jobs.jobs)]
    for _, traffic in jobs.jobs:
        froms, tos, sizes, _ = traffic.arrays()
        lines.append(str(len(froms)))
        lines += [
            f"{a} {b} {round(size)}" for a, b, size in zip(froms.tolist(), tos.tolist(), sizes.tolist())
        ]
    with tempfile.TemporaryDirectory(prefix="topolane-smpi-") as name:
        folder = Path(name)
        (folder / "platform").write_text(
            ways.platform({node: index for index, node in enumerate(nodes)}, LATENCY)
        )
        (folder / "play").write_text("\n".join(lines) + "\n")
        (folder / "hosts").write_text("".join(f"n{index}\n" for index in range(len(nodes))))
        command: list[str | Path] = ["smpirun", "-np", str(len(nodes)), "-platform", programs.smpi_platform()]
        command += ["-hostfile", folder / "hosts", "--log=root.thresh:critical"]
        command += [f"--cfg={option}" for option in SMPI_OPTIONS]
        command += [programs.play(), folder / "play"]
        printed = run(command, None, 3600, TOPOLANE_PLATFORM=str(folder / "platform"))
    times = np.zeros((len(jobs.jobs), 2))
    for line in printed.splitlines():
        word, job, alone, together = line.split()
        if word == "job":
            times[int(job)] = float(alone), float(together)
    return times


def smpi_rows(programs: Programs, sets: int, iterations: int) -> list[RankRow]:
    """The rows for each model compared with SMPI, with equal or weighted flows: by routing, by pattern, and
    in total.
    """
    rows = []
    cases = [
        job_set(shape, routing, 7000 + 1000 * index + 10 * seed + place, SC18)
        for index, shape in enumerate(SMPI_SHAPES)
        for place, routing in enumerate(ROUTINGS)
        for seed in range(sets)
    ]
    for weighted, flows in ((True, "weighted"), (False, "alike")):
        times = [smpi(programs, jobs, iterations, weighted) for jobs in cases]
        theirs = [each[:, 1] / each[:, 0] for each in times]
        for model in ("congestion", "max-min") if weighted else ("congestion", "max-min", ALIKE):
            ours = [jobs.slowdowns(model) for jobs in cases]
            rows += _by_part(f"{model}, SMPI {flows}", cases, ours, theirs)
    return rows


def _by_part(
    what: str, cases: list[JobSet], ours: list[np.ndarray], theirs: list[np.ndarray]
) -> list[RankRow]:
    rows = []
    for routing in ROUTINGS:
        chosen = [index for index, jobs in enumerate(cases) if jobs.routing == routing]
        rows.append(_row(what, routing, len(chosen), [ours[i] for i in chosen], [theirs[i] for i in chosen]))
    for pattern in SC18:
        masks = [np.array(jobs.patterns) == pattern for jobs in cases]
        parts = [[values[mask] for values, mask in zip(of, masks)] for of in (ours, theirs)]
        rows.append(_row(f"{what}: {pattern}", "all", len(cases), *parts))
    return [*rows, _row(what, "all", len(cases), ours, theirs)]
