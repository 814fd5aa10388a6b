"""The metrics of a running agent, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from topolane._engine import InputError
from topolane.cluster.families import Families
from topolane.cluster.metrics import registry_of

from topolane_gang import control

OURS = Families("gang")
KEPT = 1.0
"""Seconds for which a look at the agent answers every reader."""
STATES = ("running", "filling", "stopped", "released", "ended", "lost")


def registry(path: str) -> CollectorRegistry:
    """A registry with the metrics of the agent that listens on this socket."""
    return registry_of(lambda: metrics(lambda: control.ask(path, {"do": "show"})), KEPT)


def metrics(show: Callable[[], dict[str, Any]]) -> Iterator[Metric]:
    """What the agent shows of itself. show: raises InputError if the agent does not answer."""
    try:
        shown = show()
    except InputError:
        yield from OURS.head("the agent answers", False, None)
        return
    agent, jobs = shown["agent"], shown["jobs"]
    yield from OURS.head("the agent answers", True, len(agent["missing"]))
    yield OURS.gauge("cores", "Cores of the agent", len(agent["cores"]))
    yield OURS.gauge("slices", "Slices of a round", len(shown["round"]["slices"]))
    counted = Counter(job["state"] for job in jobs)
    yield OURS.gauges("jobs", "Jobs by state", "state", {state: counted[state] for state in STATES})
    yield from _of_jobs(jobs)


def _of_jobs(jobs: list[dict[str, Any]]) -> Iterator[Metric]:
    """Times of every job, of all its threads together. Prometheus itself sets the label `job`."""
    cpu = {str(job["id"]): job["cpu"] for job in jobs}
    yield OURS.counters("job_cpu_seconds", "Time on a core, by job", "number", cpu)
    shares = CounterMetricFamily(
        OURS.prefix + "job_slice_seconds",
        "Time of threads in slices of their own job: on a core, ready without a core, blocked",
        labels=["number", "state"],
    )
    for job in jobs:
        for state in ("ran", "ready", "blocked"):
            shares.add_metric([str(job["id"]), state], job[state])
    yield shares
    barriers = {str(job["id"]): job["barrier"] for job in jobs if job["barrier"] is not None}
    yield OURS.gauges("job_barrier_seconds", "From one barrier of a job to the next", "number", barriers)
