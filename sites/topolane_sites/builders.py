"""Builds virtual clusters, takes guests away, and takes clusters down."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
from topolane import files
from topolane._engine import InputError

from topolane_sites import overlay
from topolane_sites.movers import OutcomeUnknown, mover
from topolane_sites.qemu import QemuFolder, QemuMachine
from topolane_sites.remote import CommandFailed, command

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from topolane_sites.clusters import Boot, VirtualCluster
    from topolane_sites.model import Guest, Host

_NOT_ENDED = (CommandFailed, InputError, OSError, psutil.Error)
"""Why a guest was not ended."""
TCG_STEP = 256 << 10
"""QEMU before 9.0 loses writes of an emulated guest during a move if its memory is a multiple of this:
"physmem: Fix migration dirty bitmap coherency with TCG memory access".
"""


class LeftBehind(CommandFailed):
    """A cluster cannot be built, and guests that were started may still run."""

    def __init__(self, error: BaseException, guests: dict[str, str]) -> None:
        """error: why it cannot be built. guests: by name, host and why it was not ended."""
        super().__init__(str(error) or type(error).__name__)
        self.guests = guests


class Builder(Protocol):
    """Starts and ends guests of one driver. Raises CommandFailed."""

    def start(self, cluster: VirtualCluster, guest: Guest, boot: Boot, host: Host) -> None: ...

    def end(self, cluster: VirtualCluster, guest: Guest, host: Host) -> None: ...


def builder(driver: str) -> Builder:
    """The builder of a driver. Raises CommandFailed."""
    if driver == "libvirt":
        from topolane_sites.domains import LibvirtBuilder

        return LibvirtBuilder()
    return Qemu()


def located(cluster: VirtualCluster) -> dict[str, str]:
    """The present hosts of the guests that run. Raises CommandFailed."""
    found = {guest.name: _found(cluster, guest) for guest in cluster.guests}
    return {name: host for name, host in found.items() if host is not None}


def up(cluster: VirtualCluster, there: Collection[str], tell: Callable[[str], None]) -> None:
    """Builds the missing parts of a cluster; `there` names the guests that run already.

    Raises CommandFailed after taking down everything that it had built; LeftBehind if that failed for guests. Their
    network then stays.
    """
    started: list[Guest] = []
    try:
        for said in overlay.up(cluster.name, cluster.members, cluster.relay):
            tell(said)
        for guest, boot in zip(cluster.guests, cluster.boots):
            if guest.name in there:
                tell(f"{guest.name} is on {guest.host} already")
                continue
            host = cluster.host(str(guest.host))
            started.append(guest)
            builder(host.driver).start(cluster, guest, boot, host)
            tell(f"{guest.name} is on {host.name}")
    except BaseException as error:  # an interrupt takes down what was built, too
        left: dict[str, str] = {}
        for guest in started:
            host = cluster.host(str(guest.host))
            try:
                builder(host.driver).end(cluster, guest, host)
            except _NOT_ENDED as why:
                left[guest.name] = f"{guest.name} on {host.name} ({why})"
        if left:
            raise LeftBehind(error, left) from error
        if not there:
            overlay.down(cluster.name, cluster.members)
        raise


def take(cluster: VirtualCluster, guests: Sequence[Guest], tell: Callable[[str], None]) -> list[str]:
    """Ends some guests of a cluster, wherever they run, and removes their addresses from its network.

    Returns sentences on what could not be removed.
    """
    left = _end(cluster, guests, tell)
    for guest in guests:
        left += overlay.forget(cluster.name, cluster.members, mac(cluster.name, guest.name))
    return left


def down(cluster: VirtualCluster, tell: Callable[[str], None]) -> list[str]:
    """Takes a cluster down on every host. Returns sentences on what could not be removed."""
    return _end(cluster, cluster.guests, tell) + overlay.down(cluster.name, cluster.members)


def _end(cluster: VirtualCluster, guests: Sequence[Guest], tell: Callable[[str], None]) -> list[str]:
    left = []
    for guest in guests:
        for host in cluster.hosts:
            try:
                if _is_on(guest, host):
                    builder(host.driver).end(cluster, guest, host)
                    tell(f"{guest.name} is ended on {host.name}")
            except _NOT_ENDED as error:
                left.append(f"{guest.name} on {host.name}: {error}")
    return left


def mac(cluster: str, guest: str) -> str:
    """An address for a guest's card: locally administered, the same wherever it is built."""
    number = zlib.crc32(f"{cluster}/{guest}".encode())
    return "52:54:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))


def accelerator(run: tuple[str, ...], boot: Boot) -> str:
    """The accelerator that the guest requests; else `kvm` if the host has it, else `tcg`."""
    if boot.accelerator:
        return boot.accelerator
    try:
        command(run, ["test", "-w", "/dev/kvm"])
    except CommandFailed:
        return "tcg"
    return "kvm"


def append(cluster: VirtualCluster, guest: Guest, boot: Boot) -> str:
    """The kernel's command line."""
    return boot.append.format(name=guest.name, address=guest.address, prefix=cluster.prefix)


class Qemu:
    """Plain QEMU processes, in the folder that is the host's address."""

    def start(self, cluster: VirtualCluster, guest: Guest, boot: Boot, host: Host) -> None:
        """Starts one."""
        member = cluster.member(host.name)
        path = Path(host.address)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(path / "host.json", json.dumps({"run": member.run}), "host.json", 0o600)
        except OSError as error:
            raise CommandFailed(f"host {host.name}: {path}: {error.strerror}") from error
        except InputError as error:
            raise CommandFailed(f"host {host.name}: {error}") from error
        machine = self._machine(cluster, guest, boot, accelerator(member.run, boot))
        QemuFolder.of(host).start(machine)

    def end(self, cluster: VirtualCluster, guest: Guest, host: Host) -> None:
        """Ends one."""
        QemuFolder.of(host).end(guest.name)

    def _machine(self, cluster: VirtualCluster, guest: Guest, boot: Boot, accelerated: str) -> QemuMachine:
        memory = guest.memory
        if accelerated == "tcg" and memory % TCG_STEP == 0:
            memory -= 8 << 10
        words = ["-M", "q35", "-accel", "kvm" if accelerated == "kvm" else "tcg,tb-size=64"]
        words += ["-smp", str(guest.cores), "-m", f"{memory >> 10}k", "-display", "none"]
        words += ["-chardev", f"file,id=console,path={{folder}}/{guest.name}.console,append=on"]
        words += ["-serial", "chardev:console"]
        if boot.kernel:
            words += ["-kernel", str(Path(boot.kernel).resolve()), "-append", append(cluster, guest, boot)]
        if boot.initramfs:
            words += ["-initrd", str(Path(boot.initramfs).resolve())]
        if boot.image:
            words += ["-drive", f"file={Path(boot.image).resolve()},if=virtio"]
        bridge = overlay.bridge(cluster.name)
        return QemuMachine(guest.name, tuple(words), bridge, mac(cluster.name, guest.name), overlay.VXLAN_MTU)


def _is_on(guest: Guest, host: Host) -> bool:
    try:
        return bool(mover(host.driver).where(guest, (host,)))
    except OutcomeUnknown as error:
        raise CommandFailed(f"host {host.name}: {error}") from error


def _found(cluster: VirtualCluster, guest: Guest) -> str | None:
    """The host that the guest is on, or None."""
    return next((host.name for host in cluster.hosts if _is_on(guest, host)), None)
