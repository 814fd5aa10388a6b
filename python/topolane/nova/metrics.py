"""What operators watch of a Nova cloud, for Prometheus: groups that share links, their hops, and refusals."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from topolane._engine import InputError
from topolane.live.metrics import registry_of
from topolane.nova import cloud, overview, plan_rules

PREFIX = "topolane_nova_"
KEPT = 30.0
"""Seconds for which a look at Nova answers every reader: a look lists all servers of the cloud."""


class Source:
    """Where the metrics come from: the API of a cloud and, with a nova.conf, its API database."""

    def __init__(self, os_cloud: str | None, machine: str | None, nova_conf: str | None) -> None:
        """Raises InputError if the file cannot be read. The cloud may answer later."""
        self._os_cloud = os_cloud
        self._file = nova_conf
        self._connection = plan_rules.read_api_database(nova_conf) if nova_conf is not None else None
        options = plan_rules.read_options(nova_conf) if nova_conf is not None else plan_rules.WITHOUT_FILE
        self._machine = machine or options.machine_file
        self._default_placement = options.default_placement

    def groups(self) -> tuple[cloud.Cloud, list[str]]:
        """The cloud, and its compute hosts that no leaf lists. Raises InputError if it does not answer."""
        connection = cloud.connect(self._os_cloud)
        found = cloud.read(connection, self._machine, self._default_placement)
        return found, cloud.off_tree(connection, found)

    def refusals(self) -> dict[str, int] | None:
        """How many requests were refused, by reason; None without a nova.conf. Raises InputError if unreadable."""
        if self._connection is None or self._file is None:
            return None
        from topolane.nova import refusal_table

        return refusal_table.read(self._connection, self._file)


def registry(source: Source) -> CollectorRegistry:
    """A registry with these metrics."""
    return registry_of(lambda: metrics(source), KEPT)


def text(source: Source) -> str:
    """The metrics in Prometheus's text format, as node_exporter's textfile collector reads it."""
    return generate_latest(registry(source)).decode()


def metrics(source: Source) -> Iterator[Metric]:
    """What a look at the cloud and the database gives. What is not known is left out."""
    try:
        found, hosts = source.groups()
    except InputError:
        yield _gauge("up", "Whether Nova answers, and has a topology", 0)
    else:
        yield _gauge("up", "Whether Nova answers, and has a topology", 1)
        yield _gauge(
            "problems", "What is wrong with the topology: 'topolane nova show' says it", len(found.problems)
        )
        yield _of_hosts(found, hosts)
        yield from _of_groups(found)
    try:
        refused = source.refusals()
    except InputError:
        yield _gauge("refusals_known", "Whether the API database says what was refused", 0)
        return
    if refused is not None:
        yield _gauge("refusals_known", "Whether the API database says what was refused", 1)
        yield _of_refusals(refused)


def _of_hosts(found: cloud.Cloud, off_tree: list[str]) -> Metric:
    made = GaugeMetricFamily(PREFIX + "hosts", "Compute hosts by state", labels=["state"])
    closed = sum(host in found.closed for host in found.topology.node_of)
    made.add_metric(["in_service"], found.topology.machine.nodes - closed)
    made.add_metric(["out_of_service"], closed)
    made.add_metric(["off_tree"], len(off_tree))
    return made


def _of_groups(found: cloud.Cloud) -> Iterator[Metric]:
    rows = overview.rows(found)
    placements = sorted({row.placement for row in rows} | {"compact", "isolated", "spread"})
    for name, words, value in (
        ("groups", "Server groups by the placement that they ask for", lambda _: 1.0),
        (
            "groups_sharing_links",
            "Groups that share links although one of those that share them is isolated: 0 unless something is wrong",
            lambda row: float(bool(row.shares)),
        ),
        (
            "groups_above_least",
            "Groups with more hops than the least possible ones",
            lambda row: float(row.hops > row.least),
        ),
        (
            "hops_above_least",
            "Hops above the least possible ones, over all pairs of servers of all groups",
            lambda row: row.hops - row.least,
        ),
    ):
        made = GaugeMetricFamily(PREFIX + name, words, labels=["placement"])
        for placement in placements:
            made.add_metric([placement], sum(value(row) for row in rows if row.placement == placement))
        yield made


def _of_refusals(refused: dict[str, int]) -> Metric:
    made = CounterMetricFamily(
        PREFIX + "refusals", "Requests that Topolane's filter has refused, by kind", labels=["kind"]
    )
    for kind, count in sorted(refused.items()):
        made.add_metric([kind], count)
    return made


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, words, value=value)
