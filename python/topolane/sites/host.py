"""The daemon of a host: reports its resources and its guests to the manager every few seconds."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from topolane._engine import InputError
from topolane.sites.qemu import Folder
from topolane.sites.remote import CommandFailed

if TYPE_CHECKING:
    from topolane.sites.client import Client
    from topolane.sites.model import Host

Report = dict[str, Any]


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
        self._traffic: tuple[float, int, int] | None = None
        self._busy: dict[int, psutil.Process] = {}
        self._seen: dict[str, Report] = {}
        """The last answer of each QEMU process, for processes that are alive but do not answer now."""

    def look(self) -> Report:
        """One report; see `HostReport` in the HTTP interface. Its additional fields are those of `use`.

        Raises InputError if the guests cannot be listed, so that the host is not reported as empty.
        """
        host = self._host
        return {
            "site": host.site,
            "cores": host.cores,
            "memory": host.memory,
            "driver": host.driver,
            "address": host.address,
            "guests": self._guests(),
            "use": self._use(),
        }

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

    def _guests(self) -> list[Report]:
        if self._host.driver == "qmp":
            return self._of_folder()
        if self._host.driver == "libvirt":
            return self._of_libvirt()
        return []

    def _of_folder(self) -> list[Report]:
        from topolane.sites.guest_monitor import guest_state

        if not Path(self._host.address).exists():
            return []
        try:
            folder = Folder.of(self._host)
        except CommandFailed as error:
            raise InputError(str(error)) from error
        alive = {name: pid for name in folder.guests() if (pid := folder.pid(name)) is not None}
        self._seen = {name: seen for name, seen in self._seen.items() if name in alive}
        for name in alive:
            if (seen := asyncio.run(guest_state(folder, name))) is not None:
                self._seen[name] = seen
        return [{"name": name, **seen, **self._process(alive[name])} for name, seen in self._seen.items()]

    def _process(self, pid: int) -> dict[str, float]:
        """The busy cores of a guest's process since the last look, and its bytes of memory."""
        try:
            process = self._busy.setdefault(pid, psutil.Process(pid))
            return {"cpu": process.cpu_percent() / 100, "resident": float(process.memory_info().rss)}
        except psutil.Error:
            self._busy.pop(pid, None)
            return {}

    def _of_libvirt(self) -> list[Report]:
        import libvirt

        from topolane.sites.domains import connection

        try:
            with connection(self._host) as made:
                return [told for domain in made.listAllDomains() if (told := _told(domain)) is not None]
        except libvirt.libvirtError as error:
            raise InputError(f"libvirt of {self._host.name}: {error}") from error


def _told(domain: Any) -> Report | None:
    """The state of a domain in libvirt; None if it has ended meanwhile. Raises libvirtError."""
    import libvirt

    try:
        state, memory, _, cores, busy = domain.info()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise
    return {
        "name": domain.name(),
        "cores": cores,
        "memory": memory << 10,
        "state": "running" if state == libvirt.VIR_DOMAIN_RUNNING else "stopped",
        "cpu_seconds": busy / 1e9,
    }
