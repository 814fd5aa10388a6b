"""The CPUs of hosts, by what Nova's computes report of them."""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Iterable
from typing import NamedTuple


class Cpu(NamedTuple):
    """The CPUs of a host."""

    architecture: str
    vendor: str
    model: str
    rest: str = ""
    """Features, sockets, cores and threads, where these count."""

    def __str__(self) -> str:
        return f"{self.vendor} {self.model} ({self.architecture})"


@functools.lru_cache(maxsize=1024)
def cpu_of(cpu_info: str | None, alike: str) -> Cpu | None:
    """The CPU in what a compute reports; None if it reports no model. alike: `generation` or `cpu`."""
    try:
        said = json.loads(cpu_info or "{}")
        model, vendor, architecture = (str(said.get(key) or "") for key in ("model", "vendor", "arch"))
        rest = ""
        if alike == "cpu":
            topology = said.get("topology") or {}
            rest = json.dumps([sorted(map(str, said.get("features") or ())), sorted(topology.items())])
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    return Cpu(architecture, vendor, model, rest) if model else None


def of_group(reported: Iterable[str | None], alike: str) -> list[tuple[Cpu, int]]:
    """The CPUs of the hosts of a group's servers and how many servers have them. The first is the group's CPU.

    reported: for every server, what the compute of its host reports; None if it is not known.
    """
    known = [cpu for info in reported if (cpu := cpu_of(info, alike)) is not None]
    return collections.Counter(known).most_common()
