"""Live migration by libvirt, from daemon to daemon.

The daemons themselves ensure one running copy: the target starts only after the source has stopped, and a
move continues without the client that requested it. `settle` handles moves that are still running, and what a
daemon left behind that was killed during a move.

Memory is sent through the connection from the source's daemon to the target's URI. It is as private as that
connection: `qemu+ssh` and `qemu+tls` encrypt and authenticate it.
"""

from __future__ import annotations

import contextlib
import threading
import time
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import libvirt
from topolane.cluster.clients.domains import domain

from topolane_sites.domains import connection
from topolane_sites.movers import ENDS, GuestLost, MoveFailed, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host

SOUND = 9_000_000
"""The first QEMU version, as libvirt writes it, that can copy running emulated guests. Earlier versions lose
writes ("physmem: Fix migration dirty bitmap coherency with TCG memory access"), at memory sizes that
libvirt produces. There, emulated guests are paused while they are copied. Guests under KVM are never
paused.
"""
PARAVIRTUAL = "linux"
"""The type of a paravirtual guest of Xen, as libvirt writes it. Xen sees what it writes by shadow paging only, which
Debian leaves out; libvirt 9 never ends a move that fails for that. Such a guest is paused, too. Others are copied while they run.
"""
LOOK = 0.1
"""Seconds between checks of a running move."""
ENDING = 60.0
"""Seconds in which a move must end that is given up, or has no mover any more."""
RUNNING = libvirt.VIR_DOMAIN_RUNNING


class LibvirtMover:
    """Moves domains between daemons; a host's `address` is its URI."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`."""
        began, paused = time.monotonic(), False
        failed: list[Exception] = []
        try:
            with connection(source) as here, connection(source) as second, connection(target):
                found = domain(here, guest.name)
                paused = found is not None and found.state()[0] != RUNNING
                if found is None or paused:
                    raise MoveFailed(f"{guest.name} does not run on {source.name}")
                _copy(found, second.lookupByName(guest.name), target, progress, failed)
        except (libvirt.libvirtError, MoveFailed) as error:
            if paused:
                raise  # and stays paused: another user paused it
            failed.insert(0, error)
        if failed and self.settle(guest, source, target) == source.name:
            raise MoveFailed(f"{guest.name} stays at {source.name}: {failed[0]}") from failed[0]
        with contextlib.suppress(MoveFailed):
            progress(1.0)  # too late to be cancelled
        return _measured(guest, target) | {"seconds": time.monotonic() - began}

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """See `Mover.where`."""
        try:
            states = {host.name: _state(guest, host) for host in hosts}
        except libvirt.libvirtError as error:
            raise OutcomeUnknown(f"where {guest.name} is cannot be seen: {error}") from error
        found = [name for name, state in states.items() if state is not None]
        return tuple(sorted(found, key=lambda name: states[name] != RUNNING))

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """See `Mover.settle`."""
        deadline = time.monotonic() + ENDING
        try:
            while _state(guest, source) is not None and _state(guest, target) is not None:
                if time.monotonic() > deadline:
                    return _decide(guest, source, target)
                _cancel(guest, source)
                time.sleep(LOOK)
            host = target if _state(guest, target) is not None else source
            return _resumed(guest, host)
        except libvirt.libvirtError as error:
            raise OutcomeUnknown(f"what became of {guest.name} cannot be seen: {error}") from error


def _copy(
    found: libvirt.virDomain,
    second: libvirt.virDomain,
    target: Host,
    progress: Callable[[float], None],
    failed: list[Exception],
) -> None:
    """Moves, and reports the progress. If `progress` raises, or nothing more is copied for `ENDS`, the move is cancelled.

    second: the same domain on a second connection, which does not wait for the move.
    """

    def migrate() -> None:
        try:
            found.migrateToURI3(target.address, {}, _flags(found))
        except libvirt.libvirtError as error:
            failed.append(error)

    # libvirt cannot cancel every move, and the thread of one that never ends must not keep the process alive.
    moving = threading.Thread(target=migrate, daemon=True)
    moving.start()
    most, deadline = 0.0, time.monotonic() + ENDS
    try:
        while moving.is_alive():
            share = _copied(second)
            if share > most:
                most, deadline = share, time.monotonic() + ENDS
            if time.monotonic() > deadline:
                raise MoveFailed(f"nothing more was copied for {ENDS:g} s, and the move has not ended")
            progress(share)
            moving.join(LOOK)
    except BaseException:  # an interrupt cancels the move, too
        deadline = max(deadline, time.monotonic() + ENDING)
        while moving.is_alive() and time.monotonic() < deadline:
            _abort(second)
            moving.join(LOOK)
        raise


def _flags(found: libvirt.virDomain) -> int:
    # QEMU opens no port for a tunnelled move.
    flags: int = libvirt.VIR_MIGRATE_PEER2PEER | libvirt.VIR_MIGRATE_TUNNELLED
    paused = is_paused(found.XMLDesc(), found.connect().getVersion())
    return flags if paused else flags | libvirt.VIR_MIGRATE_LIVE


def is_paused(xml: str, version: int) -> bool:
    """Whether the guest of a domain has to be paused while it is copied. version: of the hypervisor, as libvirt has it."""
    described = ET.fromstring(xml)
    if described.get("type") == "xen":
        return described.findtext("os/type") == PARAVIRTUAL
    return described.get("type") == "qemu" and version < SOUND


def _copied(found: libvirt.virDomain) -> float:
    try:
        stats = found.jobStats()
    except libvirt.libvirtError:
        return 0.0
    total = stats.get("memory_total", 0)
    return min(1.0, max(0.0, 1 - stats.get("memory_remaining", 0) / total)) if total else 0.0


def _abort(found: libvirt.virDomain) -> None:
    try:
        found.abortJob()
    except libvirt.libvirtError:
        return  # it has ended by itself


def _cancel(guest: Guest, source: Host) -> None:
    """Cancels a running move, if that is still possible."""
    with connection(source) as here:
        if (found := domain(here, guest.name)) is not None:
            _abort(found)


def _state(guest: Guest, host: Host) -> int | None:
    """The state of the guest's domain; None if there is no domain. Raises libvirtError if the daemon does not
    answer.
    """
    with connection(host) as made:
        found = domain(made, guest.name)
        try:
            return None if found is None else int(found.state()[0])
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return None  # it has gone since
            raise


def _decide(guest: Guest, source: Host, target: Host) -> str:
    """Chooses between two copies when no move is running: the running one, else the source, which is
    complete.
    """
    kept, other = (target, source) if _state(guest, target) == RUNNING else (source, target)
    with connection(other) as made:
        if (found := domain(made, guest.name)) is not None:
            found.destroy()
    return _resumed(guest, kept)


def _resumed(guest: Guest, host: Host) -> str:
    """Resumes the guest if the daemon does not: after a move, a daemon resumes it at a time of its own."""
    deadline = time.monotonic() + ENDING
    while (state := _state(guest, host)) != RUNNING:
        if state is None:
            raise GuestLost(f"{guest.name} is known to no daemon any more")
        if time.monotonic() > deadline:
            raise GuestLost(f"{guest.name} is on {host.name} and cannot be made to run")
        with connection(host) as made, contextlib.suppress(libvirt.libvirtError):
            made.lookupByName(guest.name).resume()
        time.sleep(LOOK)
    return host.name


def _measured(guest: Guest, target: Host) -> dict[str, float]:
    """The measurements of the target's daemon; empty if it has none."""
    try:
        with connection(target) as made:
            found = domain(made, guest.name)
            stats = found.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED) if found is not None else {}
    except libvirt.libvirtError:
        stats = {}
    if not stats:
        return {}  # as Xen's
    return {"downtime": stats.get("downtime", 0) / 1000, "bytes": float(stats.get("memory_processed", 0))}
