"""What all scheduler processes of a cloud have given and plan to give: two tables in Nova's API database.

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

from topolane.nova import own_tables
from topolane.nova.concurrent_requests import SECONDS, Entry
from topolane.nova.own_tables import UNUSABLE
from topolane.nova.unanswered import Unanswered

LOG = logging.getLogger(__name__)

KEPT_SECONDS = 600.0
"""Seconds for which a claim is kept whose servers may not be on their hosts yet."""
RENEWED_SECONDS = 30.0
"""Seconds after which a request that is still placed writes its claim again."""
RESTS_SECONDS = 30.0
"""Seconds for which groups without a promise do not try the tables again after an error."""
TRIES_AT_ONCE = 5
"""How often a request tries: a table may be missing, or locked by another scheduler."""
TRIES_OF_PROMISE = 40
"""How often a group that must be isolated tries, in about seven seconds, before it is refused."""
LONGEST_SECONDS = 10.0
"""Seconds after which no request tries again: each try may wait for a server that does not answer."""
LONGEST_PAUSE = 0.5
"""Seconds between two tries."""

METADATA = sa.MetaData()
CLAIMS = sa.Table(
    "topolane_claims",
    METADATA,
    sa.Column("request", sa.String(36), primary_key=True),
    sa.Column("updated", sa.BigInteger, nullable=False),  # seconds since 1970
    sa.Column(
        "claim",
        sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql").with_variant(mysql.MEDIUMTEXT(), "mariadb"),
        nullable=False,
    ),
    # The index on the time, in the form that a database makes in one statement with the table.
    sa.UniqueConstraint("updated", "request"),
)
VERSION = sa.Table(
    "topolane_claims_version",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

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
    """The claims of all schedulers."""

    def __init__(self, wanted: bool) -> None:
        """wanted: if not, every process goes by its own requests."""
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

    def prepare(self, context: Any) -> None:
        """Makes the tables, before the first request needs them. If that fails, the first request tries again."""
        if not self._wanted:
            return
        try:
            _make_tables(context)
            self._ready = True
        except UNUSABLE as error:
            LOG.warning("The tables of claims are not there yet: %s", _first_line(error))

    def read(self, context: Any, *, needed: bool) -> Claims | None:
        """The claims of other processes; None if they are not known, or not wanted.

        needed: the request must not be decided without them. Raises Unanswered then.
        """
        return self._ask(context, lambda: self._read(context), needed)

    def write(
        self, context: Any, request: str, claim: Claim | None, version: int | None, *, needed: bool
    ) -> bool:
        """Writes the claim of a request, or takes it away. Returns False if the claims have changed since `version`.

        version: None: it is written in any case. needed: the others must see it. Raises Unanswered if it cannot be
        written then.
        """
        return self._ask(context, lambda: _write(context, request, claim, version), needed) is not False

    def wait(self, attempt: int) -> None:
        """Lets the others finish before a decision is made again."""
        time.sleep(random.uniform(0.0, min(LONGEST_PAUSE, 0.02 * (attempt + 1))))

    def _read(self, context: Any) -> Claims:
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

    def _ask(self, context: Any, ask: Callable[[], T], needed: bool) -> T | None:
        """The answer of the tables, which are made if they are missing."""
        rests, why = time.monotonic() < self._rests_until, ""
        if not self._wanted or (rests and not needed):
            return None
        tries = TRIES_OF_PROMISE if needed and not rests else TRIES_AT_ONCE
        until = time.monotonic() + LONGEST_SECONDS
        for attempt in range(tries):
            try:
                if not self._ready:
                    _make_tables(context)
                    self._ready = True
                answer = ask()
            except UNUSABLE as error:
                self._ready = False
                why = _first_line(error)
                if attempt + 1 == tries or time.monotonic() > until:
                    break
                self.wait(attempt)
            else:
                if self._warned:
                    LOG.info("Claims are shared with other schedulers again.")
                self._warned, self._rests_until = False, -float("inf")
                return answer
        self._rests_until = time.monotonic() + RESTS_SECONDS
        if not self._warned:
            LOG.warning(
                "Claims are not shared with other schedulers, so no isolated group is placed, and others are placed "
                "without the claims: %s",
                why,
            )
        self._warned = True
        if needed:
            raise Unanswered("it is not known what other schedulers place now", why)
        return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _make_tables(context: Any) -> None:
    """Makes the tables and their first version, if they are missing. Several schedulers may do so at once."""
    own_tables.make(CLAIMS, VERSION)
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
