"""Live migration by libvirt, from daemon to daemon.

The daemons themselves keep to one running copy: the target's lets go only after the source's has stopped, and a
move goes on when whoever asked for it is gone. What is left to `settle` is a move that is still under way, and
what a daemon that was killed in the midst of one left behind.

Memory is sent through the connection that the source's daemon makes to the target's URI: it is as private as that
connection, so encrypted and authenticated with `qemu+ssh` and `qemu+tls`.
"""

from __future__ import annotations

import contextlib
import threading
import time
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import libvirt

from topolane.live.clients.domains import domain
from topolane.sites.domains import connection
from topolane.sites.movers import GuestLost, MoveFailed, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane.sites.model import Guest, Host

SOUND = 9_000_000
"""QEMU's version, as libvirt writes it, from which emulated guests may run while they are copied: before, writes
were lost ("physmem: Fix migration dirty bitmap coherency with TCG memory access"), and libvirt rounds memory to sizes
that are hit. Such guests stand still for their copying; those under KVM never need."""
LOOK = 0.1
"""Seconds between looks at a move under way."""
ENDING = 60.0
"""Seconds that a move which was cancelled, or lost its mover, has to end in."""
RUNNING = libvirt.VIR_DOMAIN_RUNNING


class Libvirt:
    """Moves domains between daemons; a host's `address` is its URI."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`."""
        began, paused = time.monotonic(), False
        failed: list[Exception] = []
        try:
            with connection(source) as here, connection(source) as beside, connection(target):
                found = domain(here, guest.name)
                paused = found is not None and found.state()[0] != RUNNING
                if found is None or paused:
                    raise MoveFailed(f"{guest.name} does not run on {source.name}")
                _copy(found, beside.lookupByName(guest.name), target, progress, failed)
        except (libvirt.libvirtError, MoveFailed) as error:
            if paused:
                raise  # and stays so: it was somebody else who paused it
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
    beside: libvirt.virDomain,
    target: Host,
    progress: Callable[[float], None],
    failed: list[Exception],
) -> None:
    """Moves, and tells the progress the while; a `progress` that raises cancels.

    beside: the same domain by a connection of its own, which does not wait for the move.
    """

    def migrate() -> None:
        try:
            found.migrateToURI3(target.address, {}, _flags(found))
        except libvirt.libvirtError as error:
            failed.append(error)

    moving = threading.Thread(target=migrate)
    moving.start()
    try:
        while moving.is_alive():
            progress(_copied(beside))
            moving.join(LOOK)
    except BaseException:
        while moving.is_alive():
            _abort(beside)
            moving.join(LOOK)
        raise


def _flags(found: libvirt.virDomain) -> int:
    emulated = ET.fromstring(found.XMLDesc()).get("type") == "qemu"
    standing = emulated and found.connect().getVersion() < SOUND
    # QEMU opens no port for a tunnelled move.
    flags: int = libvirt.VIR_MIGRATE_PEER2PEER | libvirt.VIR_MIGRATE_TUNNELLED
    return flags if standing else flags | libvirt.VIR_MIGRATE_LIVE


def _copied(found: libvirt.virDomain) -> float:
    try:
        told = found.jobStats()
    except libvirt.libvirtError:
        return 0.0
    total = told.get("memory_total", 0)
    return min(1.0, max(0.0, 1 - told.get("memory_remaining", 0) / total)) if total else 0.0


def _abort(found: libvirt.virDomain) -> None:
    try:
        found.abortJob()
    except libvirt.libvirtError:
        return  # it has ended by itself


def _cancel(guest: Guest, source: Host) -> None:
    """Ends a move under way, as far as it can still be ended."""
    with connection(source) as here:
        if (found := domain(here, guest.name)) is not None:
            _abort(found)


def _state(guest: Guest, host: Host) -> int | None:
    """Of the guest's domain, None where there is none. Raises libvirtError where the daemon does not answer."""
    with connection(host) as made:
        found = domain(made, guest.name)
        try:
            return None if found is None else int(found.state()[0])
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return None  # it has gone since
            raise


def _decide(guest: Guest, source: Host, target: Host) -> str:
    """Of two copies that nobody is moving any more, the one that runs; else the source's, which was whole."""
    kept, other = (target, source) if _state(guest, target) == RUNNING else (source, target)
    with connection(other) as made:
        if (found := domain(made, guest.name)) is not None:
            found.destroy()
    return _resumed(guest, kept)


def _resumed(guest: Guest, host: Host) -> str:
    """Lets it run where it does not by itself: a daemon resumes one whose move has ended, at a moment of its own."""
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
    """What the target's daemon measured; nothing where it kept nothing."""
    try:
        with connection(target) as made:
            found = domain(made, guest.name)
            told = found.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED) if found is not None else {}
    except libvirt.libvirtError:
        told = {}
    return {"downtime": told.get("downtime", 0) / 1000, "bytes": float(told.get("memory_processed", 0))}
