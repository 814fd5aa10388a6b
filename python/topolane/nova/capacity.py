"""Computes how many more servers of a request a host can take."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

MOST = 1 << 20


class Demand(NamedTuple):
    """The resources that one server of a request takes on a host."""

    memory: float
    """In MB."""
    vcpus: float
    disk: float
    """In MB."""

    @staticmethod
    def of(spec: Any) -> Demand:
        """The demand of a request's flavor."""
        flavor = spec.flavor
        extra = flavor.extra_specs if "extra_specs" in flavor and flavor.extra_specs else {}
        # Older Nova releases do not record whether the root disk is a volume.
        root = 0 if "is_bfv" in spec and spec.is_bfv else flavor.root_gb
        return Demand(
            _amount(extra, "MEMORY_MB", flavor.memory_mb),
            _amount(extra, "VCPU", flavor.vcpus),
            _amount(extra, "DISK_GB", root + flavor.ephemeral_gb + math.ceil(flavor.swap / 1024)) * 1024,
        )


def capacity(host: Any, demand: Demand, given: int = 0) -> int:
    """The number of servers that fit on a host according to Nova's `HostState`, at most 2^20.

    Placement decides whether the first server fits. This function counts how many fit one after the other, so
    it also shows whether a host that already took servers of this request has capacity left. A flavor with
    custom resources only (bare metal) fits once on a host. given: the servers of this request placed on the
    host since Nova read it; Nova has subtracted their memory and CPUs, but their disk only from
    `free_disk_mb`.
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
        # Placement counts this way. `free_disk_mb` is lower if the hypervisor reports less free disk.
        left = total * (host.disk_allocation_ratio or 1.0) - host.disk_mb_used - given * demand.disk
        fits = min(fits, left // demand.disk)
    if not any(demand):
        return 1
    return max(0, int(fits))


def _amount(extra: Any, resource: str, usual: float) -> float:
    """The amount of a resource that a server takes. An extra spec such as resources:VCPU=0 overrides the
    flavor's number.
    """
    try:
        return float(extra.get(f"resources:{resource}", usual))
    except (TypeError, ValueError):
        return float(usual)


def most_per_host(group: Any) -> int:
    """The number of members that the group's policy allows on one host."""
    policy = group.policy if "policy" in group else None
    if policy != "anti-affinity":
        return MOST
    try:
        # `rules` is a property of the group, not a field: `"rules" in group` is always false.
        rules = group.rules if "_rules" in group else {}
        return max(1, int(rules.get("max_server_per_host", 1)))
    except (TypeError, ValueError):
        return 1
