"""Accepts connections without running out of file descriptors, however many clients connect.

A process may hold a limited number of descriptors (RLIMIT_NOFILE). A listener that accepts until none is left can
neither serve nor open a file any more, and its event loop spins. So all listeners of a process share `Slots`: a fixed
number of connections. A connection is *anonymous* until it has said what it wants (a request's head, a HELLO) and
*known* from then on. When the slots are full, a new connection takes the place of the oldest anonymous one.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Callable

MOST = 100_000
"""Connections of one process, where its limit of descriptors is higher."""
RESERVED = 64
"""Descriptors that connections never take: databases, sockets of drivers, files, pipes of commands."""
HANDSHAKE = 10.0
"""Seconds a TLS handshake may take."""
PAUSE = 0.2
"""Seconds to wait after the system refused to accept a connection."""


def connections_possible() -> int:
    """How many connections this process can hold once `raise_descriptor_limit` has been called."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if hard == resource.RLIM_INFINITY else min(MOST, max(8, hard - RESERVED))


def raise_descriptor_limit() -> None:
    """Raises this process's soft limit of file descriptors to the hard one. Processes started later inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Slot:
    """The place of one connection. `anonymous` and `known` say which it is; `free` gives the place back."""

    def __init__(self, slots: Slots, end: Callable[[], object]) -> None:
        self._slots = slots
        self.end = end
        """Ends the connection at once."""

    def anonymous(self) -> None:
        """It may be ended for a newer connection from now on."""
        self._slots._anonymous[self] = None

    def known(self) -> None:
        """It keeps its place."""
        self._slots._anonymous.pop(self, None)

    def free(self) -> None:
        """The connection has ended. Calling it twice does nothing."""
        self._slots._taken.discard(self)
        self._slots._anonymous.pop(self, None)


class Slots:
    """Places for at most `most` connections of any number of listeners."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: set[Slot] = set()
        self._anonymous: dict[Slot, None] = {}
        """Oldest first."""

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, end: Callable[[], object]) -> Slot | None:
        """A place for a new, anonymous connection that `end` ends; None if all places have known connections."""
        if len(self._taken) >= self.most:
            oldest = next(iter(self._anonymous), None)
            if oldest is None:
                return None
            oldest.free()
            oldest.end()
        slot = Slot(self, end)
        self._taken.add(slot)
        slot.anonymous()
        return slot


class Listener:
    """Accepts the connections of one socket, within the slots, until it is closed. Belongs to one event loop.

    made: makes the protocol of a connection. It must call `slot.known()` when the connection has said what it wants,
    and `slot.free()` in `connection_lost`.
    failed: called with a sentence when the system refuses connections; once until it accepts again.
    """

    def __init__(
        self,
        bound: socket.socket,
        slots: Slots,
        made: Callable[[Slot], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """bound: a bound socket; the listener owns it from now on."""
        bound.setblocking(False)
        bound.listen(1024)
        self._socket, self._slots, self._made, self._tls, self._failed = bound, slots, made, tls, failed
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accepts no more; the connections there are go on."""
        self._accepting.cancel()
        for task in self._opening:
            task.cancel()
        self._socket.close()

    async def wait_closed(self) -> None:
        """Waits until nothing is being accepted."""
        await asyncio.gather(self._accepting, *self._opening, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        refused = False
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                if not refused:
                    self._failed(f"connections cannot be accepted: {error.strerror}; tried again")
                refused = True
                await asyncio.sleep(PAUSE)
                continue
            refused = False
            task = loop.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, connection: socket.socket) -> None:
        opening = asyncio.current_task()
        slot = self._slots.take(opening.cancel if opening else connection.close)
        if slot is None:
            connection.close()
            return

        def protocol() -> asyncio.Protocol:
            return self._made(slot)

        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):  # asyncio has closed the connection
            slot.free()
        else:
            slot.end = transport.abort
