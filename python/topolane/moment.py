"""The jobs of a run at one moment, with their nodes and links, read from the run's tables."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane._engine import InputError, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars

INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")

JOB_COLUMNS = ("job_id", "submission_time", "starting_time", "finish_time", "allocated_resources")
MOVE_COLUMNS = ("job_id", "time", "from_nodes", "to_nodes", "pause")
JOB_LINK_COLUMNS = ("job_id", "from", "until", "bandwidth_share", "links", "lent_links")
MOST_HEADER = 1 << 16
"""The most characters of the first line that are searched."""
TEXTS = ("allocated_resources", "taken", "from_nodes", "to_nodes", "links", "lent_links")


@dataclasses.dataclass(frozen=True)
class RunningAtMoment:
    """A job at one moment; nodes and cables are half-open ranges."""

    job: int
    nodes: Sequence[tuple[int, int]]
    links: Sequence[tuple[int, int]] = ()
    """Cables between switches that the job owns."""
    lent: Sequence[tuple[int, int]] = ()
    """Further cables that the job may use until their owner needs them."""
    share: Mapping[str, float] | None = None
    """The share of each node that the job takes, as counts of resources; None for whole nodes."""
    gpus: Sequence[Sequence[tuple[int, int]]] = ()
    """The GPUs that the job has on each of its nodes, in ascending order of nodes; empty for whole nodes.
    After a move, these are the GPUs at its end.
    """


def running_at(
    time: float,
    jobs: polars.DataFrame,
    moves: polars.DataFrame | None = None,
    job_links: polars.DataFrame | None = None,
) -> list[RunningAtMoment]:
    """The jobs that run at `time`, in order of their numbers.

    A job runs from its start until just before its end; after a move it runs on its new nodes. Raises
    ValueError for a table that a run does not write.
    """
    import polars

    column = polars.col
    running = jobs.filter((column("starting_time") <= time) & (column("finish_time") > time)).sort("job_id")
    nodes: dict[int, str] = dict(running.select("job_id", "allocated_resources").iter_rows())
    shares: dict[int, str] = {}
    if "taken" in running.columns:
        shares = dict(running.select("job_id", "taken").iter_rows())
    gpus: dict[int, str] = {}
    if "gpus" in running.columns:
        gpus = dict(running.select("job_id", "gpus").iter_rows())
    if moves is not None:
        # Until its next move, a job is on the nodes from which the move takes it.
        ends = running.select("job_id", "finish_time")
        to_come = moves.filter(column("time") > time).join(ends, on="job_id", maintain_order="left")
        to_come = to_come.filter(column("time") <= column("finish_time")).select("job_id", "from_nodes")
        for job, before in reversed(to_come.rows()):
            if job in nodes:
                nodes[job] = before
    links: dict[int, tuple[Any, Any]] = {}
    if job_links is not None:
        now = job_links.filter((column("from") <= time) & (column("until") > time))
        rows = now.select("job_id", "links", "lent_links").iter_rows()
        links = {job: (owned, lent) for job, owned, lent in rows}
    found = []
    for job, text in nodes.items():
        owned, lent = links.get(job, ("", ""))
        found.append(
            RunningAtMoment(
                job,
                intervals(text),
                intervals(owned),
                intervals(lent),
                share_of(shares.get(job)),
                [intervals(of_node) for of_node in gpus[job].split("|")] if gpus.get(job) else (),
            )
        )
    return found


def share_of(text: str | None) -> dict[str, float] | None:
    """The counts in `cores=36;gpu=1`; None for empty text, which stands for whole nodes."""
    if not text:
        return None
    found = {}
    for part in text.split(";"):
        name, equals, count = part.rpartition("=")
        if not equals:
            raise ValueError(f"not a resource and its count: {part!r}")
        found[name] = int(count) if count.isdigit() else float(count)
    return found


def intervals(text: str | None) -> list[tuple[int, int]]:
    """The half-open ranges in Batsim's interval set: `0-3 7` is [(0, 4), (7, 8)]. Commas may separate
    intervals too.
    """
    ranges = []
    for part in (text or "").replace(",", " ").split():
        match = INTERVAL.fullmatch(part)
        if match is None:
            raise ValueError(f"not an interval of numbers: {part!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise ValueError(f"an interval ends before it begins: {part!r}")
        ranges.append((low, high + 1))
    return ranges


def busiest(utilization: polars.DataFrame) -> float:
    """The first minute with the most busy nodes; 0 without any minute."""
    if utilization.is_empty():
        return 0.0
    return float(utilization["time"][utilization["busy_nodes"].arg_max() or 0])


def read(directory: str | Path, hours: float | None, machine: Machine) -> list[RunningAtMoment]:
    """The jobs `hours` after a run's first submission, or at its busiest minute, read from the run's files.

    Raises InputError if the directory holds no run, or a file differs from what a run writes on this machine.
    """
    place = Path(directory)
    if not (place / "jobs.csv").is_file():
        runs = sorted(path.parent.name for path in place.glob("runs/*/jobs.csv"))
        several = f"; it holds several in {place / 'runs'}: {', '.join(runs)}" if runs else ""
        raise InputError(f"{place}: there is no run in it, no jobs.csv{several}")
    jobs = _table(place / "jobs.csv", JOB_COLUMNS, optional=("taken",))
    moves, job_links = (
        _table(place / name, columns) if (place / name).is_file() else None
        for name, columns in (("moves.csv", MOVE_COLUMNS), ("job-links.csv", JOB_LINK_COLUMNS))
    )
    if hours is None:
        time = busiest(_table(place / "utilization.csv", ("time", "busy_nodes")))
    else:
        first: Any = jobs["submission_time"].min()
        time = (first or 0.0) + 3600.0 * hours
    try:
        found = running_at(time, jobs, moves, job_links)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error
    for job in found:
        last = max((end for _, end in job.nodes), default=0) - 1
        if last >= machine.nodes:
            raise InputError(
                f"{directory}: job {job.job} has node {last}, and machine {machine.name} {machine.nodes} nodes: "
                "name the machine of the run with --machine"
            )
    return found


def _table(file: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> polars.DataFrame:
    import polars

    if optional:
        try:
            with file.open(encoding="utf-8") as lines:
                there = lines.readline(MOST_HEADER).strip().split(",")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: not a table of a run: {error}") from error
        columns = [*columns, *(name for name in optional if name in there)]
    kinds = {name: polars.String if name in TEXTS else polars.Float64 for name in columns}
    schema = kinds | {"job_id": polars.UInt64} if "job_id" in columns else kinds
    try:
        return polars.read_csv(file, columns=list(columns), schema_overrides=schema)
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file}: not a table of a run: {reason[:200]}") from error
