"""Reads the state of a guest from its QEMU process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from qemu.qmp import QMPClient, QMPError

from topolane_sites.processor import of_guest

if TYPE_CHECKING:
    from topolane_sites.qemu import QemuFolder

ANSWER = 5.0
"""Seconds. A host must not wait long for a guest that hangs."""


async def guest_state(folder: QemuFolder, guest: str, with_processor: bool = False) -> dict[str, Any] | None:
    """Its state, cores and memory in bytes, from the monitor that movers do not use; None without an answer.

    with_processor: also `processor`, the fields `cpu_model`, `emulated` and `features`, if the guest reports them.
    """
    client = QMPClient(guest)
    client.logger.setLevel(logging.CRITICAL)
    try:
        async with asyncio.timeout(ANSWER):
            await client.connect(str(folder.file(guest, "watch")))
            status: Any = await client.execute("query-status")
            memory: Any = await client.execute("query-memory-size-summary")
            cores: Any = await client.execute("query-cpus-fast")
            state = {"state": status["status"], "memory": memory["base-memory"], "cores": len(cores)}
            if with_processor:
                with contextlib.suppress(QMPError, LookupError):
                    state["processor"] = await of_guest(client.execute)
            await client.disconnect()
    except (OSError, EOFError, QMPError, TimeoutError):
        return None
    return state
