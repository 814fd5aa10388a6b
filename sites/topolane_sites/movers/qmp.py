"""Live migration between QEMU processes, by QMP.

The target waits after all memory has arrived, and the mover lets it run. So there is one moment of decision.
It is recorded in a file at the target (`handed-over`) before the target continues; the source ends only after
that. For an unfinished move, `settle` finds from the two processes what is left to do:

    target               source               what is done
    runs                 any                  the source is ended: the move is done
    complete, waits      runs (copying broke  the target is ended: it stays
                         at the very end)
    complete, waits      stopped or dead      it goes on, the source is ended: the move is done
    still receives       dead                 lost
    still receives       any other            the copying is cancelled, the target ended: it stays
    gone, never let go   runs or is stopped   it goes on at the source
    gone, was let go     stopped or dead      lost: its memory at the source is of before

Memory goes through a socket pair: the mover creates it and passes one end to each process over QMP. It has no
address, so no other process can read it, change it or connect first, and no network carries it. QEMU's own
TLS is not used, because its handshake blocks the whole process (seen with QEMU 7.2): a silent peer would stop
the guest.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

from qemu.qmp import QMPClient
from topolane.cluster.clients.qmp import ANSWER, SILENT, ask, monitor

from topolane_sites.movers import GuestLost, MoveFailed, OutcomeUnknown
from topolane_sites.qemu import QemuFolder
from topolane_sites.remote import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host

STALLED = 30.0
"""Seconds without progress after which a copy is given up."""
LOOK = 0.05
"""Seconds between checks of a running copy."""
STREAM = "topolane-move"
"""QEMU's name for its end of the connection that memory goes through."""


class QmpMover:
    """Moves guests of `topolane_sites.qemu`."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`."""
        began = time.monotonic()
        try:
            here, there = QemuFolder.of(source), QemuFolder.of(target)
            if there.pid(guest.name) is not None:
                raise MoveFailed(f"{guest.name} is at {target.name} already")
            if asyncio.run(_status(here, guest.name)) == "paused":
                raise MoveFailed(
                    f"{guest.name} is paused at {source.name} by another client, and stays paused"
                )
            there.start(here.machine(guest.name), incoming=True)
        except CommandFailed as error:
            raise MoveFailed(f"{guest.name} cannot move to {target.name}: {error}") from error
        try:
            measured = asyncio.run(_copy(here, there, guest.name, progress))
        except (*SILENT, CommandFailed, MoveFailed) as error:
            if self.settle(guest, source, target) == source.name:
                why = str(error) or type(error).__name__
                raise MoveFailed(f"{guest.name} stays at {source.name}: {why}") from error
            measured = {}
        return measured | {"seconds": time.monotonic() - began}

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """See `Mover.where`."""
        states = {}
        for host in hosts:
            with contextlib.suppress(CommandFailed):
                states[host.name] = asyncio.run(_status(QemuFolder.of(host), guest.name))
        found = [name for name, status in states.items() if status != "dead"]
        return tuple(sorted(found, key=lambda name: states[name] != "running"))

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """See `Mover.settle`."""
        try:
            here, there = QemuFolder.of(source), QemuFolder.of(target)
            moved = asyncio.run(_settle(here, there, guest.name))
        except (*SILENT, CommandFailed) as error:
            raise OutcomeUnknown(f"what became of {guest.name} cannot be seen: {error}") from error
        return target.name if moved else source.name


def _monitor(folder: QemuFolder, guest: str) -> contextlib.AbstractAsyncContextManager[QMPClient]:
    return monitor(str(folder.file(guest, "qmp")))


async def _status(folder: QemuFolder, guest: str) -> str:
    """QEMU's word for a guest's state; `dead`; or `silent` if it is alive but does not answer."""
    if folder.pid(guest) is None:
        return "dead"
    try:
        async with _monitor(folder, guest) as client:
            status: str = (await ask(client, "query-status"))["status"]
            return status
    except SILENT:
        return "silent" if folder.pid(guest) is not None else "dead"


async def _copy(
    here: QemuFolder, there: QemuFolder, guest: str, progress: Callable[[float], None]
) -> dict[str, float]:
    """Copies the memory and hands over. After any exception, `_settle` restores a valid state."""
    async with _monitor(here, guest) as source, _monitor(there, guest) as target:
        if (await ask(source, "query-status"))["status"] != "running":
            raise MoveFailed("it does not run")
        # Postcopy would leave memory at both ends, and a broken link would lose the guest.
        off = [{"capability": "postcopy-ram", "state": False}]
        for client in (source, target):
            await ask(client, "migrate-set-capabilities", capabilities=off)
        await _connect(source, target)
        await ask(target, "migrate-incoming", uri=f"fd:{STREAM}")
        await ask(source, "migrate", uri=f"fd:{STREAM}")
        info = await _copied(source, progress)
        stopped = time.monotonic() - info["downtime"] / 1000
        await _until(target, "paused")
        await _hand_over(there, guest, target)
        downtime = time.monotonic() - stopped
    here.end(guest)
    there.file(guest, "handed-over").unlink(missing_ok=True)
    with contextlib.suppress(MoveFailed):
        progress(1.0)  # too late to be cancelled
    return {"downtime": downtime, "bytes": float(info["ram"]["transferred"])}


async def _connect(source: QMPClient, target: QMPClient) -> None:
    """Gives each process one end of a new socket pair, and closes the rest of an older one."""
    ends = socket.socketpair()
    with ends[0], ends[1]:
        for client, end in zip((source, target), ends):
            client.send_fd_scm(end.fileno())
            await ask(client, "getfd", fdname=STREAM)


async def _copied(source: QMPClient, progress: Callable[[float], None]) -> dict[str, Any]:
    """Waits until all memory has been copied."""
    most, moved_on = 0, time.monotonic()
    while True:
        info: dict[str, Any] = await ask(source, "query-migrate")
        if info["status"] == "completed":
            return info
        if info["status"] in ("failed", "cancelled", "cancelling"):
            raise MoveFailed(f"copying {info['status']}: {info.get('error-desc', 'no reason given')}")
        if ram := info.get("ram"):
            progress(min(1.0, 1 - ram["remaining"] / ram["total"]) if ram["total"] else 0.0)
            if ram["transferred"] > most:
                most, moved_on = ram["transferred"], time.monotonic()
        if time.monotonic() - moved_on > STALLED:
            raise MoveFailed(f"no byte was copied for {STALLED:g} s")
        await asyncio.sleep(LOOK)


async def _until(client: QMPClient, wanted: str) -> None:
    deadline = time.monotonic() + ANSWER
    while (status := (await ask(client, "query-status"))["status"]) != wanted:
        if time.monotonic() > deadline:
            raise MoveFailed(f"it is {status}, not {wanted}, after {ANSWER:g} s")
        await asyncio.sleep(LOOK / 5)


async def _hand_over(there: QemuFolder, guest: str, target: QMPClient) -> None:
    there.file(guest, "handed-over").write_text("")
    await ask(target, "cont")


async def _settle(here: QemuFolder, there: QemuFolder, guest: str) -> bool:
    """Settles a move. Returns whether the guest runs on the target. Raises GuestLost."""
    if await _status(there, guest) == "inmigrate" and await _status(here, guest) != "dead":
        await _cancel(here, there, guest)
    at_source, at_target = await _status(here, guest), await _status(there, guest)
    let_go = there.file(guest, "handed-over").exists()
    if at_target == "paused" and (let_go or at_source != "running"):
        if at_source == "silent":
            here.end(guest)  # it may have stopped or not: it must have before the other goes on
        async with _monitor(there, guest) as target:
            await _hand_over(there, guest, target)
        at_target = "running"
    if at_target == "running" or (at_target == "silent" and let_go):
        here.end(guest)
        there.file(guest, "handed-over").unlink(missing_ok=True)
        return True
    there.end(guest)
    if let_go or at_source == "dead":
        here.end(guest)
        raise GuestLost(f"{guest} {'died at its target' if let_go else 'ended at both hosts while it moved'}")
    await _go_on(here, guest)
    return False


async def _go_on(here: QemuFolder, guest: str) -> None:
    """Resumes the source, if it does not run. A source that does not answer resumes when the copying fails."""
    deadline = time.monotonic() + ANSWER
    while (status := await _status(here, guest)) not in ("running", "silent"):
        if status == "dead" or time.monotonic() > deadline:
            raise GuestLost(f"{guest} is {status} at its source and does not go on")
        if status != "finish-migrate":
            async with _monitor(here, guest) as source:
                await ask(source, "cont")
        await asyncio.sleep(LOOK)


async def _cancel(here: QemuFolder, there: QemuFolder, guest: str) -> None:
    """Cancels a running copy. A copy that is already complete stays complete."""
    deadline = time.monotonic() + ANSWER
    with contextlib.suppress(*SILENT):
        async with _monitor(here, guest) as source:
            await ask(source, "migrate_cancel")
            while (await ask(source, "query-migrate")).get("status") in ("cancelling", "active", "device"):
                await asyncio.sleep(LOOK)
    # A source that does not answer cannot be cancelled: it may complete, and must not be cut off then.
    while await _status(there, guest) == "inmigrate" and await _status(here, guest) == "silent":
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(LOOK)
