"""The CPU models of hosts, read from the reports of Nova's compute services."""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Iterable
from typing import NamedTuple


class Cpu(NamedTuple):
    """The CPU of a host, for comparison with other hosts."""

    architecture: str
    vendor: str
    model: str
    rest: str = ""
    """Features, sockets, cores and threads, if they must be equal too."""

    def __str__(self) -> str:
        return f"{self.vendor} {self.model} ({self.architecture})"


@functools.lru_cache(maxsize=1024)
def cpu_of(cpu_info: str | None, alike: str) -> Cpu | None:
    """The CPU in the report of a compute service; None if the report names no model. alike: `generation` or
    `cpu`.
    """
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
    """The different CPUs of the hosts of a group's servers, each with its number of servers. The first is the
    group's CPU.

    reported: for each server, the CPU report of its host; None if unknown.
    """
    known = [cpu for info in reported if (cpu := cpu_of(info, alike)) is not None]
    return collections.Counter(known).most_common()
