"""The guests of a host, as its daemon finds them: QEMU processes of a folder, or domains of libvirt."""

from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from topolane._engine import InputError
from topolane.sites.processor import instructions
from topolane.sites.qemu import Folder, tap
from topolane.sites.remote import CommandFailed

if TYPE_CHECKING:
    from topolane.sites.model import Host


@dataclass
class Row:
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

    def look(self) -> list[Row]:
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

    def look(self) -> list[Row]:
        """See `NoGuests.look`."""
        from topolane.sites.guest_monitor import guest_state

        if not Path(self._host.address).exists():
            return []
        try:
            folder = Folder.of(self._host)
        except CommandFailed as error:
            raise InputError(str(error)) from error
        alive = {name: pid for name in folder.guests() if (pid := folder.pid(name)) is not None}
        self._seen = {name: seen for name, seen in self._seen.items() if name in alive}
        self._processors = {pid: told for pid, told in self._processors.items() if pid in alive.values()}
        for name, pid in alive.items():
            if (seen := asyncio.run(guest_state(folder, name, pid not in self._processors))) is not None:
                if "processor" in seen:
                    self._processors[pid] = seen.pop("processor")
                self._seen[name] = seen
        cards = psutil.net_io_counters(pernic=True)
        return [self._row(name, alive[name], seen, cards) for name, seen in self._seen.items()]

    def _row(self, name: str, pid: int, seen: dict[str, Any], cards: dict[str, Any]) -> Row:
        fields = {"name": name, **seen, **self._processors.get(pid, {})}
        row = Row(f"{name} {pid}", fields, None, {})
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


class Domains(NoGuests):
    """The domains of libvirt."""

    def look(self) -> list[Row]:
        """See `NoGuests.look`."""
        import libvirt

        from topolane.sites.domains import connection

        try:
            with connection(self._host) as made:
                return [row for domain in made.listAllDomains() if (row := _domain(domain)) is not None]
        except libvirt.libvirtError as error:
            raise InputError(f"libvirt of {self._host.name}: {error}") from error


def _domain(domain: Any) -> Row | None:
    """A domain of libvirt; None if it has ended meanwhile. Raises libvirtError."""
    import libvirt

    try:
        state, memory, _, cores, busy = domain.info()
        xml = ET.fromstring(domain.XMLDesc())
        fields = {
            "name": domain.name(),
            "cores": cores,
            "memory": memory << 10,
            "state": "running" if state == libvirt.VIR_DOMAIN_RUNNING else "stopped",
            "features": _features_of_domain(domain.connect(), xml),
        }
        return Row(f"{domain.name()} {domain.ID()}", fields, busy / 1e9, _bytes_of_domain(domain, xml))
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise


def _features_of_domain(connection: Any, xml: ET.Element) -> tuple[str, ...]:
    """The instruction sets of a domain; empty for an emulated one and where libvirt does not say them.

    A domain with the host's processor has what KVM gives it here, which can be less than the processor has. libvirt
    does not write it into the domain's XML (`--update-cpu` neither), but describes it as the hypervisor's host-model.
    """
    import libvirt

    own, system = xml.find("cpu"), xml.find("os/type")
    if xml.get("type") != "kvm" or own is None:
        return ()
    arch = system.get("arch", "x86_64") if system is not None else "x86_64"
    machine = system.get("machine") if system is not None else None
    hypervisor = (xml.findtext("devices/emulator"), arch, machine, "kvm")
    try:
        model: ET.Element | None = own
        if own.get("mode") in ("host-passthrough", "maximum"):
            told = ET.fromstring(connection.getDomainCapabilities(*hypervisor))
            model = told.find("cpu/mode[@name='host-model'][@supported='yes']")
        if model is None:
            return ()
        # libvirt expands descriptions of hosts: those of guests have attributes that it refuses there.
        plain = ET.Element("cpu")
        ET.SubElement(plain, "arch").text = arch
        ET.SubElement(plain, "model").text = model.findtext("model")
        plain.extend(model.findall("feature"))
        text = connection.baselineHypervisorCPU(
            *hypervisor,
            [ET.tostring(plain, encoding="unicode")],
            libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES,
        )
    except libvirt.libvirtError:
        return ()
    has = {one.get("name", ""): one.get("policy") for one in ET.fromstring(text).findall("feature")}
    # `optional` leaves it to the host, so it does not change what is known.
    own_features = (one for one in own.findall("feature") if one.get("policy") != "optional")
    has |= {one.get("name", ""): one.get("policy") for one in own_features}
    return instructions(name for name, policy in has.items() if policy not in ("disable", "forbid"))


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
