"""Accepts connections without running out of file descriptors, however many clients connect.

A process may hold a limited number of descriptors (RLIMIT_NOFILE). A listener that accepts until none is left
can neither serve nor open a file any more, and its event loop spins. So all listeners of a process share
`ConnectionSlots`: a fixed number of connections. A connection is *anonymous* until it has sent a request's head or a
HELLO, and *known* from then on. When the slots are full, a new connection replaces the oldest anonymous one.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Callable

MOST = 100_000
"""The most connections of one process, even if its limit of descriptors is higher."""
RESERVED = 64
"""Descriptors that connections never take, reserved for databases, sockets of drivers, files, and pipes of
commands.
"""
HANDSHAKE = 10.0
"""Seconds a TLS handshake may take."""
PAUSE = 0.2
"""Seconds to wait after the system refused to accept a connection."""


def connections_possible() -> int:
    """The number of connections that this process can hold after `raise_descriptor_limit`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if hard == resource.RLIM_INFINITY else min(MOST, max(8, hard - RESERVED))


def raise_descriptor_limit() -> None:
    """Raises this process's soft limit of file descriptors to the hard one. Processes started later inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Slot:
    """The place of one connection. Call `anonymous` or `known` when its state changes, and `free` when it
    ends.
    """

    def __init__(self, slots: ConnectionSlots, end: Callable[[], object]) -> None:
        self._slots = slots
        self.end = end
        """Ends the connection at once."""

    def anonymous(self) -> None:
        """Records that the connection may be ended for a newer one."""
        self._slots._anonymous[self] = None

    def known(self) -> None:
        """Records that the connection keeps its place."""
        self._slots._anonymous.pop(self, None)

    def free(self) -> None:
        """Releases the place of an ended connection. A second call does nothing."""
        self._slots._taken.discard(self)
        self._slots._anonymous.pop(self, None)


class ConnectionSlots:
    """Places for at most `most` connections, shared by any number of listeners."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: set[Slot] = set()
        self._anonymous: dict[Slot, None] = {}
        """Slots of anonymous connections, oldest first."""

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, end: Callable[[], object]) -> Slot | None:
        """A place for a new, anonymous connection; None if known connections hold all places. `end` ends the
        connection.
        """
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
    """Accepts the connections of one socket within the slots until it is closed. It belongs to one event
    loop.

    made: creates the protocol of a connection. The protocol must call `slot.known()` when a request or HELLO
    has arrived, and `slot.free()` in `connection_lost`.
    failed: called with a sentence when the system refuses connections; only once until it accepts again.
    """

    def __init__(
        self,
        bound: socket.socket,
        slots: ConnectionSlots,
        made: Callable[[Slot], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """bound: a bound socket, which the listener owns from now on."""
        bound.setblocking(False)
        bound.listen(1024)
        self._socket, self._slots, self._made, self._tls, self._failed = bound, slots, made, tls, failed
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accepts no more connections. Existing connections go on."""
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
