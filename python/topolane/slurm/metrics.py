"""The daemon's metrics for Prometheus."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

from topolane.live.links import Links
from topolane.live.metrics import serve
from topolane.slurm.mirror import Mirror
from topolane.slurm.records import Snapshot
from topolane.slurm.usage import count, holding

COUNTED = {
    "start": ("topolane_starts", "Releases onto nodes, refused ones too"),
    "not-released": ("topolane_releases_refused", "Releases that Slurm refused"),
    "escaped": ("topolane_jobs_held_again", "Jobs that Slurm might have started by itself"),
    "slurm-error": ("topolane_slurm_errors", "Looks and requests that failed, releases aside"),
}
"""The log events that are counted: name and help text of each counter."""

FORMER = " (former name, for one release)"
DECISION = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 1e-2, 0.1, 1.0)
LOOK = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """Counts what the daemon does, and serves the metrics at `address` (host:port) until the process ends.

    Raises InputError if that address cannot be used.
    """

    def __init__(self, address: str) -> None:
        registry = CollectorRegistry()
        self._counters = {event: Counter(*words, registry=registry) for event, words in COUNTED.items()}
        self._jobs = Gauge("topolane_jobs", "Jobs of the managed partitions", ["state"], registry=registry)
        self._nodes = Gauge("topolane_nodes", "Nodes of the tree", ["state"], registry=registry)
        self._shared = Gauge(
            "topolane_links_shared", "Links that may carry the traffic of two jobs", registry=registry
        )
        self._dedicated = [
            Gauge(name, "Links dedicated to running jobs" + why, registry=registry)
            for name, why in (("topolane_links_dedicated", ""), ("topolane_links_owned", FORMER))
        ]
        self._lent = Gauge(
            "topolane_links_lent",
            "Idle links lent to running jobs in addition to dedicated ones",
            registry=registry,
        )
        self._bandwidth_share = [
            Summary(
                name, "Share of full bandwidth that ended jobs had on their links" + why, registry=registry
            )
            for name, why in (("topolane_job_bandwidth_share", ""), ("topolane_job_phi", FORMER))
        ]
        self._reserved = Gauge(
            "topolane_reserved_start_time_seconds",
            "Latest start of the first in the queue, Unix time; NaN if no job has one",
            registry=registry,
        )
        self._look = Histogram("topolane_look_seconds", "A look at Slurm", buckets=LOOK, registry=registry)
        self._decision = Histogram(
            "topolane_decision_seconds",
            "The scheduler's time for each job it starts, or for finding that none does",
            buckets=DECISION,
            registry=registry,
        )
        self._reached = time.monotonic()
        age = Gauge("topolane_last_look_age_seconds", "Since Slurm last answered", registry=registry)
        age.set_function(lambda: time.monotonic() - self._reached)
        serve(address, registry)

    def heard(self, event: str) -> None:
        """Counts an event of the log."""
        event = "slurm-error" if event in ("not-hold", "not-tell") else event
        if event in self._counters:
            self._counters[event].inc()

    def ended(self, bandwidth_share: float) -> None:
        """Records that a job with dedicated links has ended, with its mean share of full bandwidth."""
        for summary in self._bandwidth_share:
            summary.observe(bandwidth_share)

    def reached(self) -> None:
        """Records that Slurm has answered, whether or not anything had changed."""
        self._reached = time.monotonic()

    def looked(
        self,
        snapshot: Snapshot,
        mirror: Mirror,
        seconds: float,
        decisions: int,
        deciding: float,
        lent: int = 0,
    ) -> None:
        """Records one look that took `seconds`, its `decisions`, the seconds for `deciding`, and how many
        links are lent.
        """
        self._look.observe(seconds)
        for _ in range(max(decisions, 1)):
            self._decision.observe(deciding / max(decisions, 1))
        managed = [job for job in snapshot.jobs.values() if mirror.manages(job)]
        waiting = [job.id for job in managed if job.waits]
        refused = sum(job in mirror.refused for job in waiting)
        held = sum(job in mirror.reasons for job in waiting) - refused
        for state, jobs in (
            ("running", sum(job.holds_nodes for job in managed)),
            ("waiting", len(waiting) - held - refused),
            ("held", held),
            ("refused", refused),
        ):
            self._jobs.labels(state).set(jobs)
        nodes = count(snapshot, mirror.machine)
        self._nodes.labels("idle").set(nodes.idle)
        self._nodes.labels("busy").set(nodes.busy)
        self._nodes.labels("out_of_service").set(nodes.out_of_service)
        holders = {job: nodes for job, nodes in holding(snapshot, mirror.machine).items() if nodes}
        dedicated = mirror.link_allocations()
        self._shared.set(Links(mirror.machine, holders, {}, dedicated).shared())
        for gauge in self._dedicated:
            gauge.set(sum(len(one.links) for one in dedicated.values()))
        self._lent.set(lent)
        promised = mirror.scheduler.scheduler.reservation
        self._reserved.set(float("nan") if promised is None else promised[1])
