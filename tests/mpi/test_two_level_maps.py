"""Site maps that come while a program runs: all ranks go over to a new one at the same call, and none before all can."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from mpis import AROUND, HERE, Mpi
from topolane.mpi import build, launch
from topolane.mpi.address import Address
from topolane.mpi.connection import Connection
from topolane.mpi.frames import sites_frame
from topolane.mpi.receiver import Receiver
from waiting import DEADLINE, until_async

RANKS = 4
MODELLED, COUNTED = 1, 2


class Running:
    """A program that does collectives until it is asked to stop, and the receiver it reports to."""

    def __init__(self, receiver: Receiver, stop: Path, process: asyncio.subprocess.Process) -> None:
        self.receiver, self.stop, self.process = receiver, stop, process

    def ranks(self) -> dict[int, Connection]:
        """Connections by rank: a connection is there before its rank has said which it is."""
        connections = self.receiver.connections
        return {
            connection.hello.rank: connection for connection in connections if connection.hello is not None
        }

    def messages(self, kind: int) -> np.ndarray:
        """Sent so far, by pair."""
        program = self.receiver.programs.get("maps")
        found = np.zeros((RANKS, RANKS))
        if program is not None:
            matrix = program.matrix(kind)
            np.add.at(found, (matrix.sender, matrix.receiver), matrix.messages)
        return found

    async def until(self, happened: Callable[[], bool], what: str) -> None:
        await until_async(lambda: happened() or self.process.returncode is not None, what)
        assert self.process.returncode is None, f"ended before {what}"

    async def more(self, kind: int, pair: tuple[int, int], what: str) -> None:
        """Waits until a pair has sent some more messages of a kind."""
        before = self.messages(kind)[pair]
        await self.until(lambda: bool(self.messages(kind)[pair] > before + 20), what)

    async def still(self, kind: int, pairs: list[tuple[int, int]], what: str) -> None:
        """Waits until those pairs no longer send such messages: none in two seconds that every rank has reported."""

        def now() -> tuple[float, dict[int, float]]:
            reported = {rank: one.seconds for rank, one in self.receiver.programs["maps"].of_rank.items()}
            return float(sum(self.messages(kind)[pair] for pair in pairs)), reported

        sent, since = now()

        def rests() -> bool:
            nonlocal sent, since
            more, reported = now()
            if more > sent:
                sent, since = more, reported
            return all(reported[rank] > since[rank] + 2 for rank in range(RANKS))

        await self.until(rests, what)


async def run(mpi: Mpi, folder: Path, story: Callable[[Running], Awaitable[None]]) -> tuple[int, str]:
    program = mpi.compile([HERE / "programs" / "until_stopped.c"], folder / "until_stopped")
    stop = folder / "stop"
    receiver = Receiver()
    address = await receiver.listen(Address(path=str(folder / "receiver")))
    environment = {
        "TOPOLANE_MPI_PROGRAM": "maps",
        "TOPOLANE_MPI_MANAGER": str(address),
        "TOPOLANE_MPI_TWO_LEVEL": "always",
    }
    command = mpi.launch(program, stop, ranks=RANKS)
    words, around = launch.with_library(command, build.library(build.mpicc_for(command)), environment)
    process = await asyncio.create_subprocess_exec(
        *words, env=os.environ | AROUND | around, stdout=asyncio.subprocess.PIPE
    )
    try:
        running = Running(receiver, stop, process)
        await running.until(lambda: len(running.ranks()) == RANKS, "every rank has said which it is")
        await story(running)
        stop.touch()
        output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await receiver.close()
    assert process.returncode is not None
    return process.returncode, output.decode()


def crossing(messages: np.ndarray, sites: list[int]) -> float:
    return float(sum(messages[a, b] for a in range(RANKS) for b in range(RANKS) if sites[a] != sites[b]))


def test_ranks_go_over_together_and_fewer_messages_cross(mpi: Mpi, tmp_path: Path) -> None:
    """Without a map collectives are flat. A map for ranks 0, 2 and 1, 3 makes 0 and 1 representatives, and only they
    talk across. After a move, with 0, 1 and 2, 3 together, it is 0 and 2, and no other rank any more. Results stay
    right throughout.
    """

    async def story(running: Running) -> None:
        await running.more(MODELLED, (0, 1), "flat collectives are reported")
        assert not running.messages(COUNTED).any()
        running.receiver.send_sites("maps", 1, np.array([0, 1, 0, 1], np.uint16))
        await running.more(COUNTED, (0, 1), "the first map is used")
        assert running.messages(COUNTED)[2:, :].sum() == 0
        flat = [(a, b) for a in range(RANKS) for b in range(RANKS) if (a - b) % 2]
        await running.still(MODELLED, flat, "no flat collective crosses")
        running.receiver.send_sites("maps", 2, np.array([0, 0, 1, 1], np.uint16))
        await running.more(COUNTED, (0, 2), "the second map is used")
        await running.still(COUNTED, [(0, 1), (1, 0)], "the first map is not used any more")
        counted = running.messages(COUNTED)
        assert {(a, b) for a, b in zip(*np.nonzero(counted))} == {(0, 1), (1, 0), (0, 2), (2, 0)}

    code, printed = asyncio.run(run(mpi, tmp_path, story))
    assert (code, printed.split()[1:]) == (0, ["rounds"])


def test_a_map_is_not_used_before_the_last_rank_has_it(mpi: Mpi, tmp_path: Path) -> None:
    """Three of four ranks know a map, long enough for many agreements: all stay flat. The fourth hears of it: all
    use it.
    """

    async def story(running: Running) -> None:
        await running.more(MODELLED, (0, 1), "flat collectives are reported")
        frame = sites_frame(1, np.array([0, 1, 0, 1], np.uint16))
        ranks = running.ranks()
        for rank in (0, 1, 2):
            ranks[rank].send_sites(frame)
        for _ in range(3):
            await running.more(MODELLED, (0, 1), "flat collectives go on")
        assert not running.messages(COUNTED).any()
        ranks[3].send_sites(frame)
        await running.more(COUNTED, (0, 1), "the map is used")

    code, _ = asyncio.run(run(mpi, tmp_path, story))
    assert code == 0


def test_a_map_that_differs_between_ranks_is_used_by_none(mpi: Mpi, tmp_path: Path) -> None:
    """Two maps of the same epoch, as no manager should send them: ranks that built different levels would wait for
    each other for ever. They stay flat, until a map comes that is the same for all.
    """

    async def story(running: Running) -> None:
        ranks = running.ranks()
        for rank in range(RANKS):
            sites = [0, 1, 0, 1] if rank % 2 else [0, 0, 1, 1]
            ranks[rank].send_sites(sites_frame(1, np.array(sites, np.uint16)))
        for _ in range(3):
            await running.more(MODELLED, (0, 1), "flat collectives go on")
        assert not running.messages(COUNTED).any()
        running.receiver.send_sites("maps", 2, np.array([0, 0, 1, 1], np.uint16))
        await running.more(COUNTED, (0, 2), "the good map is used")

    code, _ = asyncio.run(run(mpi, tmp_path, story))
    assert code == 0


@pytest.mark.parametrize("ranks", [2, 6], ids=["too-few", "too-many"])
def test_a_map_for_other_ranks_is_harmless(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    """A map that speaks of fewer or more ranks than there are leaves collectives flat."""

    async def story(running: Running) -> None:
        running.receiver.send_sites("maps", 1, np.array([0, 1, 0, 1, 0, 1][:ranks], np.uint16))
        for _ in range(3):
            await running.more(MODELLED, (0, 1), "flat collectives go on")
        assert not running.messages(COUNTED).any()

    code, _ = asyncio.run(run(mpi, tmp_path, story))
    assert code == 0
