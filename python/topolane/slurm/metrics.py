"""The figures of the plugin and of its jobs, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from topolane._engine import InputError
from topolane.cluster.decided import REFUSALS
from topolane.cluster.families import Families
from topolane.cluster.links import Links
from topolane.cluster.metrics import registry_of
from topolane.cluster.status import node_counts, sharing
from topolane.slurm.inspection import SlurmInspection
from topolane.slurm.links_out import LinksOut
from topolane.slurm.plugin_state import ENDS, Counters
from topolane.slurm.room import room_of
from topolane.slurm.status import liveness
from topolane.slurm.view import view

OURS = Families("slurm")
KEPT = 5.0
"""Seconds for which a look at Slurm answers every reader: a look costs slurmctld a list of all its jobs."""


def registry(inspect: Callable[[], SlurmInspection]) -> CollectorRegistry:
    """A registry with these metrics."""
    return registry_of(lambda: metrics(inspect()), KEPT)


def metrics(look: SlurmInspection) -> Iterator[Metric]:
    """The metrics of one look at Slurm and the plugin, without those whose value is not known."""
    found = liveness(look)
    yield from OURS.head("slurmctld answers", look.snapshot is not None, len(look.problems))
    if found.active is not None:
        yield OURS.gauge("active", "Whether the plugin decides (1), or stock Slurm alone (0)", found.active)
    if found.decides is not None:
        yield OURS.gauge(
            "deciding", "Whether the engine decided the last calls that it should decide", found.decides
        )
    yield OURS.gauge("stale", "Whether the plugin writes no state though jobs wait for nodes", found.stale)
    counters = look.state.counters if look.state else None
    if counters is not None:
        yield from _of_calls(look, counters)
    if look.snapshot is not None:
        seen, machine = view(look), look.machine
        yield OURS.jobs(seen.running, seen.waiting)
        yield from OURS.refused(seen.waiting, REFUSALS, seen.time)
        if machine is not None:
            yield OURS.nodes(node_counts(machine, seen), "Nodes of the machine file by state")
            yield from _of_room(look)
            yield from OURS.links(sharing(Links(machine, seen), seen))
    if look.out is not None:
        yield _of_links_out(look.out)


def _of_calls(look: SlurmInspection, counters: Counters) -> Iterator[Metric]:
    """The plugin's counters start from 0 with slurmctld: `started` shows Prometheus the restart."""
    if counters.started is not None:
        yield OURS.gauge(
            "start_time_seconds", "When slurmctld loaded the plugin, Unix time", counters.started
        )
    if counters.written is not None:
        yield OURS.gauge(
            "state_age_seconds", "Since the plugin wrote its state", max(look.time - counters.written, 0.0)
        )
    yield OURS.counters(
        "calls",
        "Calls of the plugin by how they ended (stock...: stock Slurm decided)",
        "end",
        {end: counters[end] for end in ENDS},
        started=counters.started,
    )
    yield OURS.counter(
        "links_unwritten",
        "Times the file of owned links could not be written",
        counters["links_unwritten"],
        started=counters.started,
    )
    yield _times(counters)
    yield OURS.gauge(
        "longest_call_seconds",
        "The longest call since slurmctld started",
        counters["longest_nanoseconds"] / 1e9,
    )
    if look.conf is not None:
        yield OURS.gauge(
            "call_limit_seconds", "Time that the engine may take in a call (CallTime)", look.conf.call_time
        )


def _times(counters: Counters) -> Metric:
    """The time of calls. The plugin's last count has all longer calls, so it has no upper bound."""
    buckets, seen = [], 0
    for limit, count in counters.under[:-1]:
        seen += count
        buckets.append((str(limit / 1e9), float(seen)))
    total = sum(count for _, count in counters.under)
    made = HistogramMetricFamily(
        OURS.prefix + "call_seconds", "The plugin's own time in a call, without stock Slurm's"
    )
    made.add_metric([], [*buckets, ("+Inf", float(total))], counters["nanoseconds"] / 1e9)
    return made


def _of_room(look: SlurmInspection) -> Iterator[Metric]:
    """How many more jobs fit and, on a machine with GPUs, which are free and which no job can use."""
    if look.machine is None or look.snapshot is None:
        return
    try:
        room = room_of(look.machine, look.snapshot)
    except InputError:
        return
    fits = GaugeMetricFamily(
        OURS.prefix + "room_jobs",
        f"How many more jobs of a size ({room['unit']}) fit inside one group of a level, each alone with the rest",
        labels=["size", "level"],
    )
    for fit in room["fits"]:
        for level, jobs in zip(room["levels"], fit["jobs"]):
            fits.add_metric([str(fit["size"]), level], jobs)
    yield fits
    if room["stranded"] is None:
        return
    yield OURS.gauge("gpus", "GPUs of the machine", room["total"])
    yield OURS.gauge("gpus_free", "GPUs that no job holds, on nodes that take jobs", room["free"])
    yield OURS.gauges(
        "gpus_stranded",
        "Free GPUs that no job can use, by what is missing",
        "reason",
        room["stranded"],
    )


def _of_links_out(out: LinksOut) -> Metric:
    return OURS.gauges(
        "links_out",
        "Links that no new job may own: those that have failed, and those reserved for services",
        "kind",
        {"failed": len(out.failed), "reserved": len(out.reserved)},
    )
