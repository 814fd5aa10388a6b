"""Prometheus metrics of the live page."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from topolane.cluster.families import Families
from topolane.cluster.status import node_counts
from topolane.serve.live import Live

OURS = Families("serve")


def metrics(live: Live, viewers: int, most: int) -> Iterator[Metric]:
    """Metrics of the newest snapshot, and the number of viewers."""
    assert live.feed.state is not None
    shown = live.feed.state.snapshot
    yield from OURS.head("the source answered the last look", not shown.is_old, len(shown.problems))
    age = time.monotonic() - live.answered
    yield OURS.gauge("look_age_seconds", "Since the newest look that the source answered", age)
    yield OURS.gauge("viewers", "Viewers now", viewers)
    yield OURS.gauge("viewers_limit", "Most viewers at a time", most)
    yield OURS.jobs(shown.running, shown.waiting)
    yield OURS.nodes(node_counts(live.source.machine, shown))
    yield OURS.links_owned(len({link for job in shown.running for link in job.links}))
