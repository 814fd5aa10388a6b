"""The readers written in Python under garbage: each answers with a value or with one sentence, whatever it reads."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import topolane
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topolane._engine import InputError

CORPUS = Path(__file__).parent / "corpus-python"
EXAMPLES = 60
MACHINE = 'name = "m"\n[[site]]\nname = "s"\nchildren = [4, 2]\nparents = [1, 2]\n'
SEEN = {"time": 2.0, "pods": 2, "share": [1, 0, 0]}
HELD = {"time": 1.0, "job": "1", "partition": "p", "submit": 0.0, "start": 0.0, "walltime": None}


def _sites(path: Path) -> Any:
    pytest.importorskip("sqlalchemy", reason="the extra sites is not installed")
    from topolane_sites.files import read_config

    return read_config(path)


def _cluster(path: Path) -> Any:
    pytest.importorskip("psutil", reason="the extra sites is not installed")
    from topolane_sites.clusters import read_cluster
    from topolane_sites.model import Host

    hosts = (
        Host("a1", "a", 2, 2 << 30, "qmp", "/nowhere/a1"),
        Host("b1", "b", 2, 2 << 30, "qmp", "/nowhere/b1"),
    )
    return read_cluster(path, hosts, ())


def _jobs(path: Path) -> Any:
    from topolane_gang.jobs_file import read

    return read(path)


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
    from topolane.nova.plan import Plan

    return Plan.read(path)


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
GUEST = 'name = "g1"\ncores = 1\nmemory = "256 MiB"\naddress = "10.42.0.1"\nkernel = "/etc/passwd"\n'

Reader = Callable[[Path], Any]
READERS: dict[str, tuple[Reader, str, str]] = {
    "sites": (
        _sites,
        "sites.toml",
        (
            '[manager]\nlisten = ["unix:/run/t/api.sock"]\nstate = "sites.db"\ninterval = 2\nmoves-at-once = 3\n'
            '[[site]]\nname = "east"\n[[site.host]]\nname = "e1"\ncores = 8\nmemory = "16 GiB"\n'
            '[[site]]\nname = "west"\n[[site.host]]\nname = "w1"\ncores = 8\nmemory = 1073741824\n'
            '[[link]]\nbetween = ["east", "west"]\nlatency = 0.005\nbandwidth = 1.25e8\nwindow = "4 MiB"\n'
            '[[guest]]\nname = "g1"\ncores = 2\nmemory = "1 GiB"\nhost = "w1"\n'
        ),
    ),
    "cluster": (
        _cluster,
        "cluster.toml",
        'name = "c"\nnetwork = "10.42.0.0/24"\n[[host]]\nname = "a1"\ntunnel = "192.0.2.1"\n'
        '[[host]]\nname = "b1"\nrun = ["ssh", "b1"]\ntunnel = "192.0.2.2"\nbehind-nat = true\n[[guest]]\n'
        + GUEST,
    ),
    "jobs": (
        _jobs,
        "jobs.toml",
        (
            '[[job]]\nname = "solver"\ncommand = ["mpiexec", "./solver"]\nthreads = 2\nweight = 2.0\nwatch = true\n'
            'environment = { OMP_NUM_THREADS = "1" }\n[[job]]\nname = "other"\ncommand = "true"\n'
        ),
    ),
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

NASTY = (
    *(
        "null",
        "true",
        '""',
        "[]",
        "{}",
        "[[]]",
        '"\\u0000"',
        '"\\ud800"',
        "[1, [2]]",
        '{"a": 1}',
        "a",
        ",",
        "\n",
    ),
    *("-1", "0", "1e400", "-1e400", "1e-400", "NaN", "nan", "inf", "Infinity", "-Infinity", "1.5", "-0"),
    *(str(2**31), str(2**32), str(2**63), str(2**64), "9" * 400, "9" * 5000, "0x" + "f" * 5000),
    *("[" * 200 + "]" * 200, "[" * 950 + "]" * 950, "[" * 3000 + "]" * 3000, '{"a":' * 950 + "1" + "}" * 950),
    *('"' + "x" * 5000 + '"', "\x00", "\x1b[2J", "\u2028", "é", "1979-05-27T07:32:00Z", "07:32:00", "'''"),
    *('"cab[1-99999999]"', '"m[1-8]"', "'../../etc'", '"="', '"1 GiB"', "[[x]]", "[x]", "a.b.c = 1"),
)
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w-]*|[0-9][0-9.e+-]*|[][{}=,:]|\n')

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 400), st.sampled_from(NASTY)),
        st.tuples(st.just("swap"), st.integers(0, 400), st.integers(0, 400)),
        st.tuples(st.just("drop"), st.integers(0, 400), st.integers(1, 4)),
        st.tuples(st.just("again"), st.integers(0, 400), st.integers(1, 12)),
        st.tuples(st.just("text"), st.integers(0, 400), st.text(max_size=8)),
        st.tuples(st.just("bytes"), st.integers(0, 2000), st.binary(min_size=1, max_size=4)),
        st.tuples(st.just("cut"), st.integers(0, 2000), st.just(0)),
    ),
    min_size=1,
    max_size=4,
)


def mutated(text: str, changes: list[tuple[str, int, Any]]) -> bytes:
    """A good file with some of its words changed, moved, removed or doubled."""
    words = [word for part in re.split(f"({TOKEN.pattern})", text) if (word := part)]
    raw: list[tuple[str, int, Any]] = []
    for how, place, what in changes:
        at = place % max(1, len(words))
        if how in ("put", "text"):
            words[at : at + 1] = [what]
        elif how == "swap" and words:
            other = what % len(words)
            words[at], words[other] = words[other], words[at]
        elif how == "drop":
            del words[at : at + what]
        elif how == "again":
            words[at:at] = words[at : at + what]
        else:
            raw.append((how, place, what))
    content = "".join(words).encode("utf-8", "surrogatepass")
    for how, place, what in raw:
        at = place % (len(content) + 1)
        content = content[:at] if how == "cut" else content[:at] + what + content[at + len(what) :]
    return content


def answers(reader: Reader, path: Path) -> bool:
    """Whether it is a good file; else the reader must say what is wrong, in one sentence."""
    try:
        reader(path)
    except InputError as error:
        # What a terminal would obey or break is escaped where the command line prints a sentence.
        said = str(error)
        assert said.strip() and len(said) < 20_000
        assert "Traceback" not in said
        return False
    return True


@pytest.mark.parametrize("name", READERS)
def test_the_files_that_are_mutated_are_good(name: str, tmp_path: Path) -> None:
    """A mutation of what is refused anyway would find nothing."""
    reader, file, text = READERS[name]
    (tmp_path / file).write_text(text)
    try:
        reader(tmp_path / file)
    except InputError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=mutations)
def test_a_mutated_file_gets_a_value_or_a_sentence(name: str, changes: Any, tmp_path: Path) -> None:
    """A user who gives a damaged or hostile file gets one sentence, never a traceback."""
    reader, file, text = READERS[name]
    (tmp_path / file).write_bytes(mutated(text, changes))
    answers(reader, tmp_path / file)


@pytest.mark.parametrize(
    "file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}"
)
def test_what_once_broke_a_reader_gets_a_sentence(file: Path, tmp_path: Path) -> None:
    """A file that once ended in a traceback ends in one sentence, or is read."""
    reader, name, _ = READERS[file.parent.name]
    (tmp_path / name).write_bytes(file.read_bytes())
    answers(reader, tmp_path / name)


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.binary(max_size=64), max_size=6), st.binary(max_size=64))
def test_frames_of_garbage_end_in_the_protocols_own_error(parts: list[bytes], payload: bytes) -> None:
    """A program that sends garbage gets a protocol error, in whatever parts the garbage comes."""
    from topolane.mpi.frames import Decoder, FrameError, Hello, Kind, Records, encode, sites_of

    decoder = Decoder()
    try:
        for part in (*(encode(kind, payload) for kind in Kind), *parts):
            for frame in decoder.feed(part):
                for reads in (Hello.decode, lambda body: Records.decode(body, 4), sites_of):
                    with contextlib.suppress(FrameError):
                        reads(frame.payload)
    except FrameError:
        pass
