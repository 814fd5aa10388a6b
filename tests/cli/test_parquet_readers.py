"""Results as Parquet and Arrow, as pandas, polars, DuckDB and pyarrow read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars
import pytest
import topolane

duckdb = pytest.importorskip("duckdb", reason="the extra tables is not installed")
pandas = pytest.importorskip("pandas", reason="the extra tables is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra tables is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra tables is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "outputs.md"
ARROW = {"text": "large_string", "uint64": "uint64", "int64": "int64", "float64": "double"}
ROW = re.compile(r"^\| (`[^|]*`) \| (text|uint64|int64|float64) \|", re.MULTILINE)


def documented(table: str) -> dict[str, str]:
    """The Arrow type of every column of a table, as the page says."""
    section = re.search(rf"^## {table}\.csv\n(.*?)(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section
    return {
        name: ARROW[kind]
        for names, kind in ROW.findall(section[1])
        for name in re.findall(r"`([^`]+)`", names)
    }


@pytest.fixture
def out(topolane: Any, toy: Path, log: Path) -> Path:
    """The directory of a run that has all tables but that of failures."""
    words = ("--network", "congestion", "--policy", "dedicated", "--defrag", 0.5, "--parquet", "--no-report")
    topolane("simulate", "--machine", toy, "--trace", log, *words, "--out", "out", "--json")
    return topolane.directory / "out"


TABLES = ("jobs", "utilization", "links", "job-links", "head-waits", "moves")


def test_columns_have_the_types_of_the_page(topolane: Any, toy: Path, log: Path, out: Path) -> None:
    """Names and types in the files are those of the reference page."""
    for table in TABLES:
        found = parquet.read_schema(out / f"{table}.parquet")
        page = documented(table)
        assert {field.name: str(field.type) for field in found} == {
            name: page[name] for name in found.names
        }, table
        optional = {"affected", "gpus", "taken"} if table == "jobs" else set()
        assert set(page) - set(found.names) == optional, table
    failing = ("--failures", "50,5", "--parquet", "--no-report", "--out", "failing", "--json")
    topolane("simulate", "--machine", toy, "--trace", log, *failing)
    for table in ("failures", "jobs"):
        schema = parquet.read_schema(out.parent / "failing" / f"{table}.parquet")
        assert {field.name: str(field.type) for field in schema}.items() <= documented(table).items()


@pytest.mark.parametrize("table", TABLES)
def test_pandas_polars_and_duckdb_read_the_same(out: Path, table: str) -> None:
    """All of them read the same rows, with the same nulls."""
    path = out / f"{table}.parquet"
    rows = polars.read_parquet(path).rows()
    assert duckdb.sql(f"SELECT * FROM '{path}'").fetchall() == rows
    frame = pandas.read_parquet(path, engine="pyarrow", dtype_backend="pyarrow")
    missing_as_none = frame.astype(object).where(frame.notna(), None)
    assert [tuple(row) for row in missing_as_none.to_numpy().tolist()] == rows
    assert rows or table == "moves"


def test_duckdb_asks_over_all_runs(topolane: Any, toy: Path, log: Path) -> None:
    """A query over the files of a comparison gives what its summary says."""
    words = (
        "--policies",
        "first-fit,isolated",
        "--scenarios",
        "none",
        "--parquet",
        "--no-report",
        "--jobs",
        1,
    )
    topolane("compare", "--machine", toy, "--trace", log, *words, "--out", "both", "--json")
    files = topolane.directory / "both" / "runs" / "*" / "jobs.parquet"
    query = f"SELECT filename, avg(waiting_time), count(*) FROM read_parquet('{files}', filename = true) GROUP BY 1"
    rows = duckdb.sql(query).fetchall()
    assert len(rows) == 2, "one run for each policy"
    for name, mean, count in rows:
        jobs = polars.read_csv(Path(name).with_suffix(".csv"))
        assert count == jobs.height == 40
        assert mean == pytest.approx(jobs["waiting_time"].mean(), abs=1e-5)


def test_arrow_streams_are_read_without_files(toy: Path, log: Path) -> None:
    """pyarrow, DuckDB and pandas read a table of a run by Arrow's interface."""
    run = topolane.simulate(topolane.sources.workload(str(log)), topolane.machine(toy), policy="first-fit")
    jobs = pyarrow.table(run.tables["jobs"])
    assert jobs.to_pylist() == polars.DataFrame(run.tables["jobs"]).to_dicts()
    assert duckdb.sql("SELECT count(*) FROM jobs").fetchall() == [(40,)]
    assert jobs.to_pandas()["waiting_time"].mean() == pytest.approx(run.jobs["waiting_time"].mean())
