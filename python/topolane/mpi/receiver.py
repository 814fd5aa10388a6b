"""The receiver of the reports of watched programs: one program, or all programs of a site manager.

native/mpi/PROTOCOL.md describes the protocol. All input is treated as hostile: an invalid frame ends
its connection, limits bound what is kept, and a sender that reads nothing gets nothing.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import time
from collections.abc import Awaitable, Callable

import numpy as np
from numpy.typing import NDArray

from topolane._engine import InputError
from topolane.mpi.acknowledger import Acknowledger, Taken
from topolane.mpi.address import Address, bound_to
from topolane.mpi.connection import Connection, SenderRefusedError
from topolane.mpi.counts import RankCounts, WatchedProgram
from topolane.mpi.frames import FrameError, Hello, Records, dropped, sites_frame
from topolane.mpi.limits import Event, Limits
from topolane.mpi.listener import ConnectionSlots, Listener, Slot, connections_possible
from topolane.mpi.window import Window


class Receiver:
    """Receives frames of many ranks and collects their counts in `programs`.

    Frames are acknowledged when `keep` has returned for their ranks. It is called about every `interval`
    seconds, once for all ranks with new frames. A receiver belongs to one event loop.

    keep: stores the counts of those ranks. It may raise OSError and is then called again later. load: returns
    what an earlier receiver stored of a program. happened: called with events.
    """

    def __init__(
        self,
        *,
        keep: Callable[[Taken], Awaitable[None]] | None = None,
        load: Callable[[str], WatchedProgram | None] = lambda _: None,
        happened: Callable[[Event], None] = lambda _: None,
        limits: Limits | None = None,
        interval: float = 1.0,
        slots: ConnectionSlots | None = None,
    ) -> None:
        """slots: the slots of the whole process, if it has other listeners too."""
        self.programs: dict[str, WatchedProgram] = {}
        self.limits = limits or Limits()
        self.connections: set[Connection] = set()
        self._slots = slots or ConnectionSlots(min(self.limits.connections, connections_possible()))
        self.frames = 0
        """The number of received frames, without duplicates."""
        self.repeated = 0
        self._load, self._happened = load, happened
        self._acknowledger = Acknowledger(
            keep, interval, self._windows, lambda text: self.tell("not-kept", "", text)
        )
        self._entries = self._senders = 0
        self.buffered = 0
        self._of_rank: dict[tuple[str, int], set[Connection]] = {}
        self._listeners: list[Listener] = []
        self._sockets: list[str] = []

    async def listen(
        self, address: Address, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> Address:
        """Listens on one more address. Returns the address with its port filled in.

        Raises InputError if it cannot listen, and for a TCP port without a token, which any user of this
        machine could reach.
        """
        if address.path is None and token is None:
            raise InputError(
                f"{address}: any user of this machine could report there; a TCP port needs a token"
            )
        bound = bound_to(address)
        if address.path is not None:
            self._sockets.append(address.path)
        else:
            address = Address(host=address.host, port=bound.getsockname()[1])

        def connection(slot: Slot) -> Connection:
            return Connection(self, token, slot)

        def failed(text: str) -> None:
            self.tell("not-accepted", "", text)

        self._listeners.append(Listener(bound, self._slots, connection, tls=tls, failed=failed))
        self._acknowledger.start()
        return address

    async def close(self) -> None:
        """Stores and acknowledges what has arrived, and ends all connections."""
        for listener in self._listeners:
            listener.close()
            await listener.wait_closed()
        await self._acknowledger.close()
        for connection in list(self.connections):
            connection.close()
        for path in self._sockets:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def adopt(self, program: WatchedProgram) -> None:
        """Adds a program with stored counts, before any of its ranks sends a HELLO."""
        self.programs[program.id] = program
        self._entries += sum(len(one.keys) for one in program.of_rank.values())
        self._senders += sum(len(one.windows) for one in program.of_rank.values())

    def forget(self, program: str) -> None:
        """Drops a program from memory and ends its ranks' connections."""
        known = self.programs.pop(program, None)
        if known is None:
            return
        self._entries -= sum(len(one.keys) for one in known.of_rank.values())
        self._senders -= sum(len(one.windows) for one in known.of_rank.values())
        for rank in known.of_rank:
            for connection in list(self._of_rank.get((program, rank), ())):
                connection.close()

    def connected(self, program: str) -> list[int]:
        """The ranks of a program that are connected, in order."""
        known = self.programs.get(program)
        return sorted(rank for rank in known.of_rank if (program, rank) in self._of_rank) if known else []

    def send_sites(self, program: str, epoch: int, sites: NDArray[np.uint16]) -> None:
        """Sends the site of every rank to all ranks of a program, now and whenever a rank reconnects."""
        known = self.programs.get(program)
        if known is None:
            return  # the program has ended since and was dropped for another one
        known.epoch, known.sites = epoch, sites
        frame = sites_frame(epoch, sites)
        for rank in known.of_rank:
            for connection in self._of_rank.get((program, rank), ()):
                connection.send_sites(frame)

    # Called by connections.

    def arrived(self, connection: Connection) -> None:
        """Adds a new connection."""
        self.connections.add(connection)

    def hello(self, connection: Connection, hello: Hello) -> None:
        """Handles the HELLO of a rank. Raises SenderRefusedError."""
        program = self._program(hello)
        counts = program.of_rank.get(hello.rank)
        if counts is None or hello.incarnation not in counts.windows:
            if self._senders >= self.limits.senders:
                raise SenderRefusedError(f"this receiver takes no more than {self.limits.senders} ranks")
            if counts is not None:
                self.tell(
                    "rank-began-again", program.id, f"rank {hello.rank} was started again on {hello.host}"
                )
            counts = program.rank(hello.rank)
            counts.windows[hello.incarnation] = Window()
            counts.gone = False
            self._senders += 1
            self._acknowledger.took(program.id, hello.rank)
        if not counts.gone:
            program.ended = None
        program.hosts[hello.rank] = hello.host
        program.mpi = hello.mpi or program.mpi
        self._of_rank.setdefault((program.id, hello.rank), set()).add(connection)
        connection.welcome(counts.windows[hello.incarnation].kept, program.epoch, program.sites)

    def records(self, connection: Connection, sequence: int, payload: bytes) -> None:
        """Handles counts. Raises FrameError, and SenderRefusedError if a limit is reached."""
        program = self.programs[connection.hello.program]
        records = Records.decode(payload, program.ranks)
        if self._entries + len(records.peers) > self.limits.entries:
            raise SenderRefusedError(
                f"this receiver keeps no more than {self.limits.entries} entries of matrices"
            )
        counts = program.rank(connection.hello.rank)
        if self._is_new(connection, counts, sequence):
            before = len(counts.keys)
            counts.add(records)
            self._entries += len(counts.keys) - before

    def bye(self, connection: Connection, sequence: int, payload: bytes) -> None:
        """Handles a BYE: the rank has reached MPI_Finalize. Raises FrameError."""
        lost = dropped(payload)
        program, rank = self.programs[connection.hello.program], connection.hello.rank
        counts = program.rank(rank)
        if sequence and not self._is_new(connection, counts, sequence):
            return
        self._acknowledger.took(program.id, rank)
        counts.gone, counts.dropped = True, max(counts.dropped, lost)
        self._acknowledger.hurry()
        if lost:
            self.tell("frames-dropped", program.id, f"rank {rank} gave up {lost} frames")
        if len(program.of_rank) == program.ranks and all(one.gone for one in program.of_rank.values()):
            program.ended = time.time()
            self.tell("program-ended", program.id, f"{program.name}: all {program.ranks} ranks are through")

    def left(self, connection: Connection, hello: Hello | None) -> None:
        """Removes a connection that has ended."""
        self.connections.discard(connection)
        self._acknowledger.left(connection)
        if hello is None:
            return
        others = self._of_rank.get((hello.program, hello.rank), set())
        others.discard(connection)
        if others:
            return
        self._of_rank.pop((hello.program, hello.rank), None)
        program = self.programs.get(hello.program)
        if program is not None and not program.rank(hello.rank).gone:
            self.tell(
                "rank-gone", program.id, f"rank {hello.rank} on {hello.host} is away without MPI_Finalize"
            )

    def tell(self, kind: str, program: str, text: str) -> None:
        """Reports an event."""
        self._happened(Event(kind, program, text))

    # Private methods.

    def _program(self, hello: Hello) -> WatchedProgram:
        if hello.ranks > self.limits.ranks:
            raise SenderRefusedError(
                f"a program of {hello.ranks} ranks; this receiver takes {self.limits.ranks}"
            )
        program = self.programs.get(hello.program)
        if program is None and (program := self._load(hello.program)) is not None:
            self._make_room()
            self.adopt(program)
        if program is None:
            self._make_room()
            program = WatchedProgram(hello.program, hello.name, hello.ranks, time.time())
            self.adopt(program)
            self.tell("program-began", program.id, f"{program.name} with {program.ranks} ranks")
        if program.ranks != hello.ranks:
            raise SenderRefusedError(
                f"program {program.id} has {program.ranks} ranks, and this one says {hello.ranks}: "
                "runs need names of their own (TOPOLANE_MPI_PROGRAM)"
            )
        return program

    def _make_room(self) -> None:
        if len(self.programs) < self.limits.programs:
            return
        over = [
            one
            for one in self.programs.values()
            if one.ended is not None and not self._acknowledger.holds(one.id)
        ]
        if not over:
            raise SenderRefusedError(f"this receiver takes no more than {self.limits.programs} programs")
        self.forget(min(over, key=lambda one: one.ended or 0.0).id)

    def _is_new(self, connection: Connection, counts: RankCounts, sequence: int) -> bool:
        if not 0 < sequence < 1 << 63:
            raise FrameError(f"sequence {sequence} in a frame that wants an answer")
        connection.newest = max(connection.newest, sequence)
        self._acknowledger.expects(connection)
        if not counts.windows[connection.hello.incarnation].take(sequence):
            self.repeated += 1
            return False
        self.frames += 1
        self._acknowledger.took(connection.hello.program, connection.hello.rank)
        return True

    def _windows(self, taken: Taken) -> list[Window]:
        known = [(self.programs[id], ranks) for id, ranks in taken.items() if id in self.programs]
        return [
            one for program, ranks in known for rank in ranks for one in program.rank(rank).windows.values()
        ]
