"""Runs one program with its own receiver from start to end."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from topolane._engine import InputError
from topolane.mpi import launch, matrix
from topolane.mpi.address import Address
from topolane.mpi.limits import Event
from topolane.mpi.listener import raise_descriptor_limit
from topolane.mpi.receiver import Receiver

LINGER = 5.0
"""The most seconds to wait for reports that were sent but not yet read."""


def run(
    command: Sequence[str],
    library: Path,
    environment: Mapping[str, str],
    *,
    listen: str | None = None,
    tell: Callable[[str], None],
) -> tuple[int, matrix.Recorded | None]:
    """Runs a launch command. Returns its exit code and the matrix; None if no rank reported.

    listen: the address to listen on [default: a Unix socket that only this user may open]. tell: called with
    a sentence if reports are lost. Raises InputError if the command or the receiver cannot start.
    """
    return asyncio.run(_run(command, library, dict(environment), listen, tell))


def run_unwatched(command: Sequence[str], library: Path, environment: Mapping[str, str]) -> int:
    """Runs a command whose ranks report to another receiver. Returns its exit code."""
    return asyncio.run(_started(*launch.with_library(command, library, environment)))


async def _run(
    command: Sequence[str],
    library: Path,
    environment: dict[str, str],
    listen: str | None,
    tell: Callable[[str], None],
) -> tuple[int, matrix.Recorded | None]:
    program = environment.setdefault("TOPOLANE_MPI_PROGRAM", f"run-{secrets.token_hex(8)}")

    def happened(event: Event) -> None:
        if event.kind not in ("program-began", "program-ended", "rank-gone"):
            tell(event.text)

    receiver = Receiver(happened=happened)
    with tempfile.TemporaryDirectory(prefix="topolane-") as directory:
        address = Address(path=os.path.join(directory, "receiver"))
        token = None
        if listen is not None:
            address = Address.parse(listen)
            if address.is_unspecified:
                raise InputError(
                    f"--listen {listen}: ranks of other nodes need an address that leads to this one"
                )
            token = environment.setdefault("TOPOLANE_MPI_TOKEN", secrets.token_hex(16))
        address = await receiver.listen(address, token=token)
        environment["TOPOLANE_MPI_MANAGER"] = str(address)
        try:
            code = await _started(*launch.with_library(command, library, environment))
            await _drained(receiver)
        finally:
            await receiver.close()
    known = receiver.programs.get(program)
    return code, None if known is None else matrix.of(known)


async def _drained(receiver: Receiver) -> None:
    """Waits until every rank's connection has ended, so that all its reports have been read."""
    until = asyncio.get_running_loop().time() + LINGER
    while receiver.connections and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.02)


async def _started(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a command. Returns its exit code as a shell would. Signals that would end this process go to the
    command.
    """
    try:
        process = await asyncio.create_subprocess_exec(*words, env=dict(environment))
    except OSError as error:
        raise InputError(f"{words[0]}: cannot be started: {error.strerror}") from error
    raise_descriptor_limit()  # each rank needs a connection; raised only now, so that the program does not inherit the limit
    loop = asyncio.get_running_loop()
    # The terminal sends its interrupt to the command as well.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, process.send_signal, number)
    code = await process.wait()
    return 128 - code if code < 0 else code
