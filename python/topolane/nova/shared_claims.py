"""What all scheduler processes of a cloud have given and plan to give: two tables beside Nova's API database.

A decision reads the claims of the others with a version number, and writes its own only if the version is still
the same. So of two decisions at the same time one is made again, and sees the claim of the other.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from nova.db.api import api as api_db
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy.dialects import mysql

from topolane.nova.concurrent_requests import SECONDS, Entry

LOG = logging.getLogger(__name__)

KEPT_SECONDS = 600.0
"""Seconds for which a claim is kept whose servers may not be on their hosts yet."""
RENEWED_SECONDS = 30.0
"""Seconds after which a request that is still placed writes its claim again."""
RESTS_SECONDS = 30.0
"""Seconds for which the tables are not tried again after an error."""
TRIES = 12
"""How often a decision is made before it is written whatever the others did."""

METADATA = sa.MetaData()
CLAIMS = sa.Table(
    "topolane_claims",
    METADATA,
    sa.Column("request", sa.String(36), primary_key=True),
    sa.Column("updated", sa.BigInteger, nullable=False, index=True),  # seconds since 1970
    sa.Column("claim", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql"), nullable=False),
)
VERSION = sa.Table(
    "topolane_claims_version",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

UNUSABLE = (
    db_exception.DBError,
    db_exception.CantStartEngineError,
    sa.exc.SQLAlchemyError,
    LookupError,
    TypeError,
    ValueError,
)
"""What a database raises that does not answer, has no tables, or holds no claims in them."""

T = TypeVar("T")


class Given(NamedTuple):
    """A server with the host that it was given."""

    server: str
    host: str
    source: str | None
    """Its host before, if it moves."""


class Claim(NamedTuple):
    """What a request of some scheduler has given and plans to give."""

    group: str
    server: str
    """The server that was placed when the claim was written."""
    hosts: list[str]
    """The hosts of all members of the group, and those that are planned."""
    given: list[Given]
    planned: list[str]
    dedicated: bool

    def entry(self) -> Entry:
        """The same as of a request of this process."""
        given = [one.host for one in self.given]
        return Entry(self.group, self.hosts, given, self.dedicated, 0.0, tuple(self.planned), self.server)


class Claims(NamedTuple):
    """The claims of all requests but those of this process, at one version."""

    version: int
    by_request: dict[str, tuple[Claim, float]]
    """With the age of each in seconds."""


class SharedClaims:
    """The claims of all schedulers. Without the tables, every process goes by its own requests."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._own: dict[str, float] = {}
        self._ready = False
        self._rests_until = -float("inf")
        self._warned = False

    def new_request(self) -> str:
        """The identity of a request of this process."""
        now = time.monotonic()
        self._own = {key: then for key, then in self._own.items() if now - then < 2 * KEPT_SECONDS}
        identity = str(uuid.uuid4())
        self._own[identity] = now
        return identity

    def read(self, context: Any) -> Claims | None:
        """The claims of other processes; None if they are not known."""
        return self._try(lambda: self._read(context))

    def write(self, context: Any, request: str, claim: Claim | None, version: int | None) -> bool:
        """Writes the claim of a request, or takes it away; whether it was written.

        version: it is not written if the claims have changed since. None: it is written in any case.
        """
        try:
            return self._try(lambda: _write(context, request, claim, version)) is not False
        except db_exception.DBDeadlock:
            return False

    def wait(self, attempt: int) -> None:
        """Lets the others finish before a decision is made again."""
        time.sleep(random.uniform(0.0, 0.02 * (attempt + 1)))

    def _read(self, context: Any) -> Claims:
        if not self._ready:
            _make_tables(context)
            self._ready = True
        version, rows = _rows(context)
        now = time.time()
        found = {}
        for request, updated, text in rows:
            if request not in self._own:
                said = json.loads(text)
                given = [Given(*one) for one in said.pop("given")]
                claim, age = Claim(given=given, **said), max(0.0, now - updated)
                found[request] = (claim if age < SECONDS else claim._replace(planned=[]), age)
        return Claims(version, found)

    def _try(self, ask: Callable[[], T]) -> T | None:
        if not self._wanted or time.monotonic() < self._rests_until:
            return None
        try:
            answer = ask()
        except db_exception.DBDeadlock:
            raise
        except UNUSABLE as error:
            self._rests_until = time.monotonic() + RESTS_SECONDS
            self._ready = False
            if not self._warned:
                LOG.warning(
                    "Claims are not shared with other schedulers, so isolated groups that are requested at the same "
                    "time may share links: %s",
                    str(error).partition("\n")[0],
                )
            self._warned = True
            return None
        if self._warned:
            LOG.info("Claims are shared with other schedulers again.")
        self._warned = False
        return answer


def _make_tables(context: Any) -> None:
    """Makes the tables if they are missing and the database's user may; several schedulers may do so at once."""
    try:
        METADATA.create_all(api_db.get_engine())
    except UNUSABLE as error:
        LOG.debug("The tables of claims were not made: %s", error)
    try:
        _first_version(context)
    except db_exception.DBDuplicateEntry:
        LOG.debug("Another scheduler wrote the first version.")


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _first_version(context: Any) -> None:
    if context.session.execute(sa.select(VERSION.c.version)).first() is None:
        context.session.execute(VERSION.insert().values(id=1, version=0))


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _rows(context: Any) -> tuple[int, list[Any]]:
    """The version first: what is written after it makes the version old. From the writer, which is never behind."""
    version = context.session.execute(sa.select(VERSION.c.version)).scalar_one()
    since = int(time.time() - KEPT_SECONDS)
    rows = sa.select(CLAIMS.c.request, CLAIMS.c.updated, CLAIMS.c.claim).where(CLAIMS.c.updated >= since)
    return version, list(context.session.execute(rows))


@api_db.context_manager.writer  # type: ignore[untyped-decorator]
def _write(context: Any, request: str, claim: Claim | None, version: int | None) -> bool:
    session = context.session
    if version is not None:
        step = VERSION.update().where(VERSION.c.version == version).values(version=version + 1)
        if session.execute(step).rowcount != 1:
            return False
    now = int(time.time())
    session.execute(CLAIMS.delete().where(CLAIMS.c.request == request))
    if claim is not None:
        text = json.dumps(claim._asdict())
        session.execute(CLAIMS.insert().values(request=request, updated=now, claim=text))
        session.execute(CLAIMS.delete().where(CLAIMS.c.updated < now - 2 * KEPT_SECONDS))
    return True
