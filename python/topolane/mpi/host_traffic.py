"""The traffic between the hosts of a program, from the traffic between its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class HostTraffic(NamedTuple):
    """The bytes that hosts sent to each other."""

    hosts: list[str]
    """Host names, in the order of their lowest ranks."""
    sent: list[tuple[int, int, float]]
    """Sender and receiver (indices into `hosts`) and bytes. Traffic within a host is not counted."""


def between_hosts(
    host_of: Sequence[str],
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    size: NDArray[np.float64],
) -> HostTraffic:
    """Sums a matrix by rank over the ranks of each host.

    host_of: the host of each rank, empty if the rank never reported. Traffic of such ranks is not counted.
    """
    hosts = list(dict.fromkeys(host for host in host_of if host))
    place = {host: at for at, host in enumerate(hosts)}
    places = np.array([place.get(host, -1) for host in host_of], np.int64)
    begin, end = places[sender], places[receiver]
    kept = (begin >= 0) & (end >= 0) & (begin != end)
    pairs, at = np.unique(begin[kept] * len(hosts) + end[kept], return_inverse=True)
    sums = np.zeros(len(pairs))
    np.add.at(sums, at, size[kept])
    return HostTraffic(
        hosts,
        [
            (int(pair) // len(hosts), int(pair) % len(hosts), total)
            for pair, total in zip(pairs, sums.tolist())
        ],
    )
