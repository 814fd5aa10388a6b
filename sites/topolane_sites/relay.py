"""Chooses the host through which hosts behind NAT reach the others, and says what that means for their traffic."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topolane_sites.clusters import VirtualCluster
    from topolane_sites.model import Host, WanLink


def nearest(
    candidates: Sequence[str], hidden: Sequence[str], site_of: Mapping[str, str], links: Sequence[WanLink]
) -> str:
    """The candidate with the least sum of latencies to the sites of the hidden hosts; of equal ones the first.

    A candidate of an unknown site, or without a link to one of these sites, comes after all others.
    """
    sites = [site_of.get(name) for name in hidden]
    return min(
        candidates,
        key=lambda name: sum(_latency(site_of.get(name), site, links) for site in sites),
    )


def sentences(cluster: VirtualCluster, hosts: Sequence[Host], links: Sequence[WanLink]) -> list[str]:
    """What an operator should know about the traffic of the hosts behind NAT; nothing if there are none."""
    if cluster.relay is None:
        return []
    hidden = [member.name for member in cluster.members if member.behind_nat]
    said = [f"traffic of {', '.join(hidden)}, behind NAT, goes over the relay {cluster.relay}"]
    site_of = {host.name: host.site for host in hosts}
    sites = sorted({site_of[name] for name in hidden if name in site_of})
    middle = site_of.get(cluster.relay)
    for near, far in itertools.combinations(sites, 2):
        direct = _latency(near, far, links)
        relayed = _latency(near, middle, links) + _latency(middle, far, links)
        if math.isfinite(direct) and relayed != direct:
            by = f"{1e3 * relayed:g} ms" if math.isfinite(relayed) else "unknown"
            said.append(
                f"plans still assume {1e3 * direct:g} ms between {near} and {far}, as the sites file says; "
                f"by its links the latency over {cluster.relay} is {by}"
            )
    return said


def _latency(near: str | None, far: str | None, links: Sequence[WanLink]) -> float:
    """Seconds one way between two sites; infinite if no link joins them."""
    if near is None or far is None:
        return math.inf
    if near == far:
        return 0.0
    return min((link.latency for link in links if set(link.between) == {near, far}), default=math.inf)
