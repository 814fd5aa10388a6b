"""The guests of a host, as its daemon finds them: QEMU processes of a folder, or domains of libvirt."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from topolane._engine import InputError

from topolane_sites.processor import of_guest
from topolane_sites.qemu import QemuFolder, tap
from topolane_sites.remote import CommandFailed

if TYPE_CHECKING:
    from topolane_sites.model import Host


@dataclass
class GuestRow:
    """A guest: what is reported of it, and counters that grow."""

    key: str
    """Of this guest on this host; another one if it is started again."""
    fields: dict[str, Any]
    seconds: float | None
    """Processor seconds that it has used."""
    bytes: dict[str, float]
    """Bytes that it has `sent` and `received` by its network cards; empty if that cannot be measured."""


class NoGuests:
    """The guests of a host whose driver does not tell them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def look(self) -> list[GuestRow]:
        """The guests that are there now. Raises InputError if they cannot be listed."""
        return []


class Processes(NoGuests):
    """The QEMU processes of a folder."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._seen: dict[str, dict[str, Any]] = {}
        """The last answer of each process, for processes that are alive but do not answer now."""
        self._processors: dict[int, dict[str, Any]] = {}
        """By process: what does not change while it lives."""

    def look(self) -> list[GuestRow]:
        """See `NoGuests.look`."""
        from topolane_sites.guest_monitor import guest_state

        if not Path(self._host.address).exists():
            return []
        try:
            folder = QemuFolder.of(self._host)
        except CommandFailed as error:
            raise InputError(str(error)) from error
        alive = {name: pid for name in folder.guests() if (pid := folder.pid(name)) is not None}
        self._seen = {name: seen for name, seen in self._seen.items() if name in alive}
        self._processors = {
            pid: processor for pid, processor in self._processors.items() if pid in alive.values()
        }
        for name, pid in alive.items():
            if (seen := asyncio.run(guest_state(folder, name, pid not in self._processors))) is not None:
                if "processor" in seen:
                    self._processors[pid] = seen.pop("processor")
                self._seen[name] = seen
        cards = psutil.net_io_counters(pernic=True)
        return [self._row(name, alive[name], seen, cards) for name, seen in self._seen.items()]

    def _row(self, name: str, pid: int, seen: dict[str, Any], cards: dict[str, Any]) -> GuestRow:
        fields = {"name": name, **seen, **self._processors.get(pid, {})}
        row = GuestRow(f"{name} {pid}", fields, None, {})
        try:
            process = psutil.Process(pid)
            used = process.cpu_times()
            fields["resident"] = float(process.memory_info().rss)
            row.seconds = used.user + used.system
        except psutil.Error:
            return row
        if (card := cards.get(tap(name))) is not None:
            # What the guest sends, its host receives.
            row.bytes = {"sent": card.bytes_recv, "received": card.bytes_sent}
        return row


class LibvirtDomains(NoGuests):
    """The domains of libvirt."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._processors: dict[str, dict[str, Any]] = {}
        """By a domain's key: what does not change while it lives."""

    def look(self) -> list[GuestRow]:
        """See `NoGuests.look`."""
        import libvirt

        from topolane_sites.domains import connection

        try:
            with connection(self._host) as made:
                found = [self._row(domain) for domain in made.listAllDomains()]
        except libvirt.libvirtError as error:
            raise InputError(f"libvirt of {self._host.name}: {error}") from error
        rows = [row for row in found if row is not None]
        alive = {row.key for row in rows}
        self._processors = {key: known for key, known in self._processors.items() if key in alive}
        return rows

    def _row(self, domain: Any) -> GuestRow | None:
        """A domain of libvirt; None if it has ended meanwhile. Raises libvirtError."""
        import libvirt

        try:
            key = f"{domain.name()} {domain.ID()}"
            state, memory, _, cores, busy = domain.info()
            fields = {
                "name": domain.name(),
                "cores": cores,
                "memory": memory << 10,
                "state": "running" if state == libvirt.VIR_DOMAIN_RUNNING else "stopped",
            }
            if key not in self._processors and (processor := _processor_of_domain(domain)) is not None:
                self._processors[key] = processor
            row = GuestRow(key, {**fields, **self._processors.get(key, {})}, busy / 1e9, {})
            row.bytes = _bytes_of_domain(domain, ET.fromstring(domain.XMLDesc()))
            return row
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return None
            raise


def _processor_of_domain(domain: Any) -> dict[str, Any] | None:
    """What QEMU says of a running domain's processor; None if it does not answer now. Raises libvirtError if the domain
    has ended.

    A domain that moves is not asked: libvirt would let this wait for the end of the move.
    """
    import libvirt
    import libvirt_qemu

    async def execute(command: str, arguments: dict[str, Any] | None = None) -> Any:
        asked = {"execute": command} | ({"arguments": arguments} if arguments else {})
        return json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps(asked), 0))["return"]

    arrives = [libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION]
    try:
        if domain.jobInfo()[0] != libvirt.VIR_DOMAIN_JOB_NONE or domain.state() == arrives:
            return None
        return asyncio.run(of_guest(execute))
    except (LookupError, ValueError):
        return None  # an error of QEMU's, or a machine without cores
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return None


def _bytes_of_domain(domain: Any, xml: ET.Element) -> dict[str, float]:
    import libvirt

    names = [target.get("dev", "") for target in xml.findall("devices/interface/target[@dev]")]
    try:
        # Received and sent, as the guest sees it.
        counters = [domain.interfaceStats(name) for name in names]
    except libvirt.libvirtError:
        return {}
    if not counters:
        return {}
    return {"sent": sum(one[4] for one in counters), "received": sum(one[0] for one in counters)}
