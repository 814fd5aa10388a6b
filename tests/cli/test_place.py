"""`topolane place`: one decision from a state and a request in JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topolane import machine


def state(request: dict | int, **more: object) -> str:
    return json.dumps({"request": {"nodes": request} if isinstance(request, int) else request, **more})


def place(topolane, toy, text: str, *options: object, code: int = 0):
    return json.loads(topolane("place", "--machine", toy, "--json", *options, stdin=text, code=code))


def test_a_placement_in_json(topolane, toy):
    answer = place(topolane, toy, state(6, running=[{"id": 1, "nodes": "toy[1-4]"}]), "--policy", "first-fit")
    # toy[5-8] are leaf 1 of pod 0, toy[9-10] are of pod 1: 4 x 2 pairs at 4 hops, of 15 pairs.
    assert answer == {
        "placed": True,
        "nodes": [4, 5, 6, 7, 8, 9],
        "hosts": [f"toy{number}" for number in range(5, 11)],
        "aph": pytest.approx(32 / 15),
        "least_aph": pytest.approx(16 / 15),
        "hop_bytes": 32.0,
    }


def test_a_placement_in_words(topolane, toy):
    text = topolane("place", "--machine", toy, stdin=state(4))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines] == ["nodes", "APH", "hop-bytes"]
    assert lines[0].endswith(" toy[1-4]")


@pytest.mark.parametrize(("wanted", "refusal"), [(17, "never"), (13, "not-now"), (3, "would-share-links")])
def test_a_refusal_says_why_and_exits_with_1(topolane, toy, wanted, refusal):
    # On every leaf 2 nodes are busy; jobs over both pods cross every uplink.
    busy = [{"id": 1, "nodes": "toy[1,5,9,13]"}]
    if refusal != "would-share-links":
        busy = [{"id": 1, "nodes": "toy[1-4]"}]
    else:
        busy += [{"id": 2, "nodes": "toy[2,6,10,14]", "cores": 1}]
    text = state(wanted, running=busy)
    answer = place(topolane, toy, text, "--policy", "isolated", code=1)
    assert (answer["placed"], answer["refusal"]) == (False, refusal)
    assert answer["why"]
    first, *obstacles = topolane("place", "--machine", toy, stdin=text, code=1).splitlines()
    assert first == f"not placed, {refusal}: {answer['why']}"
    assert len(obstacles) == len(answer.get("obstacles", []))


def test_a_refusal_names_the_groups_and_jobs_in_the_way(topolane, toy):
    """Job 1 or 2 crosses every leaf, where six nodes would have to lie in one pod; too few nodes are too few."""
    text = state(6, running=[{"id": 1, "nodes": "toy[1,9]"}, {"id": 2, "nodes": "toy[5,13]"}])
    answer = place(topolane, toy, text, "--policy", "isolated", code=1)
    rows = [(one["group"], one["level"], one["free"], one["jobs"]) for one in answer["obstacles"]]
    assert answer["refusal"] == "would-share-links"
    assert rows == [("leaf0", 1, 3, [1]), ("leaf1", 1, 3, [2]), ("leaf2", 1, 3, [1]), ("leaf3", 1, 3, [2])]
    assert all(one["missing"] == "uplinks" and one["count"] == one["of"] > 0 for one in answer["obstacles"])
    answer = place(topolane, toy, state(13, running=[{"id": 1, "nodes": "toy[1-4]"}]), code=1)
    (one,) = answer["obstacles"]
    assert (one["missing"], one["count"], one["free"], one["jobs"]) == ("slots", 1, 12, [1])


def test_links_and_spare_nodes_are_those_of_the_placement(topolane, toy):
    """They come with the nodes in one answer: also where the job shares nodes, and only nodes of it have links."""
    request = {"nodes": 5, "cores": 4, "eligible": "toy[3-4,7-8,11-12]"}
    answer = place(topolane, toy, state(request), "--policy", "dedicated")
    assert (
        len(answer["nodes"]) == 5
        and answer["links"]
        and answer["bandwidth_share"] == 1.0
        and "spare" not in answer
    )
    answer = place(topolane, toy, state(10), "--policy", "laas")
    assert len(answer["nodes"]) == 10 and len(answer["spare"]) == 2
    assert "spare " in topolane("place", "--machine", toy, "--policy", "laas", stdin=state(10))


def test_the_machine_comes_from_the_json_or_the_option(topolane, toy):
    text = state(1, machine=str(toy))
    assert "toy1" in topolane("place", stdin=text)
    assert "cab1" in topolane("place", "--machine", "cab", stdin=text)
    path = topolane.directory / "state.json"
    path.write_text(text)
    assert "toy1" in topolane("place", path)


def test_cores_members_eligible_and_down(topolane, toy):
    request = {"nodes": 3, "id": 9, "cores": 8, "memory": 2**30, "stacked": True, "members": "toy9"}
    answer = place(topolane, toy, state(request, down="toy9"), "--policy", "hop-bytes")
    # Two fit a node of 16 cores; toy9 itself is down, its leaf is toy[9-12].
    assert set(answer["nodes"]) <= {9, 10, 11} and len(answer["nodes"]) == 3
    answer = place(topolane, toy, state({"nodes": 2, "eligible": [3, 14]}))
    assert answer["hosts"] == ["toy4", "toy15"]
    running = [{"id": 1, "nodes": "toy1", "cores": 10}, {"id": 2, "nodes": "toy1", "cores": 6}]
    answer = place(topolane, toy, state({"nodes": 1, "cores": 1}, running=running), "--policy", "first-fit")
    assert answer["hosts"] == ["toy2"]


def test_null_is_as_good_as_absent(topolane, toy):
    plain = place(topolane, toy, state(2))
    nulls = state({"nodes": 2, "cores": None, "eligible": None, "members": None}, running=None, down=None)
    assert place(topolane, toy, nulls) == plain


BAD = {
    "": ("standard input:1: not JSON",),
    "{": ("standard input:1: not JSON",),
    '{\n "request" {}}': ("standard input:2: not JSON", "column 12"),
    "[]": ("a JSON object is wanted", "[]"),
    "null": ("a JSON object is wanted", "null"),
    "[" * 100_000: ("standard input: not JSON that can be used",),
    '{"request":' * 5_000: ("standard input: not JSON that can be used",),
    '{"request": {"nodes": ' + "9" * 5_000 + "}}": ("standard input: not JSON that can be used",),
    '{"request": {"nodes": 1, "nodes": 2}}': ("key 'nodes' is given twice",),
    b'{"request": {"nodes": 1}, "\xff": 1}': ("standard input: not UTF-8 text",),
    "{}": ("'request' is missing",),
    '{"request": []}': ("'request' is not an object but []",),
    '{"request": {}}': ("request: 'nodes' is missing",),
    '{"request": {"nodes": 1}, "runing": []}': ("the state: unknown key 'runing'", "running"),
    '{"request": {"nodes": 1, "node": 1}}': ("request: unknown key 'node'", "nodes"),
    '{"request": {"nodes": 1}, "machine": 5}': ("'machine' is not a string but 5",),
    '{"request": {"nodes": 1, "stacked": 1}}': ("'stacked' is not true or false but 1",),
    '{"request": {"nodes": 1, "memory": 5}}': ("'memory' is given without 'cores'",),
    '{"request": {"nodes": 1, "cores": 0}}': ("request: 'cores' must be a whole number from 1",),
    '{"request": {"nodes": 1, "cores": 1, "memory": true}}': ("'memory' must be a whole number", "not true"),
    '{"request": {"nodes": 1, "id": -1}}': ("'id' must be a whole number from 0", "not -1"),
    '{"request": {"nodes": 1, "members": [16]}}': ("member node 16 is not on the machine",),
    '{"request": {"nodes": 1, "eligible": [16]}}': ("eligible node 16 is not on the machine",),
    '{"request": {"nodes": 1, "eligible": "toy17"}}': ("request: 'eligible': machine toy has no node toy17",),
    '{"request": {"nodes": 1, "eligible": {"a": 1}}}': (
        "'eligible' is neither a hostlist nor a list",
        '{"a": 1}',
    ),
    '{"request": {"nodes": 1}, "down": [-1]}': ("the state: 'down' is neither", "[-1]"),
    '{"request": {"nodes": 1}, "down": [16]}': ("node 16 is not on the machine",),
    '{"request": {"nodes": 1}, "down": "toy["}': ("'down': hostlist", "does not close its bracket"),
    '{"request": {"nodes": 1}, "down": "toy[1-9999999999]"}': ("stands for more than",),
    '{"request": {"nodes": 1}, "running": {}}': ("'running' is not a list but {}",),
    '{"request": {"nodes": 1}, "running": [7]}': ("running[0] is not a JSON object but 7",),
    '{"request": {"nodes": 1}, "running": [{"id": 1}]}': ("running[0]: 'nodes' is missing",),
    '{"request": {"nodes": 1}, "running": [{"id": 1, "nodes": "toy1", "core": 1}]}': (
        "running[0]: unknown key 'core'",
    ),
    '{"request": {"nodes": 1}, "running": [{"nodes": "toy1"}, {"nodes": "toy1"}]}': (
        "running[1]: node toy1 has not enough left",
    ),
    '{"request": {"nodes": 1}, "running": [{"nodes": [0, 0]}]}': (
        "running[0]: node toy1 has not enough left",
    ),
    '{"request": {"nodes": 1}, "running": [{"nodes": "toy1", "cores": 17}]}': (
        "running[0]: node toy1 has not enough left",
    ),
}
WRONG_COUNTS = ["4.0", "true", "-1", "4294967296", '"4"', "NaN", "1e400", "[1]"]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_bad_json(topolane, toy, text):
    topolane.refused("place", "--machine", toy, stdin=text, says=BAD[text])


@pytest.mark.parametrize("count", WRONG_COUNTS)
def test_a_count_that_is_none(topolane, toy, count):
    topolane.refused(
        "place",
        "--machine",
        toy,
        stdin=f'{{"request": {{"nodes": {count}}}}}',
        says="'nodes' must be a whole number",
    )


def test_no_node_at_all(topolane, toy):
    topolane.refused("place", "--machine", toy, stdin=state(0), says="at least 1 node")


def test_files_that_are_none(topolane, toy):
    topolane.refused("place", "state.json", says="state.json: No such file or directory")
    topolane.refused("place", topolane.directory, says="Is a directory")
    topolane.refused(
        "place", "--machine", toy, "--policy", "nope", stdin=state(1), says="unknown policy 'nope'"
    )
    topolane.refused("place", stdin=state(1), says="'machine' is missing")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Answers requests one after another in one process: the command itself, without its start-up."""
    code = (
        "import sys, io, json, contextlib\n"
        "from topolane.cli.place import command\n"
        "from topolane import InputError\n"
        "for line in sys.stdin:\n"
        "    text, policy = json.loads(line)\n"
        "    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode('utf-8', 'surrogatepass')))\n"
        "    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out):\n"
        "        try:\n"
        "            command(['--machine', 'fat-tree(radix=4)', '--json', '--policy', policy], standalone_mode=False)\n"
        "            code = 0\n"
        "        except InputError as error:\n"
        "            code = 2; print(json.dumps(str(error)))\n"
        "        except SystemExit as ending:\n"
        "            code = ending.code\n"
        "    sys.__stdout__.write(json.dumps([code, json.loads(out.getvalue())]) + '\\n')\n"
        "    sys.__stdout__.flush()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:

        def ask(text: str, policy: str):
            process.stdin.write(json.dumps([text, policy]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
hosts = (
    st.lists(st.integers(0, 17), max_size=6)
    | st.sampled_from(["node1", "fat-tree[1-3]", "x[", "", "a[1-2"])
    | anything
)
small = st.integers(0, 20) | anything
jobs = st.fixed_dictionaries({"nodes": hosts}, optional={"id": small, "cores": small, "memory": small})
states = st.fixed_dictionaries(
    {
        "request": st.fixed_dictionaries(
            {"nodes": small},
            optional={
                "id": small,
                "cores": small,
                "memory": small,
                "stacked": st.booleans() | anything,
                "members": hosts,
                "eligible": hosts,
            },
        )
    },
    optional={
        "running": st.lists(jobs, max_size=3) | anything,
        "down": hosts,
        "machine": st.text(max_size=5),
    },
)
POLICIES = [
    "first-fit",
    "random",
    "scattered",
    "slurm-tree",
    "hop-bytes",
    "hop-bytes-exact",
    "bunch",
    "spread",
    "isolated",
    "isolated-hop-bytes",
    "recorded",
]
quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@quick
@given(state=states | anything, policy=st.sampled_from(POLICIES))
def test_whatever_is_asked_is_answered(server, state, policy):
    code, answer = server(json.dumps(state), policy)
    if code == 2:
        assert isinstance(answer, str) and answer and "\n" not in answer
        return
    assert answer["placed"] == (code == 0)
    if answer["placed"]:
        request = state["request"]
        down = state.get("down") or []
        assert len(answer["nodes"]) == len(answer["hosts"]) == request["nodes"]
        if isinstance(down, list):
            assert not set(down) & set(answer["nodes"])
        if isinstance(request.get("eligible"), list):
            assert set(answer["nodes"]) <= set(request["eligible"])


@quick
@given(text=st.text(max_size=30))
def test_whatever_is_typed_is_answered(server, text):
    code, answer = server(text, "isolated")
    assert code == 2 and isinstance(answer, str)


GPUS = (
    'name = "g"\n[node]\nsockets = 1\ncores-per-socket = 8\nmemory = 1000\n'
    'resources = { "gpu:h100" = 4, nic = 2 }\n[[node-kind]]\nnodes = "g[3-4]"\nresources = {}\n'
    '[[site]]\nname = "s"\nchildren = [2, 2]\n'
)


@pytest.fixture
def gpus(tmp_path):
    file = tmp_path / "gpus.toml"
    file.write_text(GPUS)
    return str(file)


def test_slots_take_counted_resources(topolane, gpus):
    """What the running jobs leave of every resource decides; a GPU of a type is a GPU."""
    running = [
        {"id": 1, "nodes": "g1", "share": {"cores": 2, "gpu": 3}},
        {"id": 2, "nodes": "g2", "cores": 2, "memory": 1000},
    ]

    def hosts(share, nodes=1, code=0):
        text = state({"nodes": nodes, "share": share}, running=running)
        return place(topolane, gpus, text, "--policy", "first-fit", code=code)

    assert hosts({"cores": 1, "gpu:h100": 1})["hosts"] == ["g1"]
    assert hosts({"cores": 1, "gpu:h100": 2})["hosts"] == ["g2"]
    assert hosts({"gpu": 1}, nodes=2)["hosts"] == ["g1", "g2"]
    assert hosts({"memory": 1})["hosts"] == ["g1"]
    assert hosts({"memory": 1000, "nic": 0})["hosts"] == ["g1"]
    assert hosts({"cores": 8})["hosts"] == ["g3"]
    assert hosts({"gpu": 4}, nodes=2, code=1)["refusal"] == "not-now"
    for share, why in (
        ({"gpu": 5}, "never fits: 5 of resource gpu wanted on each node, 4 the most that one has"),
        ({"gpu:a100": 1}, "never fits: 1 of resource gpu:a100 wanted on each node, no node has any"),
        ({"cores": 9}, "never fits: 9 cores wanted on each node, 8 the most that one has"),
    ):
        assert hosts(share, code=1) == {"placed": False, "refusal": "never", "why": why}


@pytest.mark.parametrize(
    ("share", "complaint"),
    [
        (3, "request: 'share' is no object of resources and counts but 3"),
        ({"gpu": -1}, "request: share: 'gpu' must be a whole number from 0 to 9223372036854775807, not -1"),
        ({"gpu": 1.5}, "request: share: 'gpu' must be a whole number"),
        ({"cores": 0}, "request: share: 'cores' must be a whole number from 1"),
        ({"a b": 1}, '"a b" is no name of a resource'),
        ({"": 1}, '"" is no name of a resource'),
        ({"\x1b[31m": 1}, "is no name of a resource"),
    ],
)
def test_a_bad_share_is_refused_with_its_value(topolane, gpus, share, complaint):
    text = state({"nodes": 1, "share": share})
    topolane.refused("place", "--machine", gpus, stdin=text, says=complaint)


def test_resources_are_given_once(topolane, gpus):
    text = state({"nodes": 1, "share": {"gpu": 1}, "cores": 2})
    topolane.refused(
        "place", "--machine", gpus, stdin=text, says="request: 'cores' is given together with 'share'"
    )
    text = state(1, running=[{"id": 1, "nodes": "g3", "share": {"gpu": 1}}])
    topolane.refused("place", "--machine", gpus, stdin=text, says="running[0]: ")


def test_a_machine_shows_its_resources(topolane, gpus):
    shown = topolane("machine", "show", gpus)
    assert "4 gpu:h100, 2 nic" in shown


RACKS = (
    'name = "r"\n[[site]]\nname = "s"\nchildren = [6, 2]\nnodes = "r[1-12]"\n'
    '[[domain]]\nname = "rack A"\nnodes = "r[1-4]"\n[[domain]]\nname = "rack B"\nnodes = "r[7-10]"\n'
)
"""Two domains of four nodes, and on either leaf two nodes in no domain."""


@pytest.fixture
def racks(tmp_path):
    file = tmp_path / "racks.toml"
    file.write_text(RACKS)
    return str(file)


def test_a_placement_lists_its_segments_and_their_blocks(topolane, racks):
    """r1 is taken: whole segments of two leave nothing over in rack B, and the last node fits rack A most tightly."""
    text = state({"nodes": 5, "segment": 2}, running=[{"id": 1, "nodes": "r1"}])
    answer = place(topolane, racks, text, "--policy", "segments")
    assert answer["segments"] == [[6, 7], [8, 9], [1]]
    assert answer["blocks"] == ["rack B", "rack B", "rack A"]
    assert [node for part in answer["segments"] for node in part] == answer["nodes"]
    lines = topolane("place", "--machine", racks, "--policy", "segments", stdin=text).splitlines()
    rows = [line.split() for line in lines if "rack " in line]
    assert rows == [["rack", "B", "2", "r[7-8]"], ["rack", "B", "2", "r[9-10]"], ["rack", "A", "1", "r2"]]


def test_nodes_in_no_domain_are_the_block_of_their_leaf(topolane, racks):
    text = state({"nodes": 4, "segment": 2, "eligible": "r[5-6,11-12]"})
    answer = place(topolane, racks, text, "--policy", "segments")
    assert answer["segments"] == [[4, 5], [10, 11]]
    leaves = machine(racks).groups(1)
    assert answer["blocks"] == [name for *_, name in leaves]


def test_segments_that_are_not_kept_are_null(topolane, racks):
    """First fit takes r2 to r5: r5 is in no domain, so one of two segments is split."""
    text = state({"nodes": 4, "segment": 4}, running=[{"id": 1, "nodes": "r1"}])
    assert place(topolane, racks, text, "--policy", "first-fit")["segments"] is None
    shown = topolane("place", "--machine", racks, "--policy", "first-fit", stdin=text)
    assert "not kept" in shown
    assert "segments" not in place(topolane, racks, state(4), "--policy", "segments")
    topolane.refused(
        "place", "--machine", racks, stdin=state({"nodes": 1, "segment": 0}), says="'segment' must"
    )
