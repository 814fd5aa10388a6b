"""The hosts that all scheduler processes of a cloud have given or plan to give, in two tables of Nova's API
database.

A decision reads the claims of the others with a version number, and writes its own only if the version is
still the same. So if two decisions overlap, one is made again and sees the other's claim.
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
from topolane.nova.concurrent_requests import SECONDS, ConcurrentRequest
from topolane.nova.own_tables import UNUSABLE
from topolane.nova.unanswered import Unanswered

LOG = logging.getLogger(__name__)

KEPT_SECONDS = 600.0
"""A claim is kept for this many seconds, because its servers may not be on their hosts earlier."""
RENEWED_SECONDS = 30.0
"""Seconds after which a request that is still being placed renews its claim."""
RESTS_SECONDS = 30.0
"""Seconds after an error during which groups without isolation do not try the tables."""
TRIES_AT_ONCE = 5
"""How often a request without isolation tries: a table may be missing, or locked by another scheduler."""
TRIES_OF_PROMISE = 40
"""How often a group that must be isolated tries, over about seven seconds, before it is refused."""
LONGEST_SECONDS = 10.0
"""Seconds after which no request retries: each try may wait for a server that does not answer."""
LONGEST_PAUSE = 0.5
"""The longest pause between two tries, in seconds."""

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
    # An index on `updated`, as a constraint because databases create these in one statement with the table.
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
    """A server and the host that it was given."""

    server: str
    host: str
    source: str | None
    """The previous host of a server that moves."""


class Claim(NamedTuple):
    """The hosts that a request, of any scheduler, has given or plans to give."""

    group: str
    server: str
    """The server that was being placed when the claim was written."""
    hosts: list[str]
    """The hosts of all members of the group, including planned ones."""
    given: list[Given]
    planned: list[str]
    dedicated: bool

    def entry(self) -> ConcurrentRequest:
        """The claim in the form of this process's own requests."""
        given = [one.host for one in self.given]
        return ConcurrentRequest(
            self.group, self.hosts, given, self.dedicated, 0.0, tuple(self.planned), self.server
        )


class Claims(NamedTuple):
    """The claims of other processes at one version."""

    version: int
    by_request: dict[str, tuple[Claim, float]]
    """Each claim with its age in seconds."""


class SharedClaims:
    """The claims of all schedulers."""

    def __init__(self, wanted: bool) -> None:
        """wanted: if false, each process considers only its own requests."""
        self._wanted = wanted
        self._own: dict[str, float] = {}
        self._ready = False
        self._rests_until = -float("inf")
        self._warned = False

    def new_request(self) -> str:
        """A new identity for a request of this process."""
        now = time.monotonic()
        self._own = {key: then for key, then in self._own.items() if now - then < 2 * KEPT_SECONDS}
        identity = str(uuid.uuid4())
        self._own[identity] = now
        return identity

    def prepare(self, context: Any) -> None:
        """Creates the tables before the first request needs them. If that fails, the first request tries
        again.
        """
        if not self._wanted:
            return
        try:
            _make_tables(context)
            self._ready = True
        except UNUSABLE as error:
            LOG.warning("The tables of claims are not there yet: %s", _first_line(error))

    def read(self, context: Any, *, needed: bool) -> Claims | None:
        """The claims of other processes; None if they cannot be read or are not wanted.

        needed: raises Unanswered if they cannot be read.
        """
        return self._ask(context, lambda: self._read(context), needed)

    def write(
        self, context: Any, request: str, claim: Claim | None, version: int | None, *, needed: bool
    ) -> bool:
        """Writes the claim of a request; None removes it. Returns False if the claims have changed since
        `version`.

        version: None writes in any case. needed: raises Unanswered if the claim cannot be written.
        """
        return self._ask(context, lambda: _write(context, request, claim, version), needed) is not False

    def wait(self, attempt: int) -> None:
        """Sleeps for a random time before a decision is made again, so that the others can finish."""
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
        """The result of `ask`, after the tables are created if missing."""
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
    """Creates the tables and their first version if they are missing. Several schedulers may do so at once."""
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
    """The version and the recent claims. The version is read first, so that a later write makes it outdated;
    it is read from the writer, because replicas may be behind.
    """
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
