"""Between ranks and receiver anything may break: the program does not notice, and nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from mpis import AROUND, HERE, Mpi
from test_matrix_closed_form import ring, sent
from topolane.mpi import build, launch, matrix
from topolane.mpi.address import Address
from topolane.mpi.frames import FrameKind, encode
from topolane.mpi.receiver import Receiver
from waiting import DEADLINE, until_async

ROUNDS = 150
SLOW_RING = {(0, 1): (ROUNDS, 4 * ROUNDS, ROUNDS), (1, 0): (ROUNDS, 4 * ROUNDS, ROUNDS)}
"""Two ranks: each hears from the one it has sent to."""


TOKEN = "t" * 16
"""What the ranks show; a TCP port asks for it."""


@dataclasses.dataclass
class Run:
    """A program that reports to a socket all the time."""

    mpi: Mpi
    kernels: Path
    socket: Path | str
    """A Unix socket's path, or host:port."""
    around: tuple[str, ...] = ()
    """What to put before the command."""
    halfway: Path | None = None
    """The ranks wait in their middle until this file is there."""

    async def to_its_end(self, kernel: str = "slow_ring", rounds: int = ROUNDS) -> tuple[int, str]:
        """Exit code and output."""
        command = self.mpi.launch(self.kernels, kernel, rounds, ranks=2)
        library = await asyncio.to_thread(lambda: build.library(build.mpicc_for(command)))
        environment = {
            "TOPOLANE_MPI_MANAGER": f"unix:{self.socket}" if isinstance(self.socket, Path) else self.socket,
            "TOPOLANE_MPI_PROGRAM": "one",
            "TOPOLANE_MPI_SECONDS": "0.02",
            "TOPOLANE_MPI_TOKEN": TOKEN,
            **({"HALFWAY": str(self.halfway)} if self.halfway else {}),
        }
        words, around = launch.with_library(command, library, environment)
        process = await asyncio.create_subprocess_exec(
            *self.around, *words, env=around | AROUND, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
        assert process.returncode is not None
        return process.returncode, out.decode()


async def drained(receiver: Receiver, last: Awaitable[Streams]) -> None:
    """Until all that was sent is read: a connection that was made last has come and gone, and no other is left."""
    reader, writer = await last
    writer.write_eof()
    with contextlib.suppress(OSError):
        await reader.read()
    writer.close()
    await until_async(lambda: not receiver.connections)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Chunk = Callable[[bytes], bytes | None]
"""What becomes of what comes through; None ends the connection."""


@contextlib.asynccontextmanager
async def between(front: Path, back: Path, there: Chunk, back_again: Chunk) -> AsyncIterator[list[int]]:
    """A relay on the way that spoils things; yields the connections that were made."""
    made: list[int] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chunk: Chunk) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(4096):
                changed = chunk(data)
                if changed is None:
                    break
                writer.write(changed)
        writer.transport.abort()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(1)
        try:
            upstream, downstream = await asyncio.open_unix_connection(back)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, downstream, there), pump(upstream, writer, back_again))

    async with await asyncio.start_unix_server(serve, front) as server:
        yield made
        server.close()


def reported(receiver: Receiver) -> float:
    """The messages that are known."""
    known = receiver.programs.get("one")
    return sum(count for count, *_ in sent(matrix.of(known)).values()) if known else 0


def counted(receiver: Receiver) -> matrix.Recorded:
    return matrix.of(receiver.programs["one"])


def after(runs: Awaitable[None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(runs, DEADLINE)

    asyncio.run(limited())


def passed(data: bytes) -> bytes:
    return data


def test_no_manager(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """No process listens: the program prints what it prints without the library, and ends."""
    plain = mpi.plain(kernels, "slow_ring", ROUNDS, ranks=2)
    code, out = asyncio.run(Run(mpi, kernels, tmp_path / "absent").to_its_end())
    assert (code, out) == (0, plain.stdout)


def test_manager_that_never_answers(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """A receiver takes connections and reads nothing: the program ends all the same, a second or so later."""

    async def runs() -> None:
        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(100)

        async with await asyncio.start_unix_server(silent, tmp_path / "silent") as server:
            code, out = await Run(mpi, kernels, tmp_path / "silent").to_its_end()
            assert code == 0 and out.startswith("slow_ring ")
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    with contextlib.suppress(asyncio.CancelledError):
        after(runs())


def test_manager_that_acknowledges_nothing(mpi: Mpi, tmp_path: Path) -> None:
    """A second after MPI_Finalize began the thread that reports is gone, and a process that lives on is left alone."""
    program = mpi.compile([HERE / "programs" / "after_the_end.c"], tmp_path / "program")
    plain = mpi.plain(program, ranks=2).stdout

    async def runs() -> None:
        async def welcoming(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(encode(FrameKind.WELCOME, b'{"last": 0}'))
            await asyncio.sleep(100)

        async with await asyncio.start_unix_server(welcoming, tmp_path / "welcoming") as server:
            assert await Run(mpi, program, tmp_path / "welcoming").to_its_end() == (0, plain)
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    with contextlib.suppress(asyncio.CancelledError):
        after(runs())


def test_a_name_with_two_addresses(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """A manager's name has two addresses, and at the first one nothing answers: the ranks find it at the second."""
    (tmp_path / "hosts").write_text("127.0.0.1 localhost manager.test\n127.0.0.2 manager.test\n")
    # In a mount namespace of its own, where the file of names is ours.
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    own = ("unshare", "--mount", "sh", "-c", script, str(tmp_path / "hosts"))
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True).returncode:
        pytest.skip("a mount namespace needs root and unshare")

    async def runs() -> None:
        turned_away: list[int] = []

        def turn_away(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            turned_away.append(1)
            writer.close()

        receiver = Receiver(interval=0.05)
        port = (await receiver.listen(Address(host="127.0.0.2"), token=TOKEN)).port
        async with await asyncio.start_server(turn_away, "127.0.0.1", port):
            code, _ = await Run(mpi, kernels, f"manager.test:{port}", own).to_its_end()
            await drained(receiver, asyncio.open_connection("127.0.0.2", port))
        await receiver.close()
        assert code == 0
        assert turned_away
        assert sent(counted(receiver)) == SLOW_RING

    after(runs())


def test_manager_restarted(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """A manager ends and another comes in its place, three times: what one acknowledged the next one knows.

    In between there is no manager for a while, and reports reach none. The ranks wait in their middle for the last manager: a
    report at their end that reaches none is lost.
    """

    async def runs() -> None:
        halfway = tmp_path / "halfway"
        run = Run(mpi, kernels, tmp_path / "socket", halfway=halfway)
        program = asyncio.create_task(run.to_its_end())
        known = None
        for manager in range(4):
            receiver = Receiver(interval=0.05)
            if known is not None:
                receiver.adopt(known)
            await receiver.listen(Address(path=str(run.socket)))
            if manager < 3:
                # In their middle the two ranks have sent ROUNDS messages.
                more = min(reported(receiver) + 20, ROUNDS - 1)
                await until_async(lambda r=receiver, more=more: reported(r) > more)
            else:
                halfway.touch()
                await asyncio.wait([program])
                await drained(receiver, asyncio.open_unix_connection(run.socket))
            await receiver.close()
            known = receiver.programs.get("one", known)
            await asyncio.sleep(0.1)
        assert (await program)[0] == 0
        only_whole = matrix.of(known) if known else None
        assert sent(only_whole) == SLOW_RING
        assert only_whole is not None and only_whole.about.unfinished == []

    after(runs())


def test_connections_are_cut(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """Every few kilobytes the connection is cut, in the middle of a frame or an answer: frames come again, count once."""

    async def runs() -> None:
        receiver = Receiver(interval=0.05)
        await receiver.listen(Address(path=str(tmp_path / "receiver")))
        passed_on = 0

        def cut(data: bytes) -> bytes | None:
            nonlocal passed_on
            passed_on += len(data)
            if passed_on < 1500:
                return data
            passed_on = 0
            return None

        front = tmp_path / "front"
        async with between(front, tmp_path / "receiver", cut, passed) as made:
            code, _ = await Run(mpi, kernels, front).to_its_end()
            cuts = len(made)
            await drained(receiver, asyncio.open_unix_connection(front))
        await receiver.close()
        assert code == 0
        assert cuts > 4
        assert sent(counted(receiver)) == SLOW_RING or _late(counted(receiver))

    after(runs())


def _late(recorded: matrix.Recorded) -> bool:
    """A cut in the last second may keep the last frames away: then a rank is missed, and nothing is too much."""
    found = sent(recorded)
    return bool(recorded.about.unfinished) and all(
        np.less_equal(found[pair], SLOW_RING[pair]).all() for pair in found
    )


def test_garbled_bytes(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """Every twelfth time a byte is changed on the way, to the receiver or back: who sees it ends the connection."""

    async def runs() -> None:
        said: list[str] = []
        receiver = Receiver(interval=0.05, happened=lambda event: said.append(event.kind))
        await receiver.listen(Address(path=str(tmp_path / "receiver")))
        seen = 0

        def garble(data: bytes) -> bytes:
            nonlocal seen
            seen += 1
            at = seen * 7 % len(data)
            return data if seen % 12 else data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]

        front = tmp_path / "front"
        async with between(front, tmp_path / "receiver", garble, garble) as made:
            code, _ = await Run(mpi, kernels, front).to_its_end()
            assert len(made) > 2
            await drained(receiver, asyncio.open_unix_connection(front))
        await receiver.close()
        assert code == 0
        assert "garbled" in said
        assert sent(counted(receiver)) == SLOW_RING or _late(counted(receiver))

    after(runs())


def test_refused(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """Who is refused does not come back: one connection a rank, and the program ends as ever."""

    async def runs() -> None:
        receiver = Receiver()
        await receiver.listen(Address(path=str(tmp_path / "receiver")), token="another")
        async with between(tmp_path / "front", tmp_path / "receiver", passed, passed) as made:
            code, out = await Run(mpi, kernels, tmp_path / "front").to_its_end()
            assert code == 0 and out.startswith("slow_ring ")
            assert len(made) == 2
        await receiver.close()
        assert receiver.programs == {}

    after(runs())


def test_a_rank_dies(mpi: Mpi, kernels: Path) -> None:
    """The run ends as it would without the library; what was reported until then is there, who did not end is named."""
    plain = mpi.plain(kernels, "dying", 20)
    messages: list[str] = []
    code, recorded = mpi.watched(
        kernels, "dying", 20, environment={"TOPOLANE_MPI_SECONDS": "0.05"}, messages=messages
    )
    # Which signal a launcher reports is a matter of chance: the others are ended, too.
    assert code != 0 and plain.returncode != 0
    assert recorded is not None
    assert 3 in recorded.about.unfinished
    assert sent(recorded) == ring(20)


def test_fork(mpi: Mpi, kernels: Path) -> None:
    """A process that a rank forks reports nothing, and the rank goes on."""
    code, recorded = mpi.watched(kernels, "forking", 5)
    assert code == 0
    assert sent(recorded) == ring(10)
    assert recorded is not None and recorded.about.unfinished == []
