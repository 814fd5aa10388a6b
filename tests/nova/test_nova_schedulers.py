"""Several schedulers at once: what one plans, the others keep off."""

from __future__ import annotations

import contextlib
import datetime
import logging
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import api_databases
import pytest
from cloud_process import missing

pytest.importorskip("nova", reason="the extra nova-test is not installed")

import sqlalchemy as sa
from api_databases import MariaDB
from nova import config as nova_config
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from topolane.nova import own_tables
from topolane.nova.members import known_servers
from topolane.nova.refusal_table import REFUSALS
from topolane.nova.refusals import RefusalCounts
from topolane.nova.shared_claims import CLAIMS, VERSION, Claim, Claims, Given, SharedClaims
from topolane.nova.unanswered import Unanswered

ROOT = Path(__file__).resolve().parents[2]
CLAIM = Claim("group", "server1", ["host1", "host2"], [Given("server1", "host1", None)], ["host2"], True)
DATABASES = ("sqlite", "mariadb")


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDB]:
    if (why := api_databases.missing()) is not None:
        pytest.skip(why)
    with MariaDB() as server:
        yield server


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database for Nova's API."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/api.sqlite"
    server: MariaDB = request.getfixturevalue("mariadb")
    return server.new()


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    """Nova's API database is this one."""
    manager = enginefacade.transaction_context()
    manager.configure(connection=url, max_retries=0, sqlite_fk=False)
    reset = api_db.context_manager.patch_factory(manager)
    found = api_db.get_engine()
    try:
        yield found
    finally:
        reset()
        found.dispose()


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler does not wait before it tries again, so that a test of what never works is quick."""
    monkeypatch.setattr(SharedClaims, "wait", lambda self, attempt: None)


def read(claims: SharedClaims, needed: bool = False) -> Claims | None:
    return claims.read(nova_context.get_admin_context(), needed=needed)


def write(claims: SharedClaims, version: int | None, needed: bool = False) -> bool:
    context, request = nova_context.get_admin_context(), claims.new_request()
    return claims.write(context, request, CLAIM, version, needed=needed)


def at_once(engine: sa.Engine, act: Callable[[int], Any]) -> list[Any]:
    """What two threads answer that both find a table or a row missing before either makes it."""
    ours = re.compile(r"\s*(CREATE TABLE|INSERT INTO)(?: IF NOT EXISTS)? (topolane_\w+)")
    barriers: dict[tuple[str, ...], threading.Barrier] = {}
    met: set[tuple[object, ...]] = set()
    ended, lock = threading.Event(), threading.Lock()

    def meet(connection: object, cursor: object, statement: str, *rest: object) -> None:
        found = ours.match(statement)
        with lock:
            if found is None or ended.is_set() or (found.groups(), threading.get_ident()) in met:
                return
            met.add((found.groups(), threading.get_ident()))
            barrier = barriers.setdefault(found.groups(), threading.Barrier(2))
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(60)

    def run(number: int) -> Any:
        try:
            return act(number)
        finally:
            with lock:  # the other one waits no longer for this one
                ended.set()
                for barrier in barriers.values():
                    barrier.abort()

    sa.event.listen(engine, "before_cursor_execute", meet)
    try:
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(run, range(2)))
    finally:
        sa.event.remove(engine, "before_cursor_execute", meet)


def test_two_schedulers_that_make_the_tables_at_once_see_each_other(engine: sa.Engine) -> None:
    """Both have found that a table is missing before either makes it, and the same of the version's row. Both can use the
    tables at once, and of two decisions by the same version one is made again."""
    schedulers = SharedClaims(True), SharedClaims(True)
    seen = at_once(engine, lambda number: read(schedulers[number]))
    assert [None if claims is None else claims.version for claims in seen] == [0, 0]
    assert write(schedulers[0], 0)
    assert not write(schedulers[1], 0)
    again = read(schedulers[1])
    assert again is not None
    assert [claim for claim, _ in again.by_request.values()] == [CLAIM]
    assert write(schedulers[1], again.version)


def test_two_schedulers_that_count_their_first_refusal_at_once_count_both(engine: sa.Engine) -> None:
    counts = RefusalCounts(), RefusalCounts()
    for one in counts:
        one._waiting["never"] += 1
    assert at_once(engine, lambda number: counts[number].write()) == [True, True]
    with engine.connect() as connection:
        assert list(connection.execute(sa.select(REFUSALS))) == [("never", 2)]


def test_tables_that_the_operator_has_made_need_no_right_to_make_tables(engine: sa.Engine) -> None:
    """No statement makes a table that is there."""
    own_tables.make(CLAIMS, VERSION)
    made: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *said: made.append(said[2].split()[0]))
    assert read(SharedClaims(True)) is not None
    assert "CREATE" not in made


def test_a_table_that_goes_is_made_again_at_once(engine: sa.Engine) -> None:
    """Whichever is missing, and whether it is noticed by reading or by writing."""
    claims = SharedClaims(True)
    for table in (CLAIMS, VERSION):
        assert read(claims) is not None
        table.drop(engine)
        assert read(claims) is not None
        table.drop(engine)
        assert write(claims, None)
        found = read(SharedClaims(True))
        assert found is not None
        assert CLAIM in [claim for claim, _ in found.by_request.values()]


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another scheduler holds the database until this one pauses for the first time: it tries again, and has the claims."""
    manager = enginefacade.transaction_context()
    manager.configure(connection=f"sqlite:///{tmp_path}/api.sqlite?timeout=0", max_retries=0)
    reset = api_db.context_manager.patch_factory(manager)
    other = sa.create_engine(f"sqlite:///{tmp_path}/api.sqlite")
    try:
        claims = SharedClaims(True)
        assert read(claims) is not None
        with other.connect() as connection:
            for needed in (False, True):
                connection.exec_driver_sql("BEGIN EXCLUSIVE")
                paused: list[int] = []

                def pause(self: SharedClaims, attempt: int, paused: list[int] = paused) -> None:
                    if not paused:
                        connection.exec_driver_sql("ROLLBACK")
                    paused.append(attempt)

                monkeypatch.setattr(SharedClaims, "wait", pause)
                assert read(claims, needed) is not None
                assert paused == [0]
    finally:
        reset()
        other.dispose()


@contextlib.contextmanager
def spoiled(engine: sa.Engine) -> Iterator[None]:
    """The table of the version is another one, which cannot be used."""
    VERSION.drop(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {VERSION.name} (id INTEGER)")
    yield
    VERSION.drop(engine)


@contextlib.contextmanager
def stopped(server: MariaDB) -> Iterator[None]:
    server.stop()
    yield
    server.start()


@pytest.mark.parametrize("how", ["another table", "no server"])
def test_claims_that_cannot_be_used_are_never_taken_for_none(
    engine: sa.Engine, how: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that needs them is refused with a reason, whether it reads or writes. Other requests go on, and the log says
    so once for each scheduler. Once the database is back, both kinds have the claims again."""
    if how == "no server" and engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no server")
    gone = spoiled(engine) if how == "another table" else stopped(request.getfixturevalue("mariadb"))
    one, other = SharedClaims(True), SharedClaims(True)
    for claims in (one, other):
        assert read(claims, needed=True) is not None
    caplog.set_level(logging.INFO, "topolane.nova.shared_claims")
    with gone:
        for _ in range(3):
            assert read(one) is None
        for _ in range(2):
            with pytest.raises(Unanswered, match="it is not known what other schedulers place now"):
                read(one, needed=True)
        with pytest.raises(Unanswered):
            write(other, 0, needed=True)
    levels = [record.levelname for record in caplog.records if record.name == "topolane.nova.shared_claims"]
    assert levels == ["WARNING", "WARNING"]
    assert "no isolated group is placed" in caplog.text
    for claims in (one, other):
        assert read(claims, needed=True) is not None
    assert caplog.text.count("Claims are shared with other schedulers again") == 2


@pytest.fixture
def context(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> nova_context.RequestContext:
    """Of a scheduler. The database of Nova's API has Nova's tables, and no cell."""
    with contextlib.suppress(cfg.ArgsAlreadyParsedError):
        nova_config.parse_args(["scheduler"], default_config_files=[], configure_db=False)
    objects.register_all()
    api_models.BASE.metadata.create_all(engine)
    monkeypatch.setattr(nova_context, "CELLS", [])
    monkeypatch.setattr(nova_context, "CELL_CACHE", {})
    return nova_context.get_admin_context()


def add_cell(context: nova_context.RequestContext, name: str, identity: str, database: str) -> None:
    """A new cell with the database at this URL."""
    cell = objects.CellMapping(context, name=name, uuid=identity, transport_url="none:///", disabled=False)
    cell.database_connection = database
    cell.create()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_cell_that_does_not_answer_is_missed_only_by_what_needs_it(
    context: nova_context.RequestContext, tmp_path: Path
) -> None:
    """The database of one cell has no tables. An isolated group could share links with the servers that it runs."""
    for name, identity in (("cell0", objects.CellMapping.CELL0_UUID), ("cell1", str(uuid.uuid4()))):
        add_cell(context, name, identity, f"sqlite:///{tmp_path}/{name}.sqlite")
    assert known_servers(context, ["server1"]) == {}
    with pytest.raises(Unanswered, match="a cell does not answer"):
        known_servers(context, ["server1"], needed=True)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_evacuation_that_ends_while_it_is_read_holds_its_new_host(
    context: nova_context.RequestContext, mariadb: MariaDB
) -> None:
    """Nova writes the new host and ends the migration right after any statement of the reader. Statements of one
    transaction may see different states: as in PostgreSQL, and in MySQL if the operator wants it so."""
    database = f"{mariadb.new()}&init_command=SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    add_cell(context, "cell1", str(uuid.uuid4()), database)
    servers = sa.create_engine(database)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    instances, migrations = main_models.Instance.__table__, main_models.Migration.__table__
    row = {"uuid": "server", "host": "old", "vm_state": "active", "deleted": 0, "hidden": False}
    move = {"instance_uuid": "server", "source_compute": "old", "dest_compute": "new", "deleted": 0}
    with servers.begin() as connection:
        for table in (instances, migrations):
            connection.execute(sa.schema.CreateTable(table))
        connection.execute(sa.insert(instances).values(**row, created_at=now, updated_at=now))
        connection.execute(sa.insert(migrations).values(**move, uuid="evacuation", status="running"))

    def evacuated(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM instances" in statement:
            with servers.begin() as connection:
                connection.execute(sa.update(instances).values(host="new"))
                connection.execute(sa.update(migrations).values(status="done"))

    sa.event.listen(sa.Engine, "after_cursor_execute", evacuated)
    try:
        seen = known_servers(context, ["server"])["server"]
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", evacuated)
    assert "new" in (seen.host, *seen.elsewhere)
    assert known_servers(context, ["server"])["server"].host == "new"


def test_a_scheduler_that_shares_no_claims_asks_no_database() -> None:
    """The operator said that there is no other one."""
    assert read(SharedClaims(False), needed=True) is None
    assert write(SharedClaims(False), None, needed=True)


@pytest.mark.components
def test_groups_requested_of_four_schedulers_share_nothing_and_none_is_refused(url: str) -> None:
    """Also in the first round, for which all make the tables, and where one of them is killed. Without shared claims, no
    round of eight went well."""
    if absent := missing():
        pytest.skip(f"the extra nova-test is not installed: {', '.join(absent)} cannot be imported")
    command = [
        sys.executable,
        str(ROOT / "benches/run.py"),
        "nova/rounds",
        "--rounds",
        "4",
        "--schedulers",
        "4",
    ]
    done = subprocess.run([*command, "--api", url], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shared links in 0 rounds, 0 groups refused" in done.stdout
