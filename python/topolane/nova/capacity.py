"""Computes how many more servers of a request a host can take."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

MOST = 1 << 20


class Demand(NamedTuple):
    """The resources that one server of a request takes on a host."""

    memory: float
    """MB."""
    vcpus: float
    disk: float
    """MB."""

    @staticmethod
    def of(spec: Any) -> Demand:
        """The demand of a request's flavor."""
        flavor = spec.flavor
        extra = flavor.extra_specs if "extra_specs" in flavor and flavor.extra_specs else {}
        # Specs of older releases do not say whether the root disk is a volume.
        root = 0 if "is_bfv" in spec and spec.is_bfv else flavor.root_gb
        return Demand(
            _amount(extra, "MEMORY_MB", flavor.memory_mb),
            _amount(extra, "VCPU", flavor.vcpus),
            _amount(extra, "DISK_GB", root + flavor.ephemeral_gb + math.ceil(flavor.swap / 1024)) * 1024,
        )


def capacity(host: Any, demand: Demand, given: int = 0) -> int:
    """The number of servers that fit on a host by Nova's `HostState`, at most 2^20.

    Placement decides whether the first one fits. This function counts how many fit one after the other, and
    checks whether a host that got servers of the same request has capacity left. A flavor that takes only custom resources (bare
    metal) fits once on a host. given: how many the request has there since Nova read the host: it takes their memory
    and CPUs off, and their disk only from `free_disk_mb`.
    """
    fits = float(MOST)
    # The ratios are those of Placement; a host without them has 1.
    if demand.memory > 0:
        total = host.total_usable_ram_mb
        left = total * ((host.ram_allocation_ratio or 1.0) - 1.0) + host.free_ram_mb
        fits = min(fits, left // demand.memory)
    if demand.vcpus > 0:
        left = host.vcpus_total * (host.cpu_allocation_ratio or 1.0) - host.vcpus_used
        fits = min(fits, left // demand.vcpus)
    if demand.disk > 0:
        total = host.total_usable_disk_gb * 1024
        # As Placement counts. What the hypervisor finds free, which free_disk_mb is capped by, may be less.
        left = total * (host.disk_allocation_ratio or 1.0) - host.disk_mb_used - given * demand.disk
        fits = min(fits, left // demand.disk)
    if not any(demand):
        return 1
    return max(0, int(fits))


def _amount(extra: Any, resource: str, usual: float) -> float:
    """What a server takes. Extra specs such as resources:VCPU=0 override the flavor's own number."""
    try:
        return float(extra.get(f"resources:{resource}", usual))
    except (TypeError, ValueError):
        return float(usual)


def most_per_host(group: Any) -> int:
    """How many members the group's policy allows on one host."""
    policy = group.policy if "policy" in group else None
    if policy != "anti-affinity":
        return MOST
    try:
        # Its rules are a property, not a field: `"rules" in group` is never true.
        rules = group.rules if "_rules" in group else {}
        return max(1, int(rules.get("max_server_per_host", 1)))
    except (TypeError, ValueError):
        return 1
