"""The readers written in Python under garbage: each answers with a value or with one sentence, whatever it reads."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import topolane
from hypothesis import given, settings
from hypothesis import strategies as st
from mutated_files import Readers, files_of, mutations, name_of, read, read_mutated, some_cases

CORPUS = Path(__file__).parent / "corpus-python"
MACHINE = 'name = "m"\n[[site]]\nname = "s"\nchildren = [4, 2]\nparents = [1, 2]\n'
SEEN = {"time": 2.0, "pods": 2, "share": [1, 0, 0]}
HELD = {"time": 1.0, "job": "1", "partition": "p", "submit": 0.0, "start": 0.0, "walltime": None}


def _log(path: Path) -> Any:
    from topolane.cluster.shadow_log import past, replay

    past(path, "isolated", topolane.machine("cab"))
    found = replay(path)
    return found.summary.as_json(), found.csv()


def _kubeconfig(path: Path) -> Any:
    pytest.importorskip("yaml", reason="the extra kubernetes is not installed")
    from topolane.kubernetes.kubeconfig import access

    return access(str(path))


def _matrix(path: Path) -> Any:
    from topolane.mpi.matrix import read
    from topolane.mpi.summary import summary

    recorded = read(path)
    return summary(recorded), recorded.text()


def _outages(path: Path) -> Any:
    from topolane.outages import read

    return read(path, topolane.machine("cab"))


def _placed(path: Path) -> Any:
    from topolane.cli.placed import jobs

    return jobs(topolane.machine("cab"), str(path), pattern="ring")


def _plan(path: Path) -> Any:
    from topolane.nova.migration_plan import read

    return read(path)


def _measurements(path: Path) -> Any:
    from topolane.cli.calibrate import read

    return read(str(path))


def _topology(path: Path) -> Any:
    return topolane.machine(path)


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


ABOUT = {
    "program": "p",
    "name": "n",
    "mpi": "mpich",
    "ranks": 2,
    "hosts": ["a", "b"],
    "seconds": [1.0, 2.0],
    "in_mpi": [0.5, 0.5],
    "skew": [0.1, 0.1],
    "calls": {"MPI_Send": [1, 8, 0.1]},
    "unfinished": [1],
}
MATRIX = "# ranks: 2\n# entries: 1\n# topolane mpi: " + json.dumps(ABOUT) + "\n"
MATRIX += "from,to,bytes,messages,turns," + ",".join(
    f"{kind}_{one}"
    for kind in ("point_to_point", "modelled", "two_level", "one_sided")
    for one in ("messages", "bytes", "turns")
)
MATRIX += "\n0,1,8,1,1,1,8,1,0,0,0,0,0,0,0,0,0\n"
MOVE = {"server": "u", "name": "s", "group": "g", "source": "a", "target": "b", "before": 2.0, "after": 1.0}
ROW = {
    "pattern": "pairs",
    "sharers": 1,
    "bytes": 8,
    "seconds": 1e-6,
    "low": 1e-6,
    "high": 2e-6,
    "repetitions": 5,
}

READERS: Readers = {
    "log": (
        _log,
        "log.jsonl",
        _lines(
            {"time": 1.0, "event": "shadow", "machine": MACHINE, "policy": "isolated", "slurm": "v0.0.42"},
            {"time": 1.0, "event": "service", "out": "m7"},
            HELD | {"event": "holds", "id": 2, "nodes": "m8", "links": [0], "bandwidth_share": 0.5},
            HELD
            | {"event": "start", "id": 1, "nodes": "m[1-2]", "eligible": "m[1-6]", "share": {"cores": 2}}
            | {"aph": 0.0, "shares_with": 0, "plugin": "stock"}
            | {"policy": {"nodes": "m[1-2]", "aph": 0.0, "shares_with": 0}},
            HELD
            | {"event": "start", "id": 3, "nodes": "", "not_asked": "the machine does not name its nodes"},
            {"time": 1.0, "event": "ends", "id": 1, "at": 10.0},
        ),
    ),
    "cluster-log": (
        _log,
        "log.jsonl",
        _lines(
            {
                "time": 1.0,
                "event": "shadow",
                "machine": MACHINE,
                "policy": "isolated",
                "system": "kubernetes",
            },
            HELD | SEEN | {"event": "holds", "id": 2, "job": "d/b", "nodes": "m8"},
            HELD
            | SEEN
            | {"event": "start", "id": 1, "job": "d/a", "nodes": "m[1-2]", "aph": 0.0, "shares_with": 0}
            | {
                "free": {"1": "m[1-6]"},
                "room": {"1": "m[1-8]"},
                "plugin": "stock",
                "policy": {"nodes": "m[1-2]", "aph": 0.0, "shares_with": 0},
            },
            HELD | SEEN | {"event": "start", "id": 3, "job": "d/c", "nodes": "", "not_asked": "no node"},
            {"time": 4.0, "event": "ends", "id": 1, "at": 10.0},
        ),
    ),
    "kubeconfig": (
        _kubeconfig,
        "kubeconfig",
        (
            "current-context: one\ncontexts:\n- name: one\n  context: {cluster: c, user: u}\nclusters:\n- name: c\n"
            '  cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}\nusers:\n- name: u\n  user: {token: t}\n'
        ),
    ),
    "matrix": (_matrix, "matrix.csv", MATRIX),
    "outages": (_outages, "outages.csv", "name,from,until\ncab1,0,100\ncab2,5.5,\n3,,7e3\n"),
    "placed": (
        _placed,
        "placed.json",
        _lines(
            {"running": [{"id": 1, "nodes": "cab[1-4]"}, {"id": "b", "nodes": [5, 6], "pattern": "ring"}]}
        ),
    ),
    "placed-csv": (_placed, "placed.csv", 'id,nodes,pattern\n1,"cab[1-2,4]",ring\n2,cab5,\n'),
    "plan": (
        _plan,
        "plan.json",
        json.dumps(
            {"version": 1, "migrations": [MOVE | {"state": "planned"}], "start": {"g": 2.0}, "in_order": True}
        ),
    ),
    "measurements": (
        _measurements,
        "measurements.jsonl",
        _lines({"calibrate": 1, "measurements": 1, "hosts": ["a", "b"]}, ROW, {"end": 1}),
    ),
    "topology": (_topology, "topology.toml", MACHINE),
}


@pytest.mark.parametrize("name", READERS)
def test_the_files_that_are_mutated_are_good(name: str, tmp_path: Path) -> None:
    """A mutation of what is refused anyway would find nothing."""
    assert read(READERS[name], tmp_path) is None


@pytest.mark.parametrize("name", READERS)
@some_cases
@given(changes=mutations)
def test_a_mutated_file_gets_a_value_or_a_sentence(name: str, changes: Any, tmp_path: Path) -> None:
    """A user who gives a damaged or hostile file gets one sentence, never a traceback."""
    read_mutated(READERS[name], changes, tmp_path)


@pytest.mark.parametrize("file", files_of(CORPUS), ids=name_of)
def test_what_once_broke_a_reader_gets_a_sentence(file: Path, tmp_path: Path) -> None:
    """A file that once ended in a traceback ends in one sentence, or is read."""
    read(READERS[file.parent.name], tmp_path, file.read_bytes())


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.binary(max_size=64), max_size=6), st.binary(max_size=64))
def test_frames_of_garbage_end_in_the_protocols_own_error(parts: list[bytes], payload: bytes) -> None:
    """A program that sends garbage gets a protocol error, in whatever parts the garbage comes."""
    from topolane.mpi.frames import Decoder, FrameError, FrameKind, Hello, Records, encode, sites_of

    decoder = Decoder()
    try:
        for part in (*(encode(kind, payload) for kind in FrameKind), *parts):
            for frame in decoder.feed(part):
                for reads in (Hello.decode, lambda body: Records.decode(body, 4), sites_of):
                    with contextlib.suppress(FrameError):
                        reads(frame.payload)
    except FrameError:
        pass
