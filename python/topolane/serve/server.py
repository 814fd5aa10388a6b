"""Runs the page until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from topolane.mpi.address import Address, bound_to
from topolane.mpi.listener import ConnectionSlots, raise_descriptor_limit
from topolane.serve.api import create
from topolane.serve.gate import PageAccess
from topolane.serve.live import Live
from topolane.serve.source import SnapshotSource
from topolane.web.bounded import LOG, BoundedServer, Protocol, Seldom

PER_VIEWER = 3
"""Connections per viewer: one for its events, others for its questions."""
UNREAD_MILLISECONDS = 30_000
"""A connection whose viewer reads nothing for this time is ended."""


class _Protocol(Protocol):
    """HTTP that ends a connection if the client does not read what was sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
        super().connection_made(transport)


def serve(
    source: SnapshotSource,
    address: Address,
    access: PageAccess,
    *,
    viewers: int,
    policies: Sequence[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Serves the page until SIGTERM or SIGINT.

    policies: policies to compare with a live system. ready: called with the address when the page can be
    opened. Raises InputError if it cannot start.
    """
    raise_descriptor_limit()
    bound = bound_to(address)
    asyncio.run(_serve(Live(source, policies), bound, address, access, viewers, ready))


async def _serve(
    live: Live,
    bound: socket.socket,
    address: Address,
    access: PageAccess,
    viewers: int,
    ready: Callable[[str], None],
) -> None:
    stopping = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, stopping.set)
    await live.look()
    LOG.addFilter(Seldom())
    server = BoundedServer(
        _settings(create(live, access, viewers=viewers)), ConnectionSlots(PER_VIEWER * viewers)
    )
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    ready(_url(bound, address))
    try:
        await live.run(stopping)
    finally:
        live.ended.set()
        server.should_exit = True
        await serving
        if address.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address.path)


def _settings(app: ASGIApp) -> uvicorn.Config:
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        http=_Protocol,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    settings.load()
    return settings


def _url(bound: socket.socket, address: Address) -> str:
    if address.path is not None:
        return f"unix:{address.path}"
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
