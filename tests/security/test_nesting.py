"""Arrays nested deep, numbers of thousands of digits and endless files: one sentence, not a traceback."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import DEADLINE

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()"]
DEEP = 100_000
ARRAYS = "[" * DEEP + "]" * DEEP
TABLES = '{"a":' * DEEP + "0" + "}" * DEEP
DIGITS = "9" * 5000
HEXADECIMAL = "0x" + "f" * 5000


def topolane(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *words], cwd=folder, capture_output=True, text=True, timeout=DEADLINE, **more
    )


def refused(done: subprocess.CompletedProcess[str], *says: str) -> None:
    """One sentence, not long, exit code 2."""
    assert done.returncode == 2, (done.returncode, done.stderr[-2000:])
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("topolane: ") and len(sentence) < 1000
    for part in says:
        assert part in sentence


READERS = {
    "jobs file": (("gang", "run"), "jobs.toml", '[[job]]\nname = "a"\ncommand = {}\n'),
    "sites file": (("sites", "run", "--config"), "sites.toml", "[manager]\nstate = {}\n"),
}


@pytest.mark.parametrize("value", [ARRAYS, HEXADECIMAL, DIGITS], ids=["arrays", "hexadecimal", "digits"])
@pytest.mark.parametrize("reader", READERS)
def test_a_toml_file_of_deep_arrays_or_long_numbers(tmp_path: Path, reader: str, value: str) -> None:
    """A user who gives a TOML file with arrays nested deep or numbers of thousands of digits gets no traceback."""
    words, name, text = READERS[reader]
    (tmp_path / name).write_text(text.format(value))
    refused(topolane(tmp_path, *words, name), name)


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
@pytest.mark.parametrize("what", ["nova plan", "matrix", "measurements", "cluster file"])
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
        file.write_text(f"name = {value.replace(':', '=')}\n" if what == "cluster file" else value)
        script = READS[what].format(file=str(file))
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE
        )
        assert done.stdout.startswith(str(file)), done.stderr[-1000:]
        assert len(done.stdout.splitlines()) == 1


READ = (
    "from topolane._engine import InputError\ntry:\n    {}\nexcept InputError as error:\n    print(error)\n"
)
READS = {
    "nova plan": READ.format(
        "from topolane.nova.plan import Plan; from pathlib import Path; Plan.read(Path('{file}'))"
    ),
    "cluster file": READ.format(
        "from topolane_sites.clusters import read_cluster; read_cluster('{file}', (), ())"
    ),
}


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize(
    "words",
    [
        ("gang", "run", "/dev/zero"),
        ("slurm", "replay", "/dev/zero"),
        ("sites", "run", "--config", "/dev/zero"),
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


def test_a_request_of_deep_arrays(tmp_path: Path) -> None:
    """A client that sends an agent's daemon arrays nested deep is answered, and the daemon goes on."""
    import socket
    import threading

    from topolane_gang.daemon import Daemon

    class Agent:
        cores = (0,)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "control"))
    listener.listen()
    agent: Any = Agent()
    Daemon(agent, listener)
    failed: list[Any] = []
    hook: Callable[..., Any] = threading.excepthook
    threading.excepthook = failed.append
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(DEADLINE)
            client.connect(str(tmp_path / "control"))
            client.sendall(ARRAYS.encode() + b"\n")
            answer = client.recv(65536)
    finally:
        threading.excepthook = hook
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    assert b"refused" in answer and not failed
