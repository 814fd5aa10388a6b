"""Runs a manager: its HTTP interface and its loop, until a signal ends both."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from topolane._engine import InputError
from topolane.mpi.address import Address, bound_to
from topolane.mpi.limits import Limits
from topolane.mpi.listener import (
    Listener,
    Slot,
    Slots,
    connections_possible,
    raise_descriptor_limit,
)
from topolane.sites.api import create
from topolane.sites.files import Config
from topolane.sites.manager import Manager
from topolane.sites.moderated_selector import ModeratedSelector
from topolane.sites.state import State

HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must arrive, after the connection or the last answer."""
HTTP_CONNECTIONS = 256
"""Most connections of the HTTP interface. Programs have the rest."""
LOG_LINES = 10
LOG_SECONDS = 10.0
"""Most log lines of the HTTP server about connections: this many in this many seconds."""


class _Protocol(H11Protocol):
    """HTTP on a slot. The connection is anonymous while no request is being answered."""

    def __init__(self, slot: Slot, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self._slot = slot
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._slot.known()
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._slot.anonymous()
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._slot.free()
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    """A server that does not handle signals, and accepts connections within the slots."""

    def __init__(self, config: uvicorn.Config, slots: Slots) -> None:
        super().__init__(config)
        self._slots = slots

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()

        def made(slot: Slot) -> _Protocol:
            return _Protocol(slot, self.config, self.server_state)

        listeners: list[Any] = [
            Listener(bound, self._slots, made, tls=self.config.ssl, failed=_LOG.error)
            for bound in sockets or ()
        ]
        self.servers = listeners
        self.started = True


class _Seldom(logging.Filter):
    """A log filter that passes a limited number of lines per period, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self._lines = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._began > LOG_SECONDS:
            left_out = self._lines - LOG_LINES
            if left_out > 0:
                record.msg, record.args = f"{record.getMessage()} ({left_out} lines before are left out)", ()
            self._began, self._lines = now, 0
        self._lines += 1
        return self._lines <= LOG_LINES


_LOG = logging.getLogger("uvicorn.error")


def serve(config: Config, *, dry_run: bool = False) -> None:
    """Runs a manager until SIGTERM or SIGINT. Raises InputError if it cannot start."""
    state = State(config.state)
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(ModeratedSelector())) as runner:
            runner.run(_serve(config, state, dry_run))
    finally:
        state.close()


async def _serve(config: Config, state: State, dry_run: bool) -> None:
    stopping = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, stopping.set)
    raise_descriptor_limit()
    possible = connections_possible()
    http = Slots(min(HTTP_CONNECTIONS, max(1, possible // 2)))
    programs = Slots(max(1, min(Limits.connections, possible - http.most)))
    manager = Manager(config, state, dry_run=dry_run, say=_say, slots=programs)
    _LOG.addFilter(_Seldom())
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
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(line, file=sys.stderr, flush=True)


def _server(manager: Manager, address: Address, slots: Slots) -> tuple[_Server, socket.socket]:
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
            http=_Protocol,
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
    return _Server(settings, slots), bound_to(address)
