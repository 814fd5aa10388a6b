"""Counts the requests that the filter refuses, by reason, in a table next to those of Nova's API database."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import api as api_db
from oslo_db import exception as db_exception
from oslo_log import log as logging

from topolane.nova import own_tables
from topolane.nova.own_tables import UNUSABLE
from topolane.nova.refusal_table import REFUSALS

LOG = logging.getLogger(__name__)

WRITTEN_SECONDS = 5.0
"""Seconds between writes to the table."""
RESTS_SECONDS = 30.0
"""Seconds without another try after an error."""


class RefusalCounts:
    """The refusals of this process that are not yet in the table. A background thread adds them, so no
    request waits.
    """

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()
        self._process: int | None = None
        self._warned = False
        self._lock = threading.Lock()

    def add(self, kind: str) -> None:
        """Counts a request that was refused for this reason."""
        with self._lock:
            self._waiting[kind] += 1
            if self._process == os.getpid():
                return
            self._process = os.getpid()  # Threads do not survive a fork.
        threading.Thread(target=self._run, name="topolane-refusals", daemon=True).start()

    @property
    def waiting(self) -> int:
        """How many refusals are not yet in the table."""
        with self._lock:
            return self._waiting.total()

    def _run(self) -> None:
        while True:
            time.sleep(WRITTEN_SECONDS if self.write() else RESTS_SECONDS)

    def write(self) -> bool:
        """Adds the waiting counts to the table. Returns False, and keeps the counts, if the database fails."""
        with self._lock:
            counts = +self._waiting
        if not counts:
            return True
        try:
            own_tables.make(REFUSALS)
            context = nova_context.get_admin_context()
            for kind, count in sorted(counts.items()):
                _add(context, kind, count)
                with self._lock:
                    self._waiting[kind] -= count
        except UNUSABLE as error:
            if not self._warned:
                LOG.warning("Refusals are not counted for metrics: %s", str(error).partition("\n")[0])
            self._warned = True
            return False
        self._warned = False
        return True


def _add(context: Any, kind: str, count: int) -> None:
    if _increase(context, kind, count):
        return
    try:
        _insert(context, kind, count)
    except db_exception.DBDuplicateEntry:
        _increase(context, kind, count)


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _increase(context: Any, kind: str, count: int) -> bool:
    more = REFUSALS.update().where(REFUSALS.c.kind == kind).values(requests=REFUSALS.c.requests + count)
    return bool(context.session.execute(more).rowcount == 1)


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _insert(context: Any, kind: str, count: int) -> None:
    context.session.execute(sa.insert(REFUSALS).values(kind=kind, requests=count))
