"""Metrics of a driver, by the naming scheme of docs/reference/metrics.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from topolane.cluster.status import LinkSharing, NodeCounts


class Families:
    """Makes the metrics of one driver: their names begin with `topolane_DRIVER_`."""

    def __init__(self, driver: str) -> None:
        self.prefix = f"topolane_{driver}_"

    def head(self, what: str, up: bool, problems: int | None) -> Iterator[Metric]:
        """`up` and `problems`, with which every text begins. problems: None if they are not known."""
        yield self.gauge("up", f"Whether {what}", up)
        if problems is not None:
            yield self.gauge("problems", "How many things are wrong or could not be read", problems)

    def gauge(self, name: str, words: str, value: float) -> Metric:
        """A gauge without labels."""
        return GaugeMetricFamily(self.prefix + name, words, value=float(value))

    def gauges(self, name: str, words: str, label: str, values: Mapping[str, float]) -> Metric:
        """A gauge for each value of a label."""
        made = GaugeMetricFamily(self.prefix + name, words, labels=[label])
        for key, value in values.items():
            made.add_metric([key], value)
        return made

    def nodes(self, counted: NodeCounts, words: str = "Nodes of the machine by state") -> Metric:
        """Nodes by state."""
        return self.gauges("nodes", words, "state", dataclasses.asdict(counted))

    def links(self, found: LinkSharing) -> Iterator[Metric]:
        """Links by their users."""
        yield self.links_owned(found.owned)
        yield self.gauge("links_shared", "Links that may carry the traffic of two jobs", found.shared)
        yield self.gauge(
            "isolated_jobs_sharing_links",
            "Isolated jobs that may meet another job on a link: 0 unless something is wrong",
            len(found.isolated_sharing),
        )

    def links_owned(self, count: int) -> Metric:
        """Links with one user."""
        return self.gauge("links_owned", "Links between switches that one job has for itself", count)

    def counter(self, name: str, words: str, value: float, *, started: float | None = None) -> Metric:
        """A counter without labels; `_total` is added to its name. started: when it began, Unix time."""
        made = CounterMetricFamily(self.prefix + name, words)
        made.add_metric([], value, created=started)
        return made

    def counters(
        self, name: str, words: str, label: str, values: Mapping[str, float], *, started: float | None = None
    ) -> Metric:
        """A counter for each value of a label."""
        made = CounterMetricFamily(self.prefix + name, words, labels=[label])
        for key, value in values.items():
            made.add_metric([key], value, created=started)
        return made
