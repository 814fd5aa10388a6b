"""A rank that speaks the protocol, as the preloaded library does: keeps its frames until they are acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import json

from topolane.mpi.frames import Decoder, FrameKind, Hello, Records, encode, sites_of

Entry = tuple[int, int, int, int, int]


class Rank:
    """Reports what its caller says, whatever happens to its connection."""

    def __init__(self, path: str, rank: int, ranks: int, *, program: str = "program", **hello: str) -> None:
        fields = {"name": "test", "host": f"host{rank}", "incarnation": f"{program}/{rank}", **hello}
        self.hello = Hello(program=program, rank=rank, ranks=ranks, pid=1, **fields)
        self.path = path
        self.unacknowledged: dict[int, bytes] = {}
        self.sequence = 0
        self.epochs: list[int] = []
        self.sites: list[int] = []
        self.refused: str | None = None
        self.welcomes: list[int] = []
        self._writer: asyncio.StreamWriter | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connects, and connects again."""
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """As if the process had died."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        if self._writer is not None:
            self._writer.close()

    def report(self, *peers: Entry, length: float = 1.0, in_mpi: float = 0.0, time: float = 1e9) -> None:
        """Counts an interval: rows of peer, kind, messages, bytes, turns."""
        self._send(lambda sequence: Records.of(time, length, in_mpi, 0.0, peers).encode(sequence))

    def bye(self, dropped: int = 0) -> None:
        """Reaches MPI_Finalize."""
        self._send(
            lambda sequence: encode(FrameKind.BYE, json.dumps({"dropped": dropped}).encode(), sequence)
        )

    def cut(self) -> None:
        """Loses its connection without a word."""
        if self._writer is not None:
            self._writer.transport.abort()

    def _send(self, frame) -> None:
        self.sequence += 1
        self.unacknowledged[self.sequence] = frame(self.sequence)
        if self._writer is not None:
            self._writer.write(self.unacknowledged[self.sequence])

    async def _run(self) -> None:
        while self.refused is None:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(self.path)
                writer.write(self.hello.encode())
                await self._listen(reader, writer)
            self._writer = None
            await asyncio.sleep(0.05)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = Decoder()
        while data := await reader.read(1 << 16):
            for frame in decoder.feed(data):
                if frame.kind == FrameKind.WELCOME:
                    last = json.loads(frame.payload)["last"]
                    self.welcomes.append(last)
                    self._acknowledged(last)
                    for sequence in sorted(self.unacknowledged):
                        writer.write(self.unacknowledged[sequence])
                    self._writer = writer
                elif frame.kind == FrameKind.ACK:
                    self._acknowledged(int.from_bytes(frame.payload, "little"))
                elif frame.kind == FrameKind.SITES:
                    epoch, sites = sites_of(frame.payload)
                    self.epochs.append(epoch)
                    self.sites = sites.tolist()
                elif frame.kind == FrameKind.REFUSED:
                    self.refused = frame.payload.decode()

    def _acknowledged(self, last: int) -> None:
        self.unacknowledged = {at: frame for at, frame in self.unacknowledged.items() if at > last}
