"""Deletes old records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topolane_sites.manager import Manager


def forget(manager: Manager) -> None:
    """Deletes programs that ended, guests that stopped and moves that finished more than `keep` days ago.

    Raises StateError.

    """
    now = time.time()
    before = now - 86400 * manager.config.keep
    for old in manager.state.forget_programs(before):
        manager.receiver.forget(old)
        if manager.remaining.pop(old, None) is not None:
            manager.state.drop("remaining", old)
        if manager.homes.pop(old, None) is not None:
            manager.state.drop("home", old)
        if manager.corrections.pop(old, None) is not None:
            manager.state.drop("correction", old)
    manager.state.forget_moves(before)
    manager.inventory.forget(before, now)
