"""The machine that the labels of a cluster's nodes describe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from topolane import sources
from topolane._engine import InputError, Machine
from topolane.kubernetes.objects import quantity
from topolane.kubernetes.settings import SchedulerSettings

NODES = "/api/v1/nodes"


def machine(
    file: str | None, labels: Sequence[str], known: SchedulerSettings, nodes: Sequence[dict[str, Any]]
) -> Machine:
    """The machine: that of `file`, of nodes by these keys of labels, or as the scheduler's settings say.

    nodes: as the API server gives them. Raises InputError if there is none.
    """
    if file is not None:
        return sources.machine(file)
    if known.machine is not None and not labels:
        where = f"{known.source}: machineFile"
        return Machine.parse(known.machine, where)
    return of_labels(labels or known.labels, nodes)


def of_labels(keys: Sequence[str], nodes: Sequence[dict[str, Any]]) -> Machine:
    """The machine of labels with these keys from the top down; of topograph's without any."""
    items: list[dict[str, Any]] = []
    if keys:
        levels = [{"nodeLabel": key} for key in keys]
        items.append({"kind": "Topology", "metadata": {"name": "labels"}, "spec": {"levels": levels}})
    for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"])):
        meta = {"name": node["metadata"]["name"], "labels": node["metadata"].get("labels") or {}}
        allocatable = _readable((node.get("status") or {}).get("allocatable"))
        items.append({"kind": "Node", "metadata": meta, "status": {"allocatable": allocatable}})
    if not nodes:
        raise InputError("the cluster has no nodes")
    # A node stands on lines of its own, so that an error names it by its line.
    text = json.dumps({"kind": "List", "items": items}, indent=1)
    return Machine.parse(text, "the labels of the nodes", "kubernetes")


def _readable(amounts: Any) -> dict[str, str]:
    """The amounts of a node. One that is none counts as nothing, and does not cost the whole machine."""
    found = {}
    for name, text in amounts.items() if isinstance(amounts, dict) else ():
        try:
            found[name] = str(text) if quantity(str(text)) >= 0 else "0"
        except ValueError:
            found[name] = "0"
    return found
