"""`topolane map`: ranks to slots, in the formats of launchers."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections import Counter

import pytest
from waiting import DEADLINE

HEADER = "from,to,bytes\n"
# On 16 nodes, rank i exchanges with rank 15 - i: in rank order all pairs are in two pods, 4 hops apart.
PAIRS = HEADER + "".join(f"{rank},{15 - rank},10\n" for rank in range(16))


def mapped(topolane, toy, *options: object) -> dict:
    return json.loads(topolane("map", "--machine", toy, "--format", "json", *options))


def hops(a: int, b: int) -> int:
    """On the toy machine: leaves of 4 nodes, pods of 2 leaves."""
    return 0 if a // 4 == b // 4 else 2 if a // 8 == b // 8 else 4


def test_json_says_what_the_map_costs(topolane, toy, write):
    facts = mapped(topolane, toy, "--traffic", write("t.csv", PAIRS), "--hosts", "toy[1-16]")
    assert sorted(facts["nodes"]) == list(range(16))
    assert facts["hosts"] == [f"toy{node + 1}" for node in facts["nodes"]]
    # Hop-bytes are the sum of hops times bytes; pairs fit on leaves, where they take no hop.
    cost = sum(10 * hops(facts["nodes"][rank], facts["nodes"][15 - rank]) for rank in range(16))
    assert (facts["rank_order_hop_bytes"], facts["hop_bytes"], cost) == (640.0, 0.0, 0)
    assert facts["bytes_by_hops"] == [
        {"hops": 0, "rank_order": 0.0, "mapped": 160.0},
        {"hops": 4, "rank_order": 160.0, "mapped": 0.0},
    ]
    assert min(member["hop_bytes"] for member in facts["portfolio"]) == facts["hop_bytes"]


def test_node_links_count_where_asked(topolane, toy, write):
    facts = mapped(topolane, toy, "--traffic", write("t.csv", PAIRS), "--hosts", "toy[1-16]", "--node-links")
    # The pairs still have two nodes of one leaf: 2 links.
    assert (facts["rank_order_hop_bytes"], facts["hop_bytes"]) == (960.0, 320.0)


def test_a_rankfile_names_a_core_for_every_rank(topolane, toy, write):
    options = ("--traffic", write("t.csv", PAIRS), "--hosts", "toy[1-4]", "--ranks-per-node", 4)
    facts = mapped(topolane, toy, *options)
    text = topolane("map", "--machine", toy, *options, "--format", "rankfile")
    rows = [re.fullmatch(r"rank (\d+)=(\S+) slot=(\d+)", line).groups() for line in text.splitlines()]
    assert [int(rank) for rank, _, _ in rows] == list(range(16))
    assert [host for _, host, _ in rows] == facts["hosts"]
    # Every core of every host is given once.
    assert {(host, int(core)) for _, host, core in rows} == {
        (f"toy{node}", core) for node in range(1, 5) for core in range(4)
    }


@pytest.mark.parametrize("form", ["hostfile", "slurm-arbitrary"])
def test_a_list_of_hosts_has_a_line_for_every_rank(topolane, toy, write, form):
    options = ("--traffic", write("t.csv", PAIRS), "--hosts", "toy[1-8]", "--ranks-per-node", 2)
    text = topolane("map", "--machine", toy, *options, "--format", form)
    hosts = text.splitlines()
    assert hosts == mapped(topolane, toy, *options)["hosts"]
    assert Counter(hosts) == {f"toy{node}": 2 for node in range(1, 9)}


def test_out_takes_the_map_and_the_terminal_the_summary(topolane, toy, write):
    options = ("--traffic", write("t.csv", PAIRS), "--hosts", "toy[1-16]", "--format", "hostfile")
    text = topolane("map", "--machine", toy, *options, "--out", "hosts")
    assert (topolane.directory / "hosts").read_text() == topolane("map", "--machine", toy, *options)
    assert "in rank order 640" in text
    assert "saved      100.0%" in text


def test_a_seed_gives_one_map_on_any_number_of_threads(topolane, toy):
    options = ("--traffic", "unstructured3d", "--ranks", 16, "--seed", 5)
    one, two = (mapped(topolane, toy, *options, "--threads", threads) for threads in (1, 2))
    assert one == two


def test_free_nodes_are_chosen(topolane, toy, write):
    state = write("state.json", json.dumps({"running": [{"id": 1, "nodes": "toy[1-3,5-8]"}], "down": "toy9"}))
    options = ("--traffic", "ring", "--ranks", 4, "--state", state)
    facts = mapped(topolane, toy, *options)
    # Four free nodes on one leaf: toy[13-16].
    assert sorted(facts["hosts"]) == ["toy13", "toy14", "toy15", "toy16"]
    facts = mapped(topolane, toy, *options, "--policy", "first-fit")
    assert sorted(facts["hosts"]) == ["toy10", "toy11", "toy12", "toy4"]
    refused = topolane("map", "--machine", toy, "--traffic", "ring", "--ranks", 9, "--state", state, code=1)
    assert refused.startswith("not placed, not-now: ")


def test_matrix_market_by_scipy_is_read(topolane, toy):
    sparse = pytest.importorskip("scipy.sparse", reason="scipy, which writes the file, is not installed")
    from scipy.io import mmwrite

    matrix = sparse.coo_array(([7.0, 7.0], ([0, 3], [3, 0])), shape=(4, 4))
    mmwrite(topolane.directory / "t.mtx", matrix)
    check_far_pair(topolane, toy, topolane.directory / "t.mtx", 7.0)


def test_matrix_market_as_written_down_is_read(topolane, toy, write):
    text = "%%MatrixMarket matrix coordinate real symmetric\n%\n4 4 1\n4 1 7.0e+00\n"
    check_far_pair(topolane, toy, write("t.mtx", text), 7.0)


def check_far_pair(topolane, toy, file, weight: float) -> None:
    """Ranks 0 and 3 exchange `weight`; on toy1, toy2 and toy[9-10] only one pair of leaves is apart."""
    facts = mapped(topolane, toy, "--traffic", file, "--hosts", "toy[1-2,9-10]")
    assert (facts["rank_order_hop_bytes"], facts["hop_bytes"]) == (2 * 4 * weight, 0.0)


def test_ranks_without_traffic_have_slots_too(topolane, toy, write):
    facts = mapped(
        topolane, toy, "--traffic", write("t.csv", HEADER + "0,1,5\n"), "--ranks", 5, "--hosts", "toy[1-6]"
    )
    assert len(set(facts["nodes"])) == 5


@pytest.mark.parametrize(
    ("lines", "options", "says"),
    [
        ("0,4,1\n", ("--ranks", 4), "t.csv: the matrix has 5 ranks, but the job has 4"),
        ("0,1,-1\n", (), "t.csv:2: bytes from rank 0 to rank 1 must be 0 or from 1e-30 to 1e30, not -1"),
        ("0,1,nan\n", (), "t.csv:2: bytes from rank 0 to rank 1 must be 0 or from 1e-30 to 1e30, not NaN"),
        ("-1,1,1\n", (), 't.csv:2: from "-1" is not a rank'),
        ("", (), "t.csv: the matrix has no ranks"),
        ("0,16,1\n", ("--hosts", "toy[1-16]"), "17 ranks do not fit on 16 nodes with 1 ranks on each"),
        ("0,1,1\n", ("--hosts", "toy1,toy1"), "node toy1 is named 2 times"),
        ("0,1,1\n", ("--hosts", "toy[1-2]", "--state", "s.json"), "the nodes are either given or chosen"),
        ("0,1,1\n", ("--hosts", "moy[1-2]"), "moy1"),
        ("0,1,1\n", ("--out", "map"), "--out needs --format"),
        ("0,1,1\n", ("--effort", "much"), "'much' is not one of"),
    ],
)
def test_bad_input_is_named(topolane, toy, write, lines, options, says):
    file = write("t.csv", HEADER + lines)
    topolane.refused("map", "--machine", toy, "--traffic", file.name, *options, says=says)


def test_a_pattern_needs_ranks_and_a_file_must_be_there(topolane, toy):
    topolane.refused("map", "--machine", toy, "--traffic", "ring", says="needs a number of ranks")
    topolane.refused("map", "--machine", toy, "--traffic", "nope.csv", says="no file is called 'nope.csv'")


def test_sites_that_no_link_joins_hold_no_job(topolane, write):
    site = '[[site]]\nname = "{}"\nchildren = [2]\nparents = [1]\nnodes = "{}[1-2]"\n'
    machine = write("two.toml", 'name = "two"\n' + site.format("a", "a") + site.format("b", "b"))
    traffic = write("t.csv", HEADER + "0,1,1\n")
    topolane.refused(
        "map", "--machine", machine, "--traffic", traffic, "--hosts", "a1,b1", says="no link joins a1 to b1"
    )


@pytest.fixture
def here(write):
    """A machine of one node that bears this host's name."""
    name = socket.gethostname().split(".")[0]
    return write("here.conf", f"SwitchName=s1 Nodes={name}\n")


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("rankfile", ("--rankfile",)),
        ("hostfile", ("--map-by", "seq", "--hostfile")),
    ],
)
def test_open_mpi_takes_the_map(topolane, here, form, options):
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        pytest.skip("mpirun.openmpi, which reads the map, is not installed")
    topolane(
        *("map", "--machine", here, "--traffic", "ring", "--ranks", 2, "--ranks-per-node", 2),
        *("--format", form, "--out", "map"),
    )
    done = subprocess.run(
        [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", *options, "map", "printenv"]
        + ["OMPI_COMM_WORLD_RANK"],
        cwd=topolane.directory,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1"]
