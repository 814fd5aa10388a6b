"""Tables for spreadsheets: no text that others chose becomes a formula there."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from topolane._engine import InputError
from topolane.cluster.shadow_log import replay
from topolane.mpi.matrix import FIGURES, KINDS, Recorded, RunFacts, read
from waiting import DEADLINE

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()"]
SIGNS = ("=", "+", "-", "@", "\t", "\r")
FORMULA = '=HYPERLINK("http://example.org")'
LOG = "id,submit,run,nodes\n1,0,60,2\n2,10,60,3\n"
TOY = 'name = "toy"\n[[site]]\nname = "core"\nchildren = [4, 2, 2]\nparents = [1, 2, 2]\n'


def topolane(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MAIN, *words], cwd=folder, capture_output=True, text=True, timeout=DEADLINE)


def cells_of(text: str) -> list[str]:
    """All cells, however a spreadsheet splits the lines and whether it drops blanks in front."""
    return [
        cell
        for delimiter in ",;\t"
        for blanks in (False, True)
        for row in csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=blanks)
        for cell in row
    ]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def formulas(text: str) -> list[str]:
    return [cell for cell in cells_of(text) if cell.startswith(SIGNS) and not is_number(cell)]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_names_of_logs_and_patterns_are_no_formulas(tmp_path: Path, sign: str) -> None:
    """A user whose log or pattern has a name like a formula cannot bring that into jobs.csv."""
    (tmp_path / "toy.toml").write_text(TOY)
    log, pattern = f"{sign}1+cmd.csv", f"{sign}2+cmd.csv"
    (tmp_path / log).write_text(LOG)
    (tmp_path / pattern).write_text("# ranks: 2\nfrom,to,bytes\n0,1,8\n")
    words = ["simulate", "--machine", "toy.toml", f"--trace={log}", "--network", "full", "--out", "out"]
    done = topolane(tmp_path, *words, f"--patterns={pattern}")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "jobs.csv").read_text()
    assert not formulas(text)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["workload_name"] for row in rows} == {f"'{sign}1+cmd"}
    assert {row["pattern"] for row in rows} == {f"'{sign}2+cmd"}


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_hosts_of_a_log_are_no_formulas(tmp_path: Path, sign: str) -> None:
    """A user whose log names hosts like a formula cannot bring them into a workload for spreadsheets."""
    (tmp_path / "log.csv").write_text(f"id,submit,run,nodes,start,hosts\n7,0,60,1,0,{sign}1+cmd\n")
    (tmp_path / "toy.toml").write_text(TOY)
    words = ["--machine", "toy.toml", "--to", "csv", "--out", "again.csv"]
    done = topolane(tmp_path, "workload", "convert", "log.csv", *words)
    assert done.returncode == 2
    assert "job 7 ran on" in done.stderr
    assert not (tmp_path / "again.csv").exists()


@pytest.mark.parametrize("sign", ["=", "+", "@"])
def test_hosts_of_a_shadows_log_are_no_formulas(tmp_path: Path, sign: str) -> None:
    """A user who edits a shadow's log cannot bring a formula into the workload made of it."""
    name = f"{sign}1+cmd"
    machine = f'name = "m"\n[[site]]\nname = "s"\nchildren = [2]\nparents = [1]\nnodes = "{name},b"\n'
    held = {"id": 1, "job": "1", "submit": 0.0, "start": 0.0, "nodes": name, "walltime": 60.0}
    events: list[dict[str, Any]] = [
        {"event": "shadow", "machine": machine, "policy": "first-fit"},
        {"event": "holds"} | held,
        {"event": "ends", "id": 1, "at": 10.0},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    try:
        text = replay(tmp_path / "log.jsonl").csv()
    except InputError:
        return
    assert not formulas(text)


@pytest.mark.parametrize("part", ["submit", "walltime", "start"])
def test_times_of_a_shadows_log_are_numbers(tmp_path: Path, part: str) -> None:
    """A user who edits a shadow's log cannot bring text into the times of the workload made of it."""
    held = {"id": 1, "job": "1", "submit": 0.0, "start": 0.0, "nodes": "toy1", "walltime": 60.0}
    events: list[dict[str, Any]] = [
        {"event": "shadow", "machine": TOY, "policy": "first-fit"},
        {"event": "holds"} | held | {part: FORMULA},
        {"event": "ends", "id": 1, "at": 10.0},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    done = topolane(tmp_path, "slurm", "replay", "log.jsonl", "--csv", "jobs.csv")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "jobs.csv").exists()


@pytest.mark.parametrize(
    "name", [f"x,{FORMULA}", FORMULA, "x;=1+1", "x,+1", "x, -1", "x,\t@a", '","=1+1', "plain-name_2 \\ é"]
)
def test_names_of_programs_are_no_formulas(tmp_path: Path, name: str) -> None:
    """A user who calls a program like a formula cannot bring that into its matrix; the name is read back as it was."""
    counts = np.ones((1, len(KINDS), len(FIGURES)))
    about = RunFacts(
        name, name, "mpi", 2, [name, "b"], [1e-9, 1.0], [0.0, 0.0], [0.0, 0.0], {name: (1, 1, 1e-7)}, []
    )
    text = Recorded(about, np.array([0]), np.array([1]), counts).text()
    assert not formulas(text)
    (tmp_path / "matrix.csv").write_text(text)
    found = read(tmp_path / "matrix.csv").about
    assert (found.program, found.name, found.hosts) == (name, name, [name, "b"])
    assert found.seconds == [1e-9, 1.0] and list(found.calls) == [name]
