"""The number of servers of a request that fit on each host, according to Placement's inventories and
allocations.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from keystoneauth1 import exceptions as auth
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class ResourceGroup(NamedTuple):
    """Resources that one provider must supply together, such as a PCI device. In the group without a suffix,
    each resource may come from another provider.
    """

    resources: tuple[tuple[str, int], ...]
    traits: frozenset[str]
    apart: bool
    """Whether each resource may come from another provider."""


def servers_by_host(context: Any, spec: Any) -> dict[str, int]:
    """The number of servers of the request that fit on each compute node now, by UUID.

    This sends Placement the query that Nova sends. Hosts that the answer does not name are missing; without
    an answer, the result is empty.
    """
    try:
        wanted = scheduler_utils.ResourceRequest.from_request_spec(spec)
        answer = report.report_client_singleton().get_allocation_candidates(context, wanted)
        if answer is None:
            return {}
        _, providers, _ = answer
        return counted(groups_of(wanted.to_querystring()), providers or {})
    except (auth.ClientException, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.warning(
            "Placement does not say how many servers fit on a host; Nova's own numbers count: %s", error
        )
        return {}


def groups_of(query: str) -> collections.Counter[ResourceGroup]:
    """The groups of resources in a query for allocation candidates, and how often each occurs."""
    asked = parse_qs(query)
    groups: collections.Counter[ResourceGroup] = collections.Counter()
    for key, (listed, *_) in asked.items():
        if not key.startswith("resources"):
            continue
        suffix = key.removeprefix("resources")
        resources = tuple(sorted((name, int(amount)) for name, amount in re.findall(r"(\w+):(\d+)", listed)))
        traits = ",".join(asked.get(f"required{suffix}", [])).split(",")
        required = frozenset(trait for trait in traits if re.fullmatch(r"\w+", trait))
        groups[ResourceGroup(resources, required if suffix else frozenset(), not suffix)] += 1
    return groups


def counted(
    groups: Mapping[ResourceGroup, int], providers: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """How many times all groups fit into the free resources of each provider tree, by its root.

    providers: the provider summaries of Placement's answer. A resource that no provider of the tree has comes
    from a shared pool and limits nothing.
    """
    trees: dict[str, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for name, provider in providers.items():
        trees[provider.get("root_provider_uuid") or name].append(provider)
    return {root: _fits(groups, tree) for root, tree in trees.items()}


def _fits(groups: Mapping[ResourceGroup, int], tree: list[Mapping[str, Any]]) -> int:
    free = [
        {name: max(0, one["capacity"] - one["used"]) for name, one in provider["resources"].items()}
        for provider in tree
    ]
    traits = [frozenset(provider.get("traits") or ()) for provider in tree]
    there = {name for one in free for name in one}
    limits = []
    # The amount of each resource that all groups need together.
    total: collections.Counter[str] = collections.Counter()
    for group, times in groups.items():
        for name, amount in group.resources:
            total[name] += times * amount
    for name in there & {name for name, amount in total.items() if amount}:
        limits.append(sum(one.get(name, 0) for one in free) // total[name])
    for group, times in groups.items():
        own = [(name, amount) for name, amount in group.resources if amount and name in there]
        parts = [[one] for one in own] if group.apart else [own] if own else []
        for part in parts:
            fits = [
                min(one.get(name, 0) // amount for name, amount in part)
                for one, has in zip(free, traits, strict=True)
                if group.traits <= has
            ]
            limits.append(sum(fits) // times)
    return min(limits, default=1)
