"""What a running job of Flux holds, and the record with which it survives a reload of the scheduler."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from topolane import texts, untrusted
from topolane.cluster import decided
from topolane.cluster.view import ISOLATED, SHARED, UNKNOWN
from topolane.flux.fabric import Fabric
from topolane.policy import isolates

EARLIER_MARK = 16
"""Letters of a machine's mark in records of earlier releases. They read no record of today, and take its mark for another machine's."""

ANOTHER_MACHINE = "started on another machine file"


@dataclasses.dataclass(frozen=True)
class JobResources:
    """The resources of a running job."""

    nodes: tuple[int, ...]
    """Nodes of the machine, including spare ones."""
    start: float
    """Seconds since the epoch."""
    walltime: float
    share: Mapping[str, int] | None = None
    """The share of each node that the job has; None for whole nodes."""
    links: tuple[int, ...] = ()
    bandwidth_share: float = 1.0

    def record(self, fabric: Fabric, policy: str) -> dict[str, Any]:
        """What was decided for the job, with the keys of docs/reference/outputs.md."""
        return {
            # The path of a policy in Python may be long, and its end says most.
            "policy": texts.printable(policy)[-untrusted.LONGEST_WORD :],
            "rule": "argument policy of the module",
            "share": self.bandwidth_share,
            "link_use": ISOLATED if isolates(policy) else SHARED,
            "nodes": [fabric.machine.node_name(node) for node in self.nodes],
            "links": list(self.links),
            "machine": fabric.mark,
            "takes": self.share,
        }

    def recorded(self, said: Any, fabric: Fabric) -> JobResources:
        """The same job with what its record adds to R. Raises ValueError, with what is said of the job, if the record is of no
        use.
        """
        try:
            found = decided.of(_as_now(said, fabric) if "bandwidth-share" in said else said)
            if found.machine != fabric.mark:
                raise ValueError(ANOTHER_MACHINE)
            nodes = [fabric.machine.node_named(name) for name in found.nodes]
        except ValueError:
            raise
        except (*untrusted.WRONG, OverflowError) as error:
            raise ValueError(f"has a record that cannot be read ({type(error).__name__})") from error
        known = tuple(node for node in nodes if node is not None)
        if len(known) < len(nodes):
            raise ValueError("has a record with a node that the machine lacks")
        if not set(self.nodes) <= set(known):
            raise ValueError("has a record without some of its nodes")
        return JobResources(known, self.start, self.walltime, found.takes, found.links, found.share)


def _as_now(said: Mapping[str, Any], fabric: Fabric) -> dict[str, Any]:
    """The record of an earlier release with the keys of today. Raises ValueError if its nodes are of another machine."""
    if said["machine"] != fabric.mark[:EARLIER_MARK]:
        raise ValueError(ANOTHER_MACHINE)
    return {
        "policy": UNKNOWN,
        "share": said["bandwidth-share"],
        "nodes": [fabric.machine.node_name(node) for node in said["nodes"]],
        "links": said["links"],
        "machine": fabric.mark,
        "takes": said["share"],
    }
