"""A client of the monitor of a running QEMU, by QMP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from qemu.qmp import QMPClient, QMPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ANSWER = 20.0
"""Seconds a monitor has to answer."""


SILENT = (OSError, EOFError, QMPError, TimeoutError)
"""What a monitor that is not there, or goes away, makes of a question."""


@contextlib.asynccontextmanager
async def monitor(path: str) -> AsyncIterator[QMPClient]:
    """A client of the monitor at a socket. Raises one of SILENT if no monitor answers there."""
    client = QMPClient(path)
    # A client that tries again says why on its own: ours arrive as exceptions.
    client.logger.setLevel(logging.CRITICAL)
    await asyncio.wait_for(client.connect(path), ANSWER)
    try:
        yield client
    finally:
        with contextlib.suppress(*SILENT, asyncio.CancelledError):
            await asyncio.wait_for(client.disconnect(), ANSWER)


async def ask(client: QMPClient, command: str, **words: object) -> Any:
    """The monitor's answer to a command. Raises one of SILENT."""
    named = {word.replace("_", "-"): value for word, value in words.items()}
    return await asyncio.wait_for(client.execute(command, named or None), ANSWER)
