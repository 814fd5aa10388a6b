"""Whatever a file holds, a reader answers with a machine or a workload, or with one sentence."""

from __future__ import annotations

import gzip

import pytest
import topolane
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topolane import outages, traffic
from topolane.cli import calibrate, place, placed, routes
from topolane.nova import migration_plan

quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

GOOD = {
    "log.swf": b"; MaxNodes: 8\n; MaxProcs: 16\n1 0 5 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n"
    b"2 10 5 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n",
    "log.csv": b"id,submit,run,nodes,walltime,hosts\n1,0,10,2,100,n[1-2]\n2,5,10.5,1,,\n",
    "log.txt": b"JobIDRaw|Submit|Start|End|NNodes|NodeList|ReqMem|NCPUS\n"
    b"1|2026-03-01T00:00:00|2026-03-01T00:00:10|2026-03-01T00:10:10|2|n[1-2]|4Gn|8\n",
    "m.toml": b'name = "x"\n[[site]]\nname = "a"\nchildren = [4, 2]\nparents = [1, 2]\ncables = [1, 2]\n',
    "topology.conf": b"SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=c Switches=a,b\n",
}
tokens = st.sampled_from(
    [
        b"-1",
        b"nan",
        b"inf",
        b"1e308",
        b"18446744073709551616",
        b"\xff",
        b"\x00",
        b"\n",
        b";",
        b"|",
        b",",
        b"[",
        b"]",
        b"=",
    ]
) | st.binary(max_size=6)
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), tokens), min_size=1, max_size=4)


def edited(content: bytes, changes) -> bytes:
    """Content with some bytes replaced by others."""
    for where, taken, put in changes:
        at = int(where * len(content))
        content = content[:at] + put + content[at + taken :]
    return content


def in_one_sentence(error: topolane.InputError, path) -> None:
    sentence = str(error)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence and len(sentence) < 600


@pytest.mark.parametrize("name", ["log.swf", "log.csv", "log.txt"])
@quick
@given(changes=edits, packed=st.booleans(), shared=st.booleans())
def test_logs(tmp_path, name, changes, packed, shared):
    path = tmp_path / name
    content = gzip.compress(edited(GOOD[name], changes)) if packed else edited(GOOD[name], changes)
    path.write_bytes(content)
    try:
        jobs = topolane.workload(path, 1296, shape=topolane.Shape(shared=shared))
    except topolane.InputError as error:
        in_one_sentence(error, path)
        return
    assert len(jobs) + sum(jobs.left_out.values()) >= 1
    assert (jobs.columns()["nodes"] >= 1).all()


@quick
@given(changes=edits)
def test_damaged_gzip(tmp_path, changes):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(b"\x1f\x8b" + edited(gzip.compress(GOOD["log.swf"])[2:], changes))
    try:
        topolane.workload(path)
    except topolane.InputError as error:
        in_one_sentence(error, path)


@pytest.mark.parametrize("name", ["m.toml", "topology.conf"])
@quick
@given(changes=edits)
def test_machines(tmp_path, name, changes):
    path = tmp_path / name
    path.write_bytes(edited(GOOD[name], changes))
    try:
        machine = topolane.machine(path)
    except topolane.InputError as error:
        in_one_sentence(error, path)
        return
    assert machine.nodes >= 1
    assert topolane.Machine.parse(machine.to("toml"), "again.toml").nodes == machine.nodes


@quick
@given(
    name=st.text(max_size=20) | st.from_regex(r"fat-tree\((radix|pods)=[0-9-]{1,12}(, ?pods=[0-9]{1,3})?\)")
)
def test_names(name):
    for read in (topolane.machine, topolane.workload):
        if name.strip("/. \x00") == "" or (read is topolane.workload and name.startswith("exp-")):
            continue
        try:
            read(name)
        except topolane.InputError as error:
            assert str(error)


@quick
@given(hosts=st.text(alphabet="cab[]-,0123456789 ", max_size=20))
def test_hostlists(hosts):
    machine = topolane.machine("cab")
    try:
        nodes = machine.nodes_named(hosts)
    except topolane.InputError as error:
        assert "\n" not in str(error)
        return
    assert sorted(machine.nodes_named(machine.hostlist(nodes))) == sorted(nodes)


@quick
@given(
    days=st.none() | st.floats(),
    nodes_x=st.none() | st.floats(),
    squeeze=st.none() | st.floats(),
    load=st.none() | st.floats(),
    walltime=st.none() | st.floats(),
    scenario=st.sampled_from(["none", "v1", "v2", "10"]) | st.text(max_size=5),
)
def test_shapes(toy, days, nodes_x, squeeze, load, walltime, scenario):
    whole = topolane.workload("exp-3", seed=1)
    try:
        jobs = whole.shaped(toy.nodes, days=days, nodes_x=nodes_x, squeeze=squeeze, load=load, limit=30)
        run = topolane.simulate(jobs, toy, policy="isolated", scenario=scenario, default_walltime=walltime)
    except topolane.InputError as error:
        assert str(error) and "\n" not in str(error)
        return
    assert run.summary["jobs"] == len(jobs) == len(run.jobs)


READ_IN_PYTHON = {
    "outages.csv": (
        b"name,from,until\nleaf0->pod0-s0,0,10\nleaf1,,\n3,5,\n",
        lambda path, machine: outages.read(path, machine),
    ),
    "jobs.csv": (
        b'id,nodes,pattern\n7,toy[1-4],stencil4d\n8,"toy[5-6,8]",\n',
        lambda path, machine: placed.jobs(machine, str(path), pattern="alltoall"),
    ),
    "jobs.json": (
        b'{"running": [{"id": 7, "nodes": "toy[1-4]", "pattern": "alltoall"}, {"id": "b", "nodes": [4, 5]}]}',
        lambda path, machine: placed.jobs(machine, str(path), pattern="alltoall"),
    ),
    "state.json": (
        b'{"running": [{"id": 7, "nodes": "toy[1-4]", "cores": 2, "memory": 5, "links": [16], "bandwidth_share": 0.5}], "down": [9]}',
        lambda path, machine: place.state_of(machine, place.read(str(path))),
    ),
    "owned.json": (
        b'{"running": [{"id": 7, "nodes": "toy[1-4]", "links": [16, 17], "lent": [18]}]}',
        lambda path, machine: routes.jobs_of(machine, place.read(str(path)), str(path)),
    ),
    "traffic.csv": (
        b"# ranks: 4\nfrom,to,bytes,messages\n0,1,1e6,2\n3,2,5,1\n",
        lambda path, _: traffic.read_traffic(path),
    ),
    "measurements.jsonl": (
        (
            b'{"calibrate": 1, "measurements": 1, "hosts": ["a", "b"]}\n'
            b'{"pattern": "pairs", "sharers": 1, "bytes": 8, "seconds": 1e-6, "low": 1e-6, "high": 2e-6, "repetitions": 5}\n'
            b'{"end": 1}\n'
        ),
        lambda path, _: calibrate.read(str(path)),
    ),
    "plan.json": (
        (
            b'{"version": 1, "start": {"g": 4.0}, "migrations": [{"server": "s", "name": "n", "group": "g", "source": "a", '
            b'"target": "b", "before": 4, "after": 2}]}'
        ),
        lambda path, _: migration_plan.read(path),
    ),
}


@pytest.mark.parametrize("name", READ_IN_PYTHON)
@quick
@given(changes=edits | st.binary(max_size=60))
def test_readers_in_python(tmp_path, toy, name, changes):
    content, read = READ_IN_PYTHON[name]
    path = tmp_path / name
    path.write_bytes(changes if isinstance(changes, bytes) else edited(content, changes))
    try:
        read(path, toy)
    except topolane.InputError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 1000


@pytest.mark.parametrize("name", READ_IN_PYTHON)
def test_what_is_damaged_is_whole_before(tmp_path, toy, name):
    content, read = READ_IN_PYTHON[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path, toy)
