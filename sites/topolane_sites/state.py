"""The database of a manager: SQLite, or PostgreSQL by URL. When a call returns, its changes are committed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Table, create_engine, delete, event, func, inspect, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from topolane._engine import InputError

from topolane_sites import schema
from topolane_sites.model import Move, Stage

_LOCK = 0x746F706F  # any number that no other program takes: "topo"
_MOST_EVENTS = 10_000
Row = dict[str, Any]


class StateError(OSError):
    """An error of the database, as a sentence. The attempted changes are not stored."""


class ManagerDatabase:
    """A database that only this manager uses. Its calls block. They may come from any thread, one at a time."""

    def __init__(self, url: str) -> None:
        """Opens the database, and creates missing tables.

        Raises InputError if it cannot be opened, has another version, or is used by another manager.
        """
        shown = make_url(url).render_as_string(hide_password=True)
        self._lock: Any = None
        try:
            self._engine = create_engine(url, pool_pre_ping=True)
            if self._engine.dialect.name == "sqlite":
                self._lock_file(Path(make_url(url).database or "sites.db"))
                event.listen(self._engine, "connect", _durable)
            else:
                self._lock_session(shown)
            with self._engine.begin() as connection:
                self._check_version(connection, shown)
        except SQLAlchemyError as error:
            self.close()
            raise InputError(f"state = {shown}: {_first_line(error)}") from error
        except InputError:
            self.close()
            raise

    def close(self) -> None:
        """Closes the database, so that another manager can use it."""
        if self._lock is not None:
            self._lock.close()
        self._engine.dispose()

    # Programs.

    def keep(self, programs: Iterable[Row], ranks: Iterable[Row]) -> None:
        """Stores programs and their ranks: all of them or, with StateError, none."""
        with self._begin() as connection:
            self._put(connection, schema.programs, list(programs))
            self._put(connection, schema.ranks, list(ranks))

    def programs(self, *, running: bool = False) -> list[Row]:
        """All programs, or those that have not ended; newest first."""
        query = select(schema.programs).order_by(schema.programs.c.started.desc())
        if running:
            query = query.where(schema.programs.c.ended.is_(None))
        return self._rows(query)

    def program(self, id: str) -> tuple[Row, list[Row]] | None:
        """A program and its ranks."""
        found = self._rows(select(schema.programs).where(schema.programs.c.id == id))
        ranks = select(schema.ranks).where(schema.ranks.c.program == id).order_by(schema.ranks.c.rank)
        return (found[0], self._rows(ranks)) if found else None

    def forget_programs(self, before: float) -> list[str]:
        """Deletes the programs that ended before a time. Returns their ids."""
        with self._begin() as connection:
            old = select(schema.programs.c.id).where(schema.programs.c.ended < before)
            ids = [row.id for row in connection.execute(old)]
            for id in ids:
                connection.execute(delete(schema.ranks).where(schema.ranks.c.program == id))
                connection.execute(delete(schema.programs).where(schema.programs.c.id == id))
        return ids

    # Values by kind and name.

    def put(self, kind: str, name: str, value: object) -> None:
        """Stores a value that JSON can represent."""
        self.put_all([(kind, name, value)])

    def put_all(self, values: Iterable[tuple[str, str, object]]) -> None:
        """Stores values (kind, name, value): all of them or, with StateError, none."""
        rows = [{"kind": kind, "name": name, "value": json.dumps(value)} for kind, name, value in values]
        if rows:
            with self._begin() as connection:
                self._put(connection, schema.values, rows)

    def get(self, kind: str) -> dict[str, Any]:
        """All values of a kind by name."""
        rows = self._rows(select(schema.values).where(schema.values.c.kind == kind).order_by("name"))
        return {row["name"]: json.loads(row["value"]) for row in rows}

    def drop(self, kind: str, name: str) -> bool:
        """Deletes a value. Returns whether it existed."""
        with self._begin() as connection:
            which = (schema.values.c.kind == kind) & (schema.values.c.name == name)
            return connection.execute(delete(schema.values).where(which)).rowcount > 0

    # The journal of moves.

    def plan_move(self, guest: str, source: str, target: str, why: str) -> Move:
        """Journals a move before it begins."""
        move = {"guest": guest, "source": source, "target": target, "why": why}
        row = move | {"stage": Stage.PLANNED, "progress": 0.0, "detail": "{}", "changed": time.time()}
        with self._begin() as connection:
            made = connection.execute(schema.moves.insert().values(row)).inserted_primary_key
        assert made is not None
        return Move(made[0], guest, source, target, why=why)

    def set_move(self, move: Move) -> None:
        """Journals the stage of a move."""
        row = {"stage": move.stage, "why": move.why, "progress": move.progress}
        row |= {"detail": json.dumps(move.detail), "changed": time.time()}
        with self._begin() as connection:
            connection.execute(update(schema.moves).where(schema.moves.c.id == move.id).values(row))

    def moves(self, limit: int | None = None) -> list[tuple[Move, float]]:
        """Moves, newest first, with the time of the last change."""
        query = select(schema.moves).order_by(schema.moves.c.id.desc()).limit(limit)
        return [(_move(row), row["changed"]) for row in self._rows(query)]

    def forget_moves(self, before: float) -> None:
        """Deletes the moves that ended before a time."""
        over = schema.moves.c.stage.in_([Stage.DONE, Stage.ROLLED_BACK, Stage.LOST])
        with self._begin() as connection:
            connection.execute(delete(schema.moves).where(over & (schema.moves.c.changed < before)))

    # Events.

    def add_events(self, rows: list[Row]) -> None:
        """Stores events (time, kind, subject, text). The newest 10,000 are kept."""
        if not rows:
            return
        with self._begin() as connection:
            connection.execute(schema.events.insert(), rows)
            newest = connection.execute(select(func.max(schema.events.c.id))).scalar_one()
            connection.execute(delete(schema.events).where(schema.events.c.id <= newest - _MOST_EVENTS))

    def events(self, limit: int) -> list[Row]:
        """The newest first."""
        return self._rows(select(schema.events).order_by(schema.events.c.id.desc()).limit(limit))

    # Inside.

    @contextlib.contextmanager
    def _begin(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StateError(_first_line(error)) from error

    def _rows(self, query: Any) -> list[Row]:
        with self._begin() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def _put(self, connection: Connection, table: Table, rows: list[Row]) -> None:
        if not rows:
            return
        dialect: Any = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        insert = dialect.insert(table)
        keys = [column.name for column in table.primary_key]
        others = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
        connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=others), rows)

    def _check_version(self, connection: Connection, shown: str) -> None:
        if not inspect(connection).has_table("schema"):
            schema.tables.create_all(connection)
            connection.execute(schema.schema.insert().values(version=schema.VERSION))
            return
        version = connection.execute(select(schema.schema.c.version)).scalar_one_or_none()
        if version != schema.VERSION:
            raise InputError(
                f"state = {shown}: its tables are of version {version}; this manager has {schema.VERSION}"
            )

    def _lock_file(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _private(Path(f"{path}.lock"))
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _private(path).close()
            for journal in (Path(f"{path}-wal"), Path(f"{path}-shm")):
                if journal.exists():  # SQLite makes new ones with the mode of the database
                    journal.chmod(0o600)
        except BlockingIOError as error:
            raise InputError(f"state = {path}: another manager has this database") from error
        except OSError as error:
            raise InputError(f"state = {path}: {error.strerror}") from error

    def _lock_session(self, shown: str) -> None:
        self._lock = self._engine.connect()
        # A server gives up the lock of a manager that has ended a moment after that.
        self._lock.execute(text("set local lock_timeout = '2s'"))
        try:
            self._lock.execute(text("select pg_advisory_lock(:key)"), {"key": _LOCK})
        except OperationalError as error:
            raise InputError(f"state = {shown}: another manager has this database") from error
        self._lock.commit()  # the lock is the session's, and stays


def _private(path: Path) -> IO[bytes]:
    """Opens or creates a file that only its owner may read."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return open(descriptor, "r+b")


def _durable(connection: Any, _: object) -> None:
    # Every commit reaches the disk: what was acknowledged survives a loss of power.
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")


def _move(row: Mapping[str, Any]) -> Move:
    return Move(
        id=row["id"],
        guest=row["guest"],
        source=row["source"],
        target=row["target"],
        stage=Stage(row["stage"]),
        why=row["why"],
        progress=row["progress"],
        detail=json.loads(row["detail"]),
    )


def _first_line(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
