"""Simulates ranks that report once a second, many in one process: `python ranks.py SOCKET PROGRAMS RANKS
PEERS`.

Each program is a ring in which every rank sends to PEERS others, by messages and by modelled collectives.
When its input ends, it stops and prints the numbers of frames that it sent and that were acknowledged.
"""

from __future__ import annotations

import asyncio
import sys

from topolane.mpi.frames import Decoder, FrameKind, Hello, Records


class Rank(asyncio.Protocol):
    """One rank, which sends a frame every second."""

    def __init__(self, program: int, rank: int, ranks: int, peers: int) -> None:
        self.hello = Hello(
            f"p{program}", "ring", rank, ranks, f"g{program}-{rank % 4}", 1, f"{program}.{rank}"
        )
        self.peers = [
            ((rank + step) % ranks, kind, 100, 80_000, 50)
            for kind in (0, 1)
            for step in range(1, 1 + peers // 2)
        ]
        self.calls = [(call, 10, 8_000, 0.05) for call in range(3)]
        self.sequence = self.acknowledged = 0
        self.decoder = Decoder()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self.hello.encode())

    def data_received(self, data: bytes) -> None:
        for frame in self.decoder.feed(data):
            if frame.kind == FrameKind.ACK:
                self.acknowledged = int.from_bytes(frame.payload, "little")

    def report(self) -> None:
        self.sequence += 1
        records = Records.of(1.7e9 + self.sequence, 1.0, 0.3, 0.05, self.peers, self.calls)
        self.transport.write(records.encode(self.sequence))


async def main(path: str, programs: int, ranks: int, peers: int) -> None:
    """Connects all ranks, and spreads their reports over each second."""
    loop = asyncio.get_running_loop()
    every = []
    for program in range(programs):
        for rank in range(ranks):
            every.append(Rank(program, rank, ranks, peers))
            await loop.create_unix_connection(lambda: every[-1], path)
    print("connected", flush=True)
    stopping = loop.run_in_executor(None, sys.stdin.read)
    began, number = loop.time(), 0
    while not stopping.done():
        every[number % len(every)].report()
        number += 1
        if (late := began + number / len(every) - loop.time()) > 0:
            await asyncio.sleep(late)
        elif number % 10 == 0:
            await asyncio.sleep(0)
    deadline = loop.time() + 30
    while loop.time() < deadline and any(rank.acknowledged < rank.sequence for rank in every):
        await asyncio.sleep(0.1)
    print(number, sum(rank.acknowledged for rank in every), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
