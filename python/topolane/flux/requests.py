"""Converts a job of Flux to a request for the engine."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from topolane.flux.fabric import Fabric, RankNode


@dataclasses.dataclass(frozen=True)
class NodeRequest:
    """A request for nodes, either whole or with the same share of each."""

    nodes: int
    most: int
    """The most nodes that the job may get; 0 for exactly `nodes`."""
    share: dict[str, int] | None
    """The share of each node that the job takes; None for whole nodes."""
    eligible: tuple[int, ...] | None
    """The machine's nodes that the job may use; None for all."""

    @staticmethod
    def of(request: Any, fabric: Fabric, nodes: Sequence[RankNode]) -> NodeRequest:
        """The request of a parsed jobspec (`ResourceRequest` of flux-core).

        nodes: the ranks that the job's constraints allow. A job that asks for slots without nodes gets one
        node if its slots fit on one, otherwise the fewest whole nodes.
        """
        gpus_of_slot = request.gpu_per_slot
        if request.nnodes > 0:
            slots = 1 if request.exclusive else request.nslots // request.nnodes
            cores, gpus = slots * request.slot_size, slots * gpus_of_slot
            count = request.nnodes
            most = len(nodes) if request.nnodes_max is None else request.nnodes_max
            may = [node for node in nodes if node.cores >= cores and node.gpus >= gpus]
            whole = request.exclusive
        else:
            count, may = _fewest(nodes, request)
            most, whole = count, count > 1
            cores, gpus = request.nslots * request.slot_size, request.nslots * gpus_of_slot
        if not whole:
            whole = bool(may) and all((node.cores, node.gpus) == (cores, gpus) for node in may)
        share = None if whole else {"cores": cores} | ({"gpu": gpus} if gpus else {})
        eligible = tuple(sorted(fabric.node_of[node.rank] for node in may))
        return NodeRequest(
            count, most if most > count else 0, share, None if len(may) == fabric.machine.nodes else eligible
        )


def _fewest(nodes: Sequence[RankNode], request: Any) -> tuple[int, list[RankNode]]:
    """The lowest number `n` of nodes that can hold the slots, and nodes of which any `n` hold them. If there
    is no such set, the fewest of the largest nodes.
    """
    may = sorted(
        (node for node in nodes if _slots(node, request) > 0), key=lambda node: -_slots(node, request)
    )
    slots = [_slots(node, request) for node in may]
    counts = {least: -(-request.nslots // least) for least in slots}
    fits = [
        (count, least) for least, count in counts.items() if count <= sum(each >= least for each in slots)
    ]
    if fits:
        count, least = min(fits)
        return count, [node for node in may if _slots(node, request) >= least]
    count = 1 + sum(total < request.nslots for total in itertools.accumulate(slots))
    return count, may[:count]


def _slots(node: RankNode, request: Any) -> int:
    """The number of slots that fit on an empty node."""
    fit = node.cores // request.slot_size if request.slot_size else 1
    return int(min(fit, node.gpus // request.gpu_per_slot) if request.gpu_per_slot else fit)
