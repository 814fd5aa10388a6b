"""The daemon in a guest: reports what runs there, and relays the reports of its ranks to the manager."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from topolane._engine import InputError
from topolane.mpi.address import remove_dead_socket

MOST_PROCESSES = 20
"""How many processes to report: the busiest ones, and as many ranks."""
RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""What MPICH and Open MPI set in the environment of every rank."""
PIECE = 64 << 10
"""Bytes relayed at a time."""
MOST_RANKS = 256
"""Connections relayed at a time: any user of the guest may open them, and each takes two descriptors."""


SLOW_START_AFTER_IDLE = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")


def keep_windows() -> bool:
    """Lets TCP connections that were idle send as much at once as before; whether the system allows it.

    Otherwise a collective after a second of computing takes several round trips over a WAN instead of half of one.
    """
    try:
        SLOW_START_AFTER_IDLE.write_text("0\n")
    except OSError:
        return False
    return True


class GuestWatch:
    """A guest, as its daemon sees it."""

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}

    def look(self) -> dict[str, Any]:
        """Its name, processors, memory in bytes, the processes that are busiest, and those that are ranks of MPI, watched or
        not. A daemon that is not root sees only the ranks of its own user.
        """
        processes = []
        ranks = []
        alive = {process.pid: self._known.get(process.pid, process) for process in psutil.process_iter()}
        self._known = alive
        for process in alive.values():
            with contextlib.suppress(psutil.Error):
                processes.append(
                    {
                        "pid": process.pid,
                        "name": process.name(),
                        "cpu": process.cpu_percent() / 100,
                        "resident": process.memory_info().rss,
                    }
                )
                if any(key in process.environ() for key in RANK):
                    ranks.append({"pid": process.pid, "name": process.name()})
        processes.sort(key=lambda one: -one["cpu"])
        return {
            "host": socket.gethostname(),
            "cores": psutil.cpu_count() or 1,
            "memory": psutil.virtual_memory().total,
            "memory_used": psutil.virtual_memory().used,
            "load": psutil.getloadavg()[0],
            "up": time.time() - psutil.boot_time(),
            "processes": processes[:MOST_PROCESSES],
            "ranks": ranks[:MOST_PROCESSES],
        }


async def relay(path: str, host: str, port: int) -> asyncio.Server:
    """Listens on a Unix socket, and relays bytes between its clients and the manager.

    If the manager cannot be reached, the connection ends. The rank keeps its data and connects again. Raises
    InputError if it cannot listen on the path.
    """

    relayed = 0

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal relayed
        if relayed >= MOST_RANKS:
            writer.close()
            return
        relayed += 1
        try:
            await _joined(reader, writer, host, port)
        finally:
            relayed -= 1
            writer.close()

    try:
        remove_dead_socket(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        server = await asyncio.start_unix_server(through, path, limit=PIECE)
        os.chmod(path, 0o666)  # ranks run as any user; the token is what lets them in
    except OSError as error:
        raise InputError(f"{path}: cannot be listened on: {error.strerror}") from error
    return server


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(host, port)
    except OSError:
        return
    pumps = [asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))]
    try:
        # Either end that closes, closes both: half a connection is of no use to the protocol.
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
        await writer.drain()


def serve(path: str, host: str, port: int) -> None:
    """Relays for ever."""

    async def run() -> None:
        server = await relay(path, host, port)
        print(f"ranks may report to unix:{path}", file=sys.stderr, flush=True)
        async with server:
            await server.serve_forever()

    asyncio.run(run())
