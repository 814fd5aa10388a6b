"""Prometheus metrics of a Nova cloud: groups that share links, their hops, and refusals."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from topolane._engine import InputError
from topolane.cluster.decided import STOCK
from topolane.cluster.families import Families
from topolane.cluster.links import Links
from topolane.cluster.metrics import registry_of
from topolane.cluster.status import node_counts, sharing
from topolane.nova import cloud, plan_rules
from topolane.nova.hints import PLACEMENTS
from topolane.nova.status import hops
from topolane.nova.view import view

OURS = Families("nova")
ANSWERS = "Nova answers, and has a topology"
KEPT = 30.0
"""Seconds for which one reading of Nova serves all scrapes: it lists all servers of the cloud."""


class MetricsSource:
    """Where the metrics come from: the API of a cloud and, with a nova.conf, its API database."""

    def __init__(self, os_cloud: str | None, machine: str | None, nova_conf: str | None) -> None:
        """Raises InputError if a file cannot be read. The cloud need not answer yet."""
        self._os_cloud = os_cloud
        self._file = nova_conf
        self._connection = plan_rules.read_api_database(nova_conf) if nova_conf is not None else None
        options = plan_rules.read_options(nova_conf) if nova_conf is not None else plan_rules.WITHOUT_FILE
        self._machine = machine or options.machine_file
        self._default_placement = options.default_placement

    def groups(self) -> tuple[cloud.Cloud, list[str]]:
        """The cloud, and its compute hosts that no leaf lists. Raises InputError if the cloud does not
        answer.
        """
        connection = cloud.connect(self._os_cloud)
        found = cloud.read(connection, self._machine, self._default_placement)
        return found, cloud.off_tree(connection, found)

    def refusals(self) -> dict[str, int] | None:
        """The number of refused requests by reason; None without a nova.conf. Raises InputError if
        unreadable.
        """
        if self._connection is None or self._file is None:
            return None
        from topolane.nova import refusal_table

        return refusal_table.read(self._connection, self._file)


def registry(source: MetricsSource) -> CollectorRegistry:
    """A registry with these metrics."""
    return registry_of(lambda: metrics(source), KEPT)


def metrics(source: MetricsSource) -> Iterator[Metric]:
    """The metrics from one reading of cloud and database. Metrics with an unknown value are missing."""
    try:
        found, off_tree = source.groups()
    except InputError:
        yield from OURS.head(ANSWERS, False, None)
    else:
        yield from OURS.head(ANSWERS, True, len(found.problems))
        yield from _of_groups(found)
        yield OURS.gauge("nodes_off_tree", "Compute hosts that no leaf lists", len(off_tree))
    known = "Whether the API database says what was refused"
    try:
        refused = source.refusals()
    except InputError:
        yield OURS.gauge("refusals_known", known, False)
        return
    if refused is not None:
        yield OURS.gauge("refusals_known", known, True)
        words = "Requests that Topolane's filter has refused, by kind"
        yield OURS.counters("refusals", words, "kind", dict(sorted(refused.items())))


def _of_groups(found: cloud.Cloud) -> Iterator[Metric]:
    seen, far = view(found), hops(found)
    yield OURS.nodes(node_counts(found.topology.machine, seen), "Compute hosts of the topology by state")
    running = {job.name: job for job in seen.running if job.is_ours}
    yield OURS.jobs(running.values(), seen.waiting)
    yield from OURS.sharing(sharing(Links(found.topology.machine, seen), seen))
    policies = sorted({*PLACEMENTS, STOCK, *(job.policy or "unknown" for job in running.values())})
    for name, words, value in (
        (
            "jobs_above_least",
            "Groups with more hops than the least possible ones",
            lambda row: float(row.hops > row.least_hops),
        ),
        (
            "hops_above_least",
            "Hops above the least possible ones, over all pairs of servers of all groups",
            lambda row: row.hops - row.least_hops,
        ),
    ):
        counted = dict.fromkeys(policies, 0.0)
        for row in far:
            counted[running[row.job].policy or "unknown"] += value(row)
        yield OURS.gauges(name, words, "policy", counted)
