"""Arrays nested deep, numbers of thousands of digits and endless files: one sentence, not a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hostile_files import ARRAYS, DIGITS, MAIN, TABLES, limited, refused, refused_by, topolane
from waiting import DEADLINE


def log(*events: str) -> str:
    first = {"event": "shadow", "machine": 'name = "m"\nchildren = [4]\n', "policy": "first-fit"}
    return "\n".join([json.dumps(first), *events, ""])


@pytest.mark.parametrize("value", [ARRAYS, TABLES, DIGITS, "[" * 900 + "]" * 900, "1e400", "NaN"])
@pytest.mark.parametrize(
    "event",
    [
        "{}",
        '{{"event": "ends", "id": {}}}',
        '{{"event": "ends", "id": 1, "at": {}}}',
        '{{"event": "service", "out": {}}}',
        '{{"event": "holds", "id": 1, "job": "1", "submit": 0, "start": 0, "nodes": {}, "walltime": 1}}',
        '{{"event": "holds", "id": 1, "submit": 0, "start": 0, "nodes": "m1", "walltime": 1, "share": {}}}',
        '{{"event": "start", "id": 1, "submit": 0, "start": 0, "nodes": "m1", "walltime": 1, "policy": {}}}',
        '{{"event": "start", "id": 1, "submit": 0, "start": {}, "nodes": "m1", "walltime": 1, "policy": 1}}',
    ],
)
def test_a_log_of_deep_arrays_or_long_numbers(tmp_path: Path, event: str, value: str) -> None:
    """A user who gives a log with arrays nested deep or numbers of thousands of digits gets no traceback."""
    (tmp_path / "log.jsonl").write_text(log(event.format(value)))
    done = topolane(tmp_path, "slurm", "replay", "log.jsonl")
    if done.returncode not in (0, 1):
        refused(done, "log.jsonl:")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("value", [ARRAYS, TABLES, DIGITS], ids=["arrays", "tables", "digits"])
@pytest.mark.parametrize("what", ["nova plan", "matrix", "measurements"])
def test_a_json_file_of_deep_arrays_or_long_numbers(tmp_path: Path, what: str, value: str) -> None:
    """A user who gives a JSON file with arrays nested deep or numbers of thousands of digits gets no traceback."""
    file = tmp_path / "file"
    if what == "matrix":
        file.write_text(f'# ranks: 2\n# topolane mpi: {{"a": {value}}}\nfrom,to,bytes\n0,1,1\n')
        refused(topolane(tmp_path, "mpi", "show", "file"), "file:2:")
    elif what == "measurements":
        file.write_text(f'{{"calibrate": 1, "measurements": 1, "hosts": ["a"]}}\n{{"pattern": {value}}}\n')
        refused(topolane(tmp_path, "calibrate", "--from", "file"), "file: line 2")
    else:
        file.write_text(value)
        refused_by(
            "from pathlib import Path; from topolane.nova.migration_plan import read; read(Path({file!r}))",
            file,
        )


@pytest.mark.parametrize(
    "words",
    [
        ("slurm", "replay", "/dev/zero"),
        ("place", "/dev/zero"),
    ],
)
def test_a_file_without_end(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A user who names a file without end cannot fill the memory."""
    refused(topolane(tmp_path, *words, preexec_fn=limited), "/dev/zero")


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    """A bounded reader takes what a command writes into a pipe."""
    (tmp_path / "state.json").write_text('{"machine": "cab", "request": {"nodes": 2}}')
    script = 'exec "$@" <(cat state.json)'
    words = ["bash", "-c", script, "bash", *MAIN, "place"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
