"""The scheduler's topology, read again when the operator changes it."""

from __future__ import annotations

import os
import time
from typing import Any

from nova import objects
from oslo_log import log as logging

from topolane import sources
from topolane._engine import InputError
from topolane.nova.topology import Aggregate, Topology, from_aggregates

LOG = logging.getLogger(__name__)


class Topologies:
    """Reads the topology from the machine file if one is named, else from the aggregates."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._read_at = -float("inf")
        self._seen: object = None
        self._topology: Topology | None = None

    def now(self, context: Any) -> Topology | None:
        """The topology, not older than `topology_lifetime`. If there is none: None, with one log message."""
        if time.monotonic() - self._read_at < self._options.topology_lifetime:
            return self._topology
        file = self._options.machine_file
        seen: object
        try:
            if file:
                status = os.stat(file)
                seen = (file, status.st_mtime_ns, status.st_size)
            else:
                seen = _aggregates(context)
            if seen != self._seen:
                self._topology = _of_file(file) if file else self._of_aggregates(seen)
                if self._topology is None:
                    LOG.warning(
                        "No aggregate has topolane:leaf: no isolated group is placed, and others are placed as without "
                        "Topolane."
                    )
        except (InputError, OSError) as error:
            seen = str(error)
        # Outside the exception handler: inside, oslo.log adds the exception to every line.
        if isinstance(seen, str) and seen != self._seen:
            LOG.error("The machine file cannot be used, the last one that could be stays: %s", seen)
        self._seen = seen
        self._read_at = time.monotonic()
        return self._topology

    @staticmethod
    def _of_aggregates(aggregates: Any) -> Topology | None:
        topology, problems = from_aggregates(
            Aggregate(name, hosts, dict(meta)) for name, hosts, meta in aggregates
        )
        for problem in problems:
            LOG.error("What the aggregates say of the topology is wrong: %s", problem)
        return topology


def _of_file(file: str) -> Topology:
    return Topology.of(sources.tree(file))


def _aggregates(context: Any) -> list[tuple[str, list[str], tuple[tuple[str, str], ...]]]:
    """The aggregates with Topolane's metadata."""
    found = []
    for aggregate in objects.AggregateList.get_all(context):
        metadata = tuple(
            sorted(item for item in aggregate.metadata.items() if item[0].startswith("topolane:"))
        )
        if metadata:
            found.append((aggregate.name, sorted(aggregate.hosts), metadata))
    return sorted(found)
