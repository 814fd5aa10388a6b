"""How many more servers of a request a host can take."""

from __future__ import annotations

import math
from typing import Any

MOST = 1 << 20


def capacity(host: Any, spec: Any) -> int:
    """Servers of the request that fit on a host by Nova's own books (`HostState`), at most 2^20.

    Placement is the judge of the first: this tells how many go there in a row, and whether a host that
    servers of the same request were given has room left. What the flavor takes by custom resources alone
    (bare metal) is one to a host.
    """
    flavor = spec.flavor
    extra = flavor.extra_specs if "extra_specs" in flavor and flavor.extra_specs else {}
    memory = _amount(extra, "MEMORY_MB", flavor.memory_mb)
    vcpus = _amount(extra, "VCPU", flavor.vcpus)
    root = 0 if spec.is_bfv else flavor.root_gb
    disk = _amount(extra, "DISK_GB", root + flavor.ephemeral_gb) * 1024
    # Ratios are those of Placement; a host that does not tell them has 1.
    ram_total = host.total_usable_ram_mb * _ratio(host.ram_allocation_ratio)
    ram_used = host.total_usable_ram_mb - host.free_ram_mb
    disk_total = host.total_usable_disk_gb * 1024 * _ratio(host.disk_allocation_ratio)
    disk_used = host.total_usable_disk_gb * 1024 - host.free_disk_mb
    free = (
        (ram_total - ram_used, memory),
        (host.vcpus_total * _ratio(host.cpu_allocation_ratio) - host.vcpus_used, vcpus),
        (disk_total - disk_used, disk),
    )
    fits = [max(0.0, left) // each for left, each in free if each > 0]
    return int(min(fits)) if fits and math.isfinite(min(fits)) else 1


def _amount(extra: Any, resource: str, usual: float) -> float:
    """What a server takes: extra specs such as resources:VCPU=0 go before the flavor's own number."""
    try:
        return float(extra.get(f"resources:{resource}", usual))
    except (TypeError, ValueError):
        return float(usual)


def _ratio(ratio: float | None) -> float:
    return ratio if ratio else 1.0


def most_per_host(group: Any) -> int:
    """Members that the group's policy allows on one host."""
    policy = group.policy if "policy" in group else None
    if policy != "anti-affinity":
        return MOST
    rules = group.rules if "rules" in group and group.rules else {}
    try:
        return max(1, int(rules.get("max_server_per_host", 1)))
    except (TypeError, ValueError):
        return 1
