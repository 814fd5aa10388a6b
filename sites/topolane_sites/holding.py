"""Holds a cluster at the manager while a command changes it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote

from topolane._engine import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from topolane_sites.client import Client

SECONDS = 10.0
"""How long a hold lasts unless it is renewed; a killed command holds its cluster no longer than that."""
RENEWED = 2.0
LOOK = 0.3
PATIENCE = 600.0
"""Seconds to wait for another command, and for moves under way."""


@contextlib.contextmanager
def holding(manager: Client, cluster: str, tell: Callable[[str], None]) -> Iterator[str]:
    """Holds a cluster; gives the owner's name, which changes of the cluster must carry.

    Waits for another command that changes it, and for moves of its guests that are under way; none begins
    meanwhile. Raises InputError if that takes too long.
    """
    owner = f"{socket.gethostname()}, process {os.getpid()}, {uuid.uuid4().hex[:8]}"
    path = f"/clusters/{quote(cluster, safe='')}/hold"
    _take(manager, path, owner, cluster, tell)
    stop = threading.Event()
    renewing = threading.Thread(target=_renew, args=(manager, path, owner, stop), daemon=True)
    renewing.start()
    try:
        yield owner
    finally:
        stop.set()
        renewing.join()
        with contextlib.suppress(InputError):
            manager.delete(f"{path}?owner={quote(owner)}")


def _take(manager: Client, path: str, owner: str, cluster: str, tell: Callable[[str], None]) -> None:
    deadline = time.monotonic() + PATIENCE
    waited_for = ""
    while True:
        answer = manager.post(path, {"owner": owner, "seconds": SECONDS})
        if answer["holder"] != owner:
            blocker = f"another command, which changes {cluster} ({answer['holder']})"
        elif answer["moving"]:
            blocker = f"the move of {', '.join(answer['moving'])}"
        else:
            return
        if blocker != waited_for:
            tell(f"waiting for {blocker}")
            waited_for = blocker
        if time.monotonic() > deadline:
            raise InputError(f"{cluster} is not changed: waited {PATIENCE:g} s for {blocker}")
        time.sleep(LOOK)


def _renew(manager: Client, path: str, owner: str, stop: threading.Event) -> None:
    while not stop.wait(RENEWED):
        with contextlib.suppress(InputError):  # the manager may be away for a moment
            manager.post(path, {"owner": owner, "seconds": SECONDS})
