"""Runs a manager: its HTTP interface and its loop, until a signal ends both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys

import uvicorn
from topolane._engine import InputError
from topolane.mpi.address import Address, bound_to
from topolane.mpi.limits import Limits
from topolane.mpi.listener import (
    ConnectionSlots,
    connections_possible,
    raise_descriptor_limit,
)
from topolane.web.bounded import LOG, BoundedServer, Protocol, Seldom

from topolane_sites.api import create
from topolane_sites.files import Config
from topolane_sites.manager import Manager
from topolane_sites.moderated_selector import ModeratedSelector
from topolane_sites.state import ManagerDatabase

HTTP_CONNECTIONS = 256
"""Most connections of the HTTP interface. Programs have the rest."""


def serve(config: Config, *, dry_run: bool = False) -> None:
    """Runs a manager until SIGTERM or SIGINT. Raises InputError if it cannot start."""
    state = ManagerDatabase(config.state)
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(ModeratedSelector())) as runner:
            runner.run(_serve(config, state, dry_run))
    finally:
        state.close()


async def _serve(config: Config, state: ManagerDatabase, dry_run: bool) -> None:
    stopping = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, stopping.set)
    raise_descriptor_limit()
    possible = connections_possible()
    http = ConnectionSlots(min(HTTP_CONNECTIONS, max(1, possible // 2)))
    programs = ConnectionSlots(max(1, min(Limits.connections, possible - http.most)))
    manager = Manager(config, state, dry_run=dry_run, say=_say, slots=programs)
    LOG.addFilter(Seldom())
    servers = [_server(manager, address, http) for address in config.listen]
    serving = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in servers]
    try:
        await manager.run(stopping)
    finally:
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        for address in config.listen:
            if address.path is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(address.path)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # no process reads it any more
        print(line, file=sys.stderr, flush=True)


def _server(
    manager: Manager, address: Address, slots: ConnectionSlots
) -> tuple[BoundedServer, socket.socket]:
    config = manager.config
    is_tcp = address.path is None
    app = create(
        manager,
        token=config.token if is_tcp else None,
        report_token=config.report_token,
        read_token=config.read_token,
        loopback=is_tcp and address.is_local,
    )
    try:
        settings = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            http=Protocol,
            ws="none",
            timeout_graceful_shutdown=3,
            ssl_certfile=config.certificate if is_tcp else None,
            ssl_keyfile=config.key if is_tcp else None,
        )
        settings.load()
    except OSError as error:
        raise InputError(
            f"certificate {config.certificate}, key {config.key}: {error.strerror or error}"
        ) from error
    return BoundedServer(settings, slots), bound_to(address)
