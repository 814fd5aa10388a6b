"""Compares a replay under today's rules with the starts that a log records."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from topolane.baseline import flavours
from topolane.baseline.decisions import BY, Decisions
from topolane.baseline.details import UNKNOWN, Details
from topolane.baseline.measures import RunArrays, Waits, least_difference
from topolane.baseline.reasons import counted, reasons
from topolane.inference.log import cores_of, earlier_nodes, held_nodes
from topolane.units import HOUR, duration, moment, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars
    from numpy.typing import NDArray

    from topolane._engine import Machine, Workload
    from topolane.failures import Failure
    from topolane.run import Run
    from topolane.sweep import Task

MOST_HOURS = 20 * 8766
"""Twenty years: a longer log has a wrong time."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """A replay under today's rules, compared with the records."""

    policy: str
    queue: str
    inferred: Sequence[str]
    """The parts that the replay takes from the records: held, capacity, order."""
    waits: tuple[Waits, ...]
    """Waits of all jobs, then by size, then by partition."""
    least: float
    """In seconds: smaller differences of mean waits between policies mean nothing."""
    edges: NDArray[np.float64]
    """The start of each hour, and the end of the last."""
    utilisation: tuple[NDArray[np.float64], NDArray[np.float64]]
    """The fraction of the machine in use in each hour: recorded and replayed."""
    earlier: dict[str, int]
    """The number of jobs that start over an hour earlier than recorded, by likely reason."""
    later: dict[str, int]
    jobs: polars.DataFrame
    """One row per job, as in `baseline.csv`."""
    decisions: Mapping[str, Decisions] = dataclasses.field(default_factory=dict)
    """Single decisions of the queue slurm, by scheduler; empty without them."""
    flavour: str = ""
    """The rules of the cluster, as in `flavours`; empty if the queue is not slurm."""

    @property
    def sentence(self) -> str:
        """A sentence that says how far the replay is from the records."""
        recorded, replayed = self.waits[0].mean
        names = ["holds" if name == "held" else name for name in self.inferred]
        listed = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
        taken = f", with {listed} from the records" if listed else ""
        return (
            f"Under today's rules ({self.policy}, {self.queue}{taken}) this replay has mean waits of {duration(replayed)} where "
            f"{duration(recorded)} were recorded; differences between policies smaller than {duration(self.least)} say nothing."
        )

    @property
    def apart(self) -> NDArray[np.float64]:
        """The difference in utilisation of each hour, in percentage points."""
        return np.asarray(100 * np.abs(self.utilisation[1] - self.utilisation[0]))

    @property
    def head(self) -> dict[str, Any]:
        """The facts that every run of a comparison carries."""
        recorded, replayed = self.waits[0].mean
        return {
            "policy": self.policy,
            "queue": self.queue,
            "inferred": list(self.inferred),
            "jobs": self.waits[0].jobs,
            "recorded_mean_wait": recorded,
            "replayed_mean_wait": replayed,
            "rank_correlation": self.waits[0].rank,
            "least_difference": self.least,
        }

    @property
    def notes(self) -> list[str]:
        """Sentences about what the tables of waits do not show."""
        apart = self.apart
        worst = int(apart.argmax())
        when = moment(float(self.edges[worst]))
        return [
            f"Utilisation differs hour by hour by at most {apart.max():.1f} points ({when}), by {apart.mean():.1f} in the mean.",
            _said(self.earlier, "earlier"),
            _said(self.later, "later"),
            *self._truth(),
        ]

    def _truth(self) -> Iterator[str]:
        """Sentences on single decisions, and on how true replays of such clusters were."""
        asked = [(BY[by], found) for by, found in self.decisions.items() if found.asked]
        if asked:
            each = " and ".join(f"{found.same:.0f} % of {found.asked:,} ({by})" for by, found in asked)
            more = sum(found.more for _, found in asked)
            yield (
                f"Single decisions, asked in the recorded state: the queue starts the same job in {each}, and "
                f"{plural(more, 'other job')}."
            )
        if self.flavour:
            yield flavours.sentence(self.flavour)

    @property
    def facts(self) -> dict[str, Any]:
        """All numbers, for JSON. Waits are pairs of recorded and replayed."""
        apart = self.apart
        return self.head | {
            "waits": [dataclasses.asdict(waits) for waits in self.waits],
            "utilisation": {
                "from": float(self.edges[0]),
                "recorded": self.utilisation[0].tolist(),
                "replayed": self.utilisation[1].tolist(),
                "largest_difference": float(apart.max()),
                "mean_difference": float(apart.mean()),
            },
            "earlier": self.earlier,
            "later": self.later,
            "decisions": {
                by: {
                    "starts": found.asked,
                    "same": found.same / 100,
                    "others": found.more,
                    "answers": found.answers,
                }
                for by, found in self.decisions.items()
            },
            "flavour": self.flavour or None,
        }


def _said(reasons: Mapping[str, int], how: str) -> str:
    each = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    counted = plural(sum(reasons.values()), "job")
    return f"{counted} started over an hour {how} than recorded" + (f": {each}." if each else ".")


def task_of(base: Task, policies: Sequence[str], queues: Sequence[str]) -> Task | None:
    """The task with today's rules: the first policy and queue that do not replay the records; None without
    such a queue.
    """
    queue = next((name for name in queues if name != "recorded"), None)
    if queue is None:
        return None
    policy = next((name for name in policies if name != "recorded"), "first-fit")
    return dataclasses.replace(base, policy=policy, queue=queue, scenario="none", network=None)


def measured(
    run: Run,
    workload: Workload,
    machine: Machine,
    details: Mapping[int, Details] | None = None,
    down: Sequence[Failure] = (),
) -> Baseline | None:
    """Compares a replay with the records of its workload; None if no job is in both.

    details: what the log says of its jobs that decides nothing; without them no reason is known.
    down: nodes that were down and that the replay does not consider.
    """
    recorded = recorded_runs(workload, machine)
    every = _replayed(run)
    ids = np.intersect1d(recorded.ids, every.ids)
    if not len(ids):
        return None
    recorded = recorded.of(ids)
    recorded = recorded.of(recorded.ids[np.argsort(recorded.submit, kind="stable")])
    every = every.where(np.isin(every.ids, ids))
    every = dataclasses.replace(every, nodes=recorded.of(every.ids).nodes)
    replayed = every.last().of(recorded.ids)
    found = [(details or {}).get(id, UNKNOWN) for id in recorded.ids.tolist()]
    why = reasons(recorded, replayed, found, down)
    is_earlier = (replayed.start < recorded.start).tolist()
    partitions = [each.partition for each in found]
    held = _with_earlier(recorded, workload, machine)
    edges = _hours(held)
    return Baseline(
        policy=run.label,
        queue=run.queue,
        inferred=run.summary.get("inferred", {}).get("options", ()),
        waits=tuple(_waits(recorded, replayed, _groups(run, workload, recorded.ids, partitions))),
        least=least_difference(recorded.wait, replayed.wait),
        edges=edges,
        utilisation=(held.utilisation(edges, machine.nodes), every.utilisation(edges, machine.nodes)),
        earlier=counted(reason for reason, before in zip(why, is_earlier) if before),
        later=counted(reason for reason, before in zip(why, is_earlier) if not before),
        jobs=_table(recorded, replayed, partitions, why),
    )


def recorded_runs(workload: Workload, machine: Machine) -> RunArrays:
    """The runs that the workload records."""
    columns = workload.columns()
    nodes = held_nodes(columns, cores_of(machine))
    known = ~np.isnan(columns["start"])
    values = (columns["submit"], columns["start"], columns["run"], nodes)
    return RunArrays(columns["id"][known].astype(np.int64), *(each[known] for each in values))


def _with_earlier(recorded: RunArrays, workload: Workload, machine: Machine) -> RunArrays:
    """The recorded runs, and earlier runs of the same jobs that were ended."""
    columns, earlier = workload.columns(), workload.earlier_runs()
    place = earlier["job"].astype(np.int64)
    ids, nodes = columns["id"].astype(np.int64)[place], earlier_nodes(columns, earlier, cores_of(machine))
    ended = RunArrays(ids, columns["submit"][place], earlier["start"], earlier["run"], nodes)
    return recorded.and_also(ended.where(np.isin(ids, recorded.ids)))


def _replayed(run: Run) -> RunArrays:
    """The runs of a replay, ordered by start. A job that was ended and started again has several."""
    jobs = run.jobs.sort("starting_time")
    names = ("submission_time", "starting_time", "execution_time", "requested_number_of_resources")
    values = (jobs[name].to_numpy().astype(float) for name in names)
    return RunArrays(jobs["job_id"].to_numpy().astype(np.int64), *values)


def _groups(
    run: Run, workload: Workload, ids: NDArray[np.int64], partitions: Sequence[str]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """The size classes and the partitions, each with a mask of its jobs."""
    columns = workload.columns()
    all_ids = columns["id"].astype(np.int64)
    order = np.argsort(all_ids)
    widths = columns["nodes"][order[np.searchsorted(all_ids, ids, sorter=order)]]
    groups = []
    for size in run.summary["wait_by_size"]:
        low, high = size["low"], size["high"] or math.inf
        name = f"{low} or more nodes" if size["high"] is None else f"{low}-{high} nodes"
        if low == high:
            name = "1 node" if low == 1 else f"{low} nodes"
        groups.append((name, (widths >= low) & (widths <= high)))
    of = np.array(partitions)
    groups += [(f"partition {name}", of == name) for name in np.unique(of).tolist() if name]
    return groups


def _waits(
    recorded: RunArrays, replayed: RunArrays, groups: Sequence[tuple[str, NDArray[np.bool_]]]
) -> list[Waits]:
    every = (("all", np.ones(len(recorded.ids), bool)), *groups)
    return [
        Waits.of(what, recorded.wait[those], replayed.wait[those]) for what, those in every if those.any()
    ]


def _hours(recorded: RunArrays) -> NDArray[np.float64]:
    """The hours from the first recorded start to the last recorded end, at most `MOST_HOURS`."""
    first = float(recorded.start.min())
    hours = math.ceil((float((recorded.start + recorded.run).max()) - first) / HOUR)
    hours = min(max(hours, 1), MOST_HOURS)
    return np.linspace(first, first + HOUR * hours, hours + 1)


def _table(
    recorded: RunArrays, replayed: RunArrays, partitions: Sequence[str], why: Sequence[str]
) -> polars.DataFrame:
    import polars

    return polars.DataFrame(
        {
            "job_id": recorded.ids,
            "partition": partitions,
            "nodes": recorded.nodes,
            "submission_time": recorded.submit,
            "recorded_start": recorded.start,
            "replayed_start": replayed.start,
            "recorded_wait": recorded.wait,
            "replayed_wait": replayed.wait,
            "reason": why,
        }
    )
