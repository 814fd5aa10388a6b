"""Which job holds which GPU at one moment, and which free GPUs no job can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars

from topolane.moment import RunningAtMoment, busiest, running_at, share_of

from .data import MachinePicture, ReportedRun
from .holders import colours

DUST = 1e-9
"""Parts of a GPU below this size are rounding errors."""


@dataclass(frozen=True)
class Rack:
    """Nodes that stand together: a domain, or the nodes of a leaf that are in no domain."""

    name: str
    nodes: Sequence[int]


@dataclass(frozen=True)
class Gpu:
    """A GPU with its holders, each as (job, part of the GPU)."""

    node: int
    index: int
    holders: Sequence[tuple[int, float]]
    stranded: float = 0.0  # the free part that no job can use
    failed: bool = False

    @property
    def free(self) -> float:
        """The part that no job holds; 0 on a failed node."""
        return 0.0 if self.failed else max(0.0, 1.0 - sum(part for _, part in self.holders))


@dataclass(frozen=True)
class GpuState:
    """The GPUs of a machine at `time`, in seconds."""

    time: float
    racks: Sequence[Rack]
    gpus: Sequence[Sequence[Gpu]]  # by node
    jobs: dict[int, float]  # number of GPUs of each running job
    places: dict[int, list[int]]  # indices of the racks where each running job has nodes, ascending
    split: frozenset[int]  # jobs that use several racks although one rack could hold them
    colour: dict[int, str]  # colour of each running job
    """Grey for a job inside one rack; on a machine with a single rack, for a job on one node."""

    def total(self, what: str) -> float:
        """The number of GPUs that are `free`, `stranded` or `failed`."""
        return sum(float(getattr(gpu, what)) for of_node in self.gpus for gpu in of_node)


def racks_of(picture: MachinePicture) -> list[Rack]:
    """The domains, and for each leaf its nodes without a domain. Racks without nodes are skipped."""
    alone = [
        Rack(leaf.name, [node for node in range(leaf.start, leaf.end) if node not in picture.domain_of])
        for leaf in picture.levels[0]
    ]
    racks = [Rack(name, sorted(nodes)) for name, nodes in picture.domains]
    return sorted([rack for rack in (*racks, *alone) if rack.nodes], key=lambda rack: rack.nodes[0])


def common_moment(runs: Sequence[ReportedRun]) -> float:
    """The first minute at which the utilisation of the least used run is highest, so that all runs show the
    same time; 0 without such a minute.
    """
    least: polars.DataFrame | None = None
    for run in runs:
        own = run.utilization.select("time", "busy_nodes")
        if least is not None:
            both = least.join(own, on="time", how="inner", maintain_order="left", suffix="_own")
            own = both.select("time", busy_nodes=polars.min_horizontal("busy_nodes", "busy_nodes_own"))
        least = own
    return 0.0 if least is None else busiest(least)


def gpu_state(run: ReportedRun, picture: MachinePicture, time: float) -> GpuState:
    """The GPUs of `run` at `time`, in seconds since the epoch."""
    running = running_at(time, run.jobs, run.moves)
    for job in running:
        for _, end in job.nodes:
            if end > picture.nodes:
                raise ValueError(f"run {run.label!r}: job {job.job} holds node {end - 1} of {picture.nodes}")
    return state_of(running, picture, time, _failed(run, time), smallest(run.jobs))


def state_of(
    running: Sequence[RunningAtMoment],
    picture: MachinePicture,
    time: float,
    failed: frozenset[int],
    least: Mapping[str, float],
) -> GpuState:
    """The GPUs of a machine that runs these jobs. `least` is what the smallest job needs of a node."""
    held: list[list[list[tuple[int, float]]]] = [
        [[] for _ in range(_gpus(picture, node))] for node in range(picture.nodes)
    ]
    used: dict[int, dict[str, float]] = {}
    jobs: dict[int, float] = {}
    for job in running:
        nodes = [node for start, end in job.nodes for node in range(start, end)]
        for place, node in enumerate(nodes):
            parts = _parts(job, place, len(held[node]))
            for gpu, part in parts:
                if gpu < len(held[node]):
                    held[node][gpu].append((job.job, part))
            jobs[job.job] = jobs.get(job.job, 0.0) + sum(part for _, part in parts)
            of_node = used.setdefault(node, {})
            for name in ("cores", "memory"):
                taken = (job.share or picture.resources[node]).get(name, 0)
                of_node[name] = of_node.get(name, 0) + taken
    gpus = []
    for node, holders in enumerate(held):
        of_node = [Gpu(node, index, own, failed=node in failed) for index, own in enumerate(holders)]
        if node in used and node not in failed:
            left = {name: picture.resources[node].get(name, 0) - used[node][name] for name in used[node]}
            of_node = _stranded(of_node, left, least)
        gpus.append(of_node)
    racks = racks_of(picture)
    places, split = _places(running, picture, racks)
    return GpuState(time, racks, gpus, jobs, places, split, _colours(running, racks, places))


def smallest(jobs: polars.DataFrame) -> dict[str, float]:
    """The least cores, memory and GPUs that any job with GPUs on parts of nodes takes; empty without such
    jobs.
    """
    if "taken" not in jobs.columns:
        return {}
    least: dict[str, float] = {}
    for text in jobs["taken"].unique().drop_nulls():
        amounts = share_of(text) or {}
        if (gpus := _taken(amounts)) > 0:
            for name, count in (
                ("cores", amounts.get("cores", 0)),
                ("memory", amounts.get("memory", 0)),
                ("gpu", gpus),
            ):
                least[name] = min(least.get(name, float("inf")), float(count))
    return least


def _gpus(picture: MachinePicture, node: int) -> int:
    return picture.resources[node].get("gpu", 0) if picture.resources else 0


def _taken(share: Mapping[str, float]) -> float:
    """The number of GPUs that a job takes of a node. A fraction of a GPU with a type is recorded only under
    that type.
    """
    of_types = (count for name, count in share.items() if name.startswith("gpu:"))
    return float(share.get("gpu", max(of_types, default=0.0)))


def _parts(job: RunningAtMoment, place: int, gpus: int) -> list[tuple[int, float]]:
    """The (GPU, part) pairs that a job holds on a node; all GPUs if the job has the whole node."""
    if job.share is None:
        return [(gpu, 1.0) for gpu in range(gpus)]
    own = job.gpus[place] if place < len(job.gpus) else []
    part = min(1.0, _taken(job.share))
    return [(gpu, part) for start, end in own for gpu in range(start, end)]


def _stranded(gpus: Sequence[Gpu], left: Mapping[str, float], least: Mapping[str, float]) -> list[Gpu]:
    """The GPUs of a node that runs a job, with free GPUs marked that no job can use
    (`docs/reference/outputs.md`, Room).
    """
    few = left["cores"] < max(1.0, least.get("cores", 1.0)) or left["memory"] < least.get("memory", 0.0)
    wanted = least.get("gpu", 1.0)
    whole = sum(gpu.free > 1.0 - DUST for gpu in gpus)
    found = []
    for gpu in gpus:
        usable = gpu.free > wanted - DUST if wanted < 1.0 else gpu.free > 1.0 - DUST and whole >= wanted
        found.append(Gpu(gpu.node, gpu.index, gpu.holders, gpu.free if few or not usable else 0.0))
    return found


def _failed(run: ReportedRun, time: float) -> frozenset[int]:
    if run.failures is None:
        return frozenset()
    until = polars.col("until").cast(polars.Float64, strict=False).fill_null(float("inf"))
    now = run.failures.filter((polars.col("from") <= time) & (until > time))
    return frozenset(now["node"])


def _places(
    running: Sequence[RunningAtMoment], picture: MachinePicture, racks: Sequence[Rack]
) -> tuple[dict[int, list[int]], frozenset[int]]:
    """The racks of each job, and the jobs that use several racks although one could hold them."""
    rack_of = {node: index for index, rack in enumerate(racks) for node in rack.nodes}
    largest = max((len(rack.nodes) for rack in racks), default=0)
    places, split = {}, []
    for job in running:
        nodes = [node for start, end in job.nodes for node in range(start, end)]
        places[job.job] = sorted({rack_of[node] for node in nodes})
        if len(places[job.job]) > 1 and len(nodes) <= largest:
            split.append(job.job)
    return places, frozenset(split)


def _colours(
    running: Sequence[RunningAtMoment], racks: Sequence[Rack], places: Mapping[int, Sequence[int]]
) -> dict[int, str]:
    size = {job.job: sum(end - start for start, end in job.nodes) for job in running}
    if len(racks) > 1:
        spanning: list[list[int]] = [[] for _ in racks]
        for job, own in sorted(places.items()):
            for rack in own if len(own) > 1 else ():
                spanning[rack].append(job)
    else:
        spanning = [[job.job] for job in running if size[job.job] > 1]
    return colours([spanning], size)
