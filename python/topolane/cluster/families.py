"""Metrics of a driver, by the naming scheme of docs/reference/metrics.md."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from topolane.cluster.status import LinkSharing, NodeCounts
from topolane.cluster.view import Running, Waiting


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

    def jobs(self, running: Iterable[Running], waiting: Iterable[Waiting]) -> Metric:
        """Jobs by state and policy."""
        counted = Counter(("running", job.policy or "unknown") for job in running)
        counted.update(("waiting", job.policy or "unknown") for job in waiting)
        made = GaugeMetricFamily(self.prefix + "jobs", "Jobs by state and policy", labels=["state", "policy"])
        for (state, policy), count in sorted(counted.items()):
            made.add_metric([state, policy], count)
        return made

    def refused(self, waiting: Iterable[Waiting], kinds: Iterable[str], now: float) -> Iterator[Metric]:
        """The jobs that the plug-in refused last, and the longest of their waits, by kind of refusal."""
        counted, waited = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
        for job in waiting:
            if job.refused is not None:
                kind = job.refused.kind
                counted[kind] = counted.get(kind, 0.0) + 1
                waited[kind] = max(waited.get(kind, 0.0), now - max(job.submit, job.begin))
        words = "Waiting jobs that the plug-in refused last, by kind of refusal"
        yield self.gauges("refused_jobs", words, "kind", counted)
        words = "The longest wait among the refused jobs, by kind of refusal"
        yield self.gauges("refused_wait_seconds", words, "kind", waited)

    def links(self, found: LinkSharing) -> Iterator[Metric]:
        """Links by their users."""
        yield self.links_owned(found.owned)
        yield from self.sharing(found)

    def sharing(self, found: LinkSharing) -> Iterator[Metric]:
        """Links with several users."""
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
