"""What a manager keeps: the same on SQLite and PostgreSQL, and still there when it is opened again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="topolane-sites is not installed with what it needs")
from databases import postgresql
from sqlalchemy import create_engine, text
from topolane import InputError
from topolane.mpi.counts import WatchedProgram
from topolane.mpi.frames import Records
from topolane.mpi.window import Window
from topolane.reading import FileTable
from topolane_sites.files import _database
from topolane_sites.model import Stage
from topolane_sites.program_rows import program_of, program_row, rank_rows
from topolane_sites.state import ManagerDatabase, StateError


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return _database(_reported("kept/sites.db"), tmp_path)
    url = _database(_reported(request.getfixturevalue("server")), tmp_path)
    with create_engine(url).begin() as connection:
        connection.execute(text("drop schema public cascade"))
        connection.execute(text("create schema public"))
    return url


def _reported(state: str) -> FileTable:
    return FileTable({"state": state}, "sites.toml", [], "", 0)


def program() -> WatchedProgram:
    """Three ranks of four that have said something."""
    made = WatchedProgram(
        "p/1", "lu", 4, 1000.5, epoch=3, sites=np.array([0, 1, 1, 0], np.uint16), mpi="MPICH 4.0.2"
    )
    for rank in range(3):
        made.hosts[rank] = f"g{rank}"
        made.rank(rank).add(
            Records.of(1.0, 2.0, 0.5, 0.25, [(3, 0, 2**52, 7, 1), (1, 4, 1, 2**40, 0)], [(2, 9, 99, 0.125)])
        )
        made.rank(rank).windows = {"a": Window(2**62, 5), "b": Window()}
    made.rank(2).gone, made.rank(2).dropped = True, 12
    return made


def same(one: WatchedProgram, other: WatchedProgram) -> None:
    assert program_row(one) == program_row(other)
    assert one.of_rank.keys() == other.of_rank.keys()
    assert rank_rows(one, one.of_rank) == rank_rows(other, other.of_rank)
    assert np.array_equal(one.matrix().counts, other.matrix().counts)


def test_a_program_comes_back_as_it_was_kept(url: str) -> None:
    """All figures, windows and the site map, to the last bit, in a new connection; kept twice it is the newer one."""
    state = ManagerDatabase(url)
    kept = program()
    state.keep([program_row(kept)], rank_rows(kept, kept.of_rank))
    kept.rank(1).add(Records.of(2.0, 1.0, peers=[(0, 0, 1, 1, 1)]))
    kept.ended = 2000.25
    state.keep([program_row(kept)], rank_rows(kept, [1]))
    state.close()
    state = ManagerDatabase(url)
    found = state.program("p/1")
    assert found is not None
    same(program_of(*found), kept)
    assert [row["id"] for row in state.programs()] == ["p/1"]
    assert state.programs(running=True) == []
    assert state.program("p/2") is None
    state.close()


def test_programs_that_ended_long_ago_go(url: str) -> None:
    """Those that ended before a time, with their ranks, and no others."""
    state = ManagerDatabase(url)
    for id, ended in (("old", 10.0), ("new", 30.0), ("runs", None)):
        one = program()
        one.id, one.ended = id, ended
        state.keep([program_row(one)], rank_rows(one, one.of_rank))
    assert state.forget_programs(20.0) == ["old"]
    assert {row["id"] for row in state.programs()} == {"new", "runs"}
    assert state.program("old") is None and state.program("new") is not None
    state.close()


def test_all_of_it_is_kept_or_nothing(url: str) -> None:
    """A row that cannot be kept takes the others of its call with it, and is a StateError."""
    state = ManagerDatabase(url)
    one = program()
    bad = {**rank_rows(one, [0])[0], "host": None}
    with pytest.raises(StateError):
        state.keep([program_row(one)], [*rank_rows(one, [1]), bad])
    assert state.programs() == []
    state.close()


def test_values_moves_and_events(url: str) -> None:
    """Values by kind and name; moves by their numbers; events, the newest first."""
    state = ManagerDatabase(url)
    state.put("guest", "g1", {"host": "e1"})
    state.put("guest", "g1", {"host": "w1"})
    state.put("cluster", "g1", [1])
    assert state.get("guest") == {"g1": {"host": "w1"}}
    assert state.drop("guest", "g1") and not state.drop("guest", "g1")
    first = state.plan_move("g1", "e1", "w1", "because")
    second = state.plan_move("g2", "e1", "w1", "")
    assert second.id > first.id
    from dataclasses import replace

    done = replace(first, stage=Stage.DONE, progress=1.0, detail={"seconds": 2.5})
    state.set_move(done)
    assert [move for move, _ in state.moves()] == [second, done]
    state.add_events([{"time": 1.0, "kind": "k", "subject": "s", "text": str(at)} for at in range(5)])
    assert [event["text"] for event in state.events(2)] == ["4", "3"]
    state.close()


def test_one_manager_alone_has_it(url: str) -> None:
    """While one has it another is refused; afterwards it is not."""
    state = ManagerDatabase(url)
    with pytest.raises(InputError, match="another manager has this database"):
        ManagerDatabase(url)
    state.close()
    ManagerDatabase(url).close()


def test_tables_of_another_version_are_refused(url: str) -> None:
    """And left as they are."""
    ManagerDatabase(url).close()
    with create_engine(url).begin() as connection:
        connection.execute(text("update schema set version = 99"))
    with pytest.raises(InputError, match="version 99; this manager has 1"):
        ManagerDatabase(url)


@pytest.mark.parametrize(
    "url_", ["postgresql+psycopg://absent@/none?host=/nowhere", "sqlite:////dev/null/x.db"]
)
def test_a_database_that_is_not_there_is_said(url_: str) -> None:
    """One sentence, and no password in it."""
    with pytest.raises(InputError, match="state = ") as error:
        ManagerDatabase(url_)
    assert "\n" not in str(error.value)
