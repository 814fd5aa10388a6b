"""The daemon of a host: reports its resources and its guests to the manager every few seconds."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil
from topolane._engine import InputError

from topolane_sites.core_speed import CoreSpeed
from topolane_sites.host_guests import GuestRow, LibvirtDomains, NoGuests, Processes
from topolane_sites.processor import of_this_machine
from topolane_sites.rates import Rates
from topolane_sites.tunnels import Tunnels

if TYPE_CHECKING:
    from topolane_sites.client import Client
    from topolane_sites.model import Host

Report = dict[str, Any]
_LISTS = {"qmp": Processes, "libvirt": LibvirtDomains}


def every(seconds: float, manager: Client, path: str, look: Callable[[], Report]) -> None:
    """Posts what `look` returns, for ever. If the manager does not answer, it logs that once and tries again."""
    silent = None
    while True:
        began = time.monotonic()
        try:
            manager.post(path, look())
            if silent is not None:
                print(f"the manager answers again, after {began - silent:.0f} s", file=sys.stderr, flush=True)
            silent = None
        except InputError as error:
            if silent is None:
                print(f"{error}; asked again every {seconds:g} s", file=sys.stderr, flush=True)
                silent = began
        time.sleep(max(0.1, seconds - (time.monotonic() - began)))


class HostWatch:
    """A host, as its daemon sees it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._speed = CoreSpeed()
        self._features = of_this_machine()
        self._traffic: tuple[float, int, int] | None = None
        self._busy, self._bytes = Rates(), Rates()
        self._tunnels = Tunnels(host.name)
        self._guests = _LISTS.get(host.driver, NoGuests)(host)

    def look(self) -> Report:
        """One report; see `HostReport` in the HTTP interface. Its additional fields are those of `use`.

        Raises InputError if the guests cannot be listed, so that the host is not reported as empty.
        """
        host = self._host
        rows = self._guests.look()
        return {
            "site": host.site,
            "cores": host.cores,
            "memory": host.memory,
            "driver": host.driver,
            "address": host.address,
            **self._speed.look(),
            "features": self._features,
            "other_load": self._loads(rows),
            "guests": [row.fields for row in rows],
            "tunnels": self._tunnels.look(),
            "use": self._use(),
        }

    def _loads(self, rows: list[GuestRow]) -> float:
        """Adds to each guest its busy cores and its network's bytes per second. Returns the cores that others keep
        busy.
        """
        seconds = {row.key: row.seconds for row in rows if row.seconds is not None}
        busy = self._busy.look({"": _busy_seconds(), **seconds})
        # A guest that answers for the first time may have run for long: its seconds are not of this interval alone.
        most = float(os.cpu_count() or 1)
        busy = {key: min(cores, most) for key, cores in busy.items()}
        counted = {f"{way} {row.key}": count for row in rows for way, count in row.bytes.items()}
        rates = self._bytes.look(counted)
        for row in rows:
            if row.key in busy:
                row.fields["cpu"] = busy[row.key]
            row.fields |= {way: rates[f"{way} {row.key}"] for way in row.bytes if rates}
        others = busy.get("", 0.0) - sum(busy[row.key] for row in rows if row.key in busy)
        return max(0.0, others)

    def _use(self) -> dict[str, float]:
        """Share of the processors' time, bytes of memory, and bytes a second over its networks."""
        sums, now = psutil.net_io_counters(), time.monotonic()
        before, self._traffic = self._traffic, (now, sums.bytes_sent, sums.bytes_recv)
        passed = now - before[0] if before else 0.0
        return {
            "cpu": psutil.cpu_percent() / 100,
            "load": psutil.getloadavg()[0],
            "memory_used": float(psutil.virtual_memory().used),
            "sent": (sums.bytes_sent - before[1]) / passed if before and passed else 0.0,
            "received": (sums.bytes_recv - before[2]) / passed if before and passed else 0.0,
        }


def _busy_seconds() -> float:
    """Seconds for which the cores that this daemon may use were busy, since the system started."""
    times = psutil.cpu_times(percpu=True)
    idle = ("idle", "iowait", "guest", "guest_nice")  # what guests use is in `user` as well
    mine = [times[core] for core in os.sched_getaffinity(0) if core < len(times)]
    return float(sum(getattr(one, kind) for one in mine for kind in one._fields if kind not in idle))
