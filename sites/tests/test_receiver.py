"""The receiver: what ranks report is counted once, whatever happens on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from sender import Rank
from topolane import InputError
from topolane.mpi.address import Address
from topolane.mpi.frames import Decoder, FrameKind, Hello, Records
from topolane.mpi.limits import Event, Limits
from topolane.mpi.receiver import Receiver
from waiting import until_async


def run(body, tmp_path: Path, **options):
    """Runs `body(receiver, path)` with a receiver at a socket; answers with the events."""
    events: list[Event] = []

    async def main() -> None:
        receiver = Receiver(happened=events.append, interval=0.05, **options)
        path = str(tmp_path / "r.sock")
        await receiver.listen(Address(path=path))
        try:
            await body(receiver, path)
        finally:
            await receiver.close()

    asyncio.run(main())
    return events


def entries(program) -> dict[tuple[int, int], tuple[float, ...]]:
    matrix = program.matrix()
    return {
        (int(a), int(b)): tuple(row)
        for a, b, row in zip(matrix.sender, matrix.receiver, matrix.counts.tolist())
    }


def test_what_ranks_report_is_summed_and_acknowledged(tmp_path: Path) -> None:
    """Two ranks, two intervals, kinds apart and together; the program ends when both have said BYE."""

    async def body(receiver: Receiver, path: str) -> None:
        ranks = [Rank(path, rank, 2) for rank in range(2)]
        for rank in ranks:
            rank.start()
        ranks[0].report((1, 0, 3, 300, 2), (1, 1, 1, 50, 0))
        ranks[0].report((1, 0, 1, 100, 1), (0, 0, 1, 8, 0), in_mpi=0.5)
        ranks[1].report((0, 0, 4, 40, 3))
        for rank in ranks:
            rank.bye()
        await until_async(lambda: not any(rank.unacknowledged for rank in ranks))
        program = receiver.programs["program"]
        assert entries(program) == {(0, 0): (1, 8, 0), (0, 1): (5, 450, 3), (1, 0): (4, 40, 3)}
        assert program.matrix(kind=1).bytes.tolist() == [50]
        assert program.ended is not None
        assert program.hosts == {0: "host0", 1: "host1"}
        assert program.in_mpi()[0] == pytest.approx(0.5 / 3)
        for rank in ranks:
            await rank.stop()

    assert [event.kind for event in run(body, tmp_path)] == ["program-began", "program-ended"]


def test_a_connection_that_is_cut_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """A rank whose connection is cut again and again, frames on the way: each is counted once."""

    async def body(receiver: Receiver, path: str) -> None:
        rank = Rank(path, 0, 2)
        rank.start()
        for number in range(200):
            rank.report((1, 0, 1, number, 1))
            if number % 7 == 0:
                await asyncio.sleep(0.005)
                rank.cut()
        await until_async(lambda: not rank.unacknowledged)
        assert entries(receiver.programs["program"]) == {(0, 1): (200, 199 * 200 / 2, 200)}
        await rank.stop()

    run(body, tmp_path)


def test_nothing_is_acknowledged_before_it_is_kept(tmp_path: Path) -> None:
    """While `keep` fails nothing is acknowledged; afterwards everything is."""
    works, failed = asyncio.Event(), []

    async def keep(_) -> None:
        if not works.is_set():
            failed.append(1)
            raise OSError(28, "No space left on device")

    async def body(receiver: Receiver, path: str) -> None:
        rank = Rank(path, 0, 1)
        rank.start()
        rank.report((0, 0, 1, 1, 0))
        await until_async(lambda: len(failed) > 2)
        assert list(rank.unacknowledged) == [1]
        works.set()
        await until_async(lambda: not rank.unacknowledged)
        await rank.stop()

    assert "not-kept" in [event.kind for event in run(body, tmp_path, keep=keep)]


def test_limits_are_kept(tmp_path: Path) -> None:
    """One program too many, a rank beyond its program, a matrix too big: refused, with the reason."""

    async def body(receiver: Receiver, path: str) -> None:
        first, second = Rank(path, 0, 3, program="a"), Rank(path, 0, 2, program="b")
        third, wide = Rank(path, 1, 4, program="a"), Rank(path, 0, 99, program="c")
        first.start()
        await until_async(lambda: "a" in receiver.programs)
        for rank in (second, third, wide):
            rank.start()
        await until_async(lambda: second.refused and third.refused and wide.refused)
        assert "1 programs" in second.refused
        assert "a has 3 ranks, and this one says 4" in third.refused
        assert "takes 8" in wide.refused
        first.report((0, 0, 1, 1, 0), (1, 0, 1, 1, 0))
        first.report((2, 0, 1, 1, 0))
        await until_async(lambda: first.refused)
        assert "2 entries" in first.refused
        assert len(entries(receiver.programs["a"])) == 2
        await first.stop()

    run(body, tmp_path, limits=Limits(programs=1, ranks=8, entries=2))


def test_a_program_that_ended_makes_room(tmp_path: Path) -> None:
    """At the limit the program that ended goes from memory, and the new one is taken."""

    async def body(receiver: Receiver, path: str) -> None:
        for name in "abc":
            rank = Rank(path, 0, 1, program=name)
            rank.start()
            rank.report((0, 0, 1, 1, 0))
            rank.bye()
            await until_async(lambda rank=rank: rank.sequence == 2 and not rank.unacknowledged)
            await rank.stop()
        assert list(receiver.programs) == ["c"]

    run(body, tmp_path, limits=Limits(programs=1))


def test_site_maps_reach_ranks_that_are_there_and_that_come(tmp_path: Path) -> None:
    """A map is sent at once, and again after WELCOME to whoever comes later."""

    async def body(receiver: Receiver, path: str) -> None:
        first, second = Rank(path, 0, 2), Rank(path, 1, 2)
        first.start()
        await until_async(lambda: receiver.connected("program") == [0])
        receiver.send_sites("program", 1, np.array([0, 1], np.uint16))
        receiver.send_sites("program", 2, np.array([1, 1], np.uint16))
        second.start()
        await until_async(lambda: first.epochs == [1, 2] and second.epochs == [2])
        assert first.sites == second.sites == [1, 1]
        for rank in (first, second):
            await rank.stop()

    run(body, tmp_path)


def test_a_tcp_port_needs_a_token(tmp_path: Path) -> None:
    """No token: not listened at all, on loopback neither. A wrong one: refused. The right one: counted."""

    async def body(receiver: Receiver, path: str) -> None:
        with pytest.raises(InputError, match="needs a token"):
            await receiver.listen(Address(host="0.0.0.0", port=0))
        address = await receiver.listen(Address(host="0.0.0.0", port=0), token="secret")
        for token, answer in (("guess", FrameKind.REFUSED), ("secret", FrameKind.WELCOME)):
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(Hello("p", "p", 0, 1, "h", 1, "1", token=token).encode())
            assert [frame.kind for frame in Decoder().feed(await reader.read(4096))] == [answer]
            writer.close()
        assert list(receiver.programs) == ["p"]

    run(body, tmp_path)


def test_a_rank_that_dies_is_reported(tmp_path: Path) -> None:
    """A connection that ends without BYE is an event, and the rank may be started again."""

    async def body(receiver: Receiver, path: str) -> None:
        rank = Rank(path, 0, 1)
        rank.start()
        rank.report((0, 0, 1, 1, 0))
        await until_async(lambda: not rank.unacknowledged)
        await rank.stop()
        await until_async(lambda: not receiver.connected("program"))
        again = Rank(path, 0, 1, incarnation="2")
        again.start()
        again.report((0, 0, 1, 1, 0))
        await until_async(lambda: not again.unacknowledged)
        assert entries(receiver.programs["program"]) == {(0, 0): (2, 2, 0)}
        await again.stop()

    kinds = [event.kind for event in run(body, tmp_path)]
    assert kinds[:3] == ["program-began", "rank-gone", "rank-began-again"]


def test_recent_rates_follow_what_the_program_does_now(tmp_path: Path) -> None:
    """100 bytes a second for long, then 1,000: the rate is 100, and after some windows 1,000."""
    from topolane.mpi.counts import WatchedProgram

    program = WatchedProgram("p", "p", 2, 0.0)

    def seconds(count: int, size: int) -> float:
        for _ in range(count):
            program.rank(0).add(Records.of(0.0, 1.0, 0.25, 0.0, [(1, 0, 1, size, 1)]))
        return program.rates().bytes[0]

    assert seconds(5, 100) == pytest.approx(100, rel=0.02)
    assert seconds(200, 100) == pytest.approx(100, rel=0.02)
    assert seconds(150, 1000) == pytest.approx(1000, rel=0.02)
    assert program.rank(0).rates()[1] == pytest.approx(0.25, rel=0.02)
