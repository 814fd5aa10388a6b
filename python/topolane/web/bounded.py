"""A uvicorn server that limits its connections by slots and ends those that do not send a request in time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from topolane.mpi.listener import ConnectionSlots, Listener, Slot

HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must arrive, from the connection or the last answer on."""
LOG_LINES = 10
LOG_SECONDS = 10.0
"""Seconds of a period in which only a few log lines about connections are written."""
LOG = logging.getLogger("uvicorn.error")


class Protocol(H11Protocol):
    """The HTTP protocol of a connection in a slot. The connection is anonymous while no request is being
    answered.
    """

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


class BoundedServer(uvicorn.Server):
    """A server that handles no signals and accepts connections within the slots."""

    def __init__(self, config: uvicorn.Config, slots: ConnectionSlots) -> None:
        super().__init__(config)
        self._slots = slots

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()

        made_of: type[Protocol] = self.config.http_protocol_class  # type: ignore[assignment]

        def made(slot: Slot) -> Protocol:
            return made_of(slot, self.config, self.server_state)

        listeners: list[Any] = [
            Listener(bound, self._slots, made, tls=self.config.ssl, failed=LOG.error)
            for bound in sockets or ()
        ]
        self.servers = listeners
        self.started = True


class Seldom(logging.Filter):
    """A log filter that passes a limited number of lines per period and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self._lines = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._began > LOG_SECONDS:
            dropped = self._lines - LOG_LINES
            if dropped > 0:
                record.msg, record.args = f"{record.getMessage()} ({dropped} earlier lines are dropped)", ()
            self._began, self._lines = now, 0
        self._lines += 1
        return self._lines <= LOG_LINES
