"""Another network over the nodes of a machine, on the command line."""

from __future__ import annotations

import json
import re

import pytest

ENTRY = """
[[network]]
name = "storage"
file = "storage/net.toml"
servers = "oss[1-2]"
"""
# Two leaves with one cable each to the top. toy16 is not there; oss3 is no server.
STORAGE = """
name = "st"
[[site]]
name = "core"
[[site.switch]]
name = "l1"
nodes = "toy[1-8]"
[[site.switch]]
name = "l2"
nodes = "toy[9-15],oss[1-3]"
[[site.switch]]
name = "top"
switches = "l[1-2]"
"""
NOTES = [
    "note: network 'storage': 1 node, 'toy16', is not on it",
    "note: network 'storage': 1 host, 'oss3', is neither in the machine nor in 'servers'",
]


@pytest.fixture
def two(toy, write, tmp_path):
    (tmp_path / "storage").mkdir()
    write("storage/net.toml", STORAGE)
    return write("two.toml", toy.read_text() + ENTRY)


def output_of(topolane, *arguments) -> str:
    """What a command prints, with the notes of the machine on standard error."""
    done = topolane.run(*arguments)
    assert (done.returncode, done.stderr.splitlines()) == (0, NOTES)
    return done.stdout


def test_show_lists_the_network_and_who_is_on_it(topolane, two):
    last = output_of(topolane, "machine", "show", "two.toml").splitlines()[-1]
    assert last == "network storage (storage/net.toml): 18 hosts, 15 of the 16 nodes, 2 servers oss[1-2]"
    (network,) = json.loads(output_of(topolane, "machine", "show", "two.toml", "--json"))["networks"]
    assert network == {
        "name": "storage",
        "file": "storage/net.toml",
        "hosts": 18,
        "nodes": "toy[1-15]",
        "servers": "oss[1-2]",
    }


def test_convert_keeps_the_entry_or_says_that_it_is_lost(topolane, two, write):
    # Next to the first file, because the path of the network is relative.
    write("again.toml", output_of(topolane, "machine", "convert", "two.toml", "--to", "toml"))
    shown = [output_of(topolane, "machine", "show", file) for file in ("two.toml", "again.toml")]
    assert shown[0] == shown[1]
    done = topolane.run("machine", "convert", "two.toml", "--to", "slurm")
    assert "note: slurm does not say other networks: storage dropped" in done.stderr.splitlines()


def test_a_route_on_the_network_leads_to_a_server(topolane, two):
    way = topolane("machine", "route", "two.toml", "toy1", "oss2", "--on", "storage").splitlines()
    assert [line.split(" ")[0] for line in way] == ["toy1->l1", "l1->core", "core->l2", "l2->oss2"]


def test_links_of_jobs_to_the_servers_by_hand(topolane, two, write):
    # Of jobs 7 and 8 the cable between l1 and the top is the bottleneck: 4 and 2 nodes, 2 servers, reading and writing. A server's
    # link carries half of that. Job 9 is on no node of the network.
    write("jobs.csv", 'id,nodes\n7,"toy[1-4]"\n8,"toy[5-6,16]"\n9,toy16\n')
    ask = ("links", "--machine", "two.toml", "--jobs", "jobs.csv", "--on", "storage", "--json")
    found = json.loads(output_of(topolane, *ask))
    loads = {link["link"]: link["load"] for link in found["links"]}
    both = {name: 2.0 for name in ("l1->core", "core->l1", "l2->core", "core->l2")}
    ends = {name: 1.0 for server in ("oss1", "oss2") for name in (f"l2->{server}", f"{server}->l2")}
    nodes = {"toy1": 0.25, "toy2": 0.25, "toy3": 0.25, "toy4": 0.25, "toy5": 0.5, "toy6": 0.5}
    own = {name: load for node, load in nodes.items() for name in (f"l1->{node}", f"{node}->l1")}
    assert loads == both | ends | own
    assert (found["machine"], found["network"]) == ("toy", "storage")
    assert [job["nodes"] for job in found["jobs"]] == ["toy[1-4]", "toy[5-6,16]", "toy16"]
    # 8 bytes over 4 GB/s, then 4, then none.
    assert [job["time_alone"] for job in found["jobs"]] == [2e-9, 1e-9, 0.0]


def test_the_picture_has_a_cell_for_every_class_of_load(topolane, two, write, tmp_path):
    """The picture of the jobs above: what the pointer shows on its cells are the loads of the links, by level and class."""
    write("jobs.csv", 'id,nodes\n7,"toy[1-4]"\n8,"toy[5-6,16]"\n9,toy16\n')
    ask = ("links", "--machine", "two.toml", "--jobs", "jobs.csv", "--on", "storage", "--picture")
    output_of(topolane, *ask, "loads.svg")
    titles = set(re.findall("<title>([^<]*)</title>", tmp_path.joinpath("loads.svg").read_text()))
    # Nodes of job 7 a quarter, of job 8 a half, servers all of a link; the cables of the leaves are wanted twice.
    classes = ("no traffic", "0 % to 25 %", "25 % to 50 %", "75 % to 100 %")
    assert titles == {"leaf to core: 175 % to 200 %", *(f"node to leaf: {each}" for each in classes)}
    topolane.refused(*ask, "loads.pdf", says="--picture loads.pdf: ends in neither .svg nor .png")


def test_links_without_servers_are_those_between_the_nodes(topolane, two, write):
    write("two.toml", two.read_text().replace('servers = "oss[1-2]"\n', ""))
    write("flow.csv", "from,to,bytes\n0,1,8\n1,2,8\n")
    write("jobs.csv", 'id,nodes,traffic\n7,"toy1,toy9,toy16",flow.csv\n')
    done = topolane.run("links", "--machine", "two.toml", "--jobs", "jobs.csv", "--on", "storage", "--json")
    found = json.loads(done.stdout)
    # The second flow ends on toy16, which is not there.
    assert [link["link"] for link in found["links"]] == ["toy1->l1", "l2->toy9", "l1->core", "core->l2"]


def test_runs_say_how_many_jobs_share_its_links(topolane, two, log):
    ask = ("compare", "--machine", "two.toml", "--trace", "log.csv", "--policies", "first-fit,isolated")
    runs = json.loads(output_of(topolane, *ask, "--scenarios", "none", "--json"))
    for run in runs:
        (network,) = run["networks"]
        assert (network["name"], network["servers"]) == ("storage", 2)
        assert 0 < network["jobs_sharing_links"] <= 40
        assert 0 < network["mean_bandwidth_alone"] < 1
    # Links of their own on the first network are none on the second.
    assert runs[1]["jobs_sharing_links"] == 0
    table = output_of(topolane, *ask, "--scenarios", "none")
    assert "bandwidth to" in table and "storage" in table


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("oss[1-2]", "oss[1-4]", "two.toml:11: network 'storage': server \"oss4\" is not in storage/net.toml"),
        ("net.toml", "none.toml", "two.toml:9: network 'storage': storage/none.toml"),
        ('name = "storage"', 'name = ""', "two.toml:9: network \"\" has no name"),
        ('servers = "oss[1-2]"', 'servers = ""', "two.toml:11: network \"storage\" has no servers"),
        ('servers = "oss[1-2]"', 'servers = "oss[1-2],oss1"', 'two.toml:11: network "storage" names server "oss1" twice'),
        ('servers = "oss[1-2]"', 'servers = "oss[1-1025]"', "two.toml:11: network \"storage\" has 1025 servers, more than 1024"),
        ('servers = "oss[1-2]"', 'hosts = "oss[1-2]"', "two.toml:11: unknown field `hosts`"),
        ("servers", '[[network]]\nname = "storage"\nfile = "x"\nservers', 'two.toml:12: network "storage" stands on line 9 already'),
    ],
)  # fmt: skip
def test_bad_entries_are_refused(topolane, two, write, was, now, says):
    write("two.toml", two.read_text().replace(was, now))
    topolane.refused("machine", "check", "two.toml", says=says)


def test_bad_networks_and_names_are_refused(topolane, two, write):
    show = ("machine", "route", "two.toml", "toy1")
    topolane.refused(
        *show, "oss1", "--on", "disks", says="machine toy has no network 'disks'; there is storage"
    )
    topolane.refused(*show, "toy16", "--on", "storage", says="network storage has no node toy16")
    topolane.refused(
        "machine", "route", "toy.toml", "toy1", "toy2", "--on", "storage", says="its file has no [[network]]"
    )
    write("storage/net.toml", STORAGE.replace("toy", "other"))
    says = "two.toml:9: network 'storage': no node of the machine is in storage/net.toml"
    topolane.refused("machine", "check", "two.toml", says=says)
    write("storage/net.toml", "name = 1\n")
    topolane.refused(
        "machine", "check", "two.toml", says="two.toml:9: network 'storage': storage/net.toml:1:"
    )


def test_servers_may_be_on_the_machines_own_network(topolane, write, toy):
    """The file of a network may be the machine file: its servers are then nodes, and `--nodes` keeps jobs off them."""
    write(
        "one.toml",
        toy.read_text() + ENTRY.replace("storage/net.toml", "one.toml").replace("oss[1-2]", "toy[15-16]"),
    )
    write("jobs.csv", "id,nodes\n7,toy1\n")
    ask = (
        "links",
        "--machine",
        "one.toml",
        "--nodes",
        "toy[1-14]",
        "--jobs",
        "jobs.csv",
        "--on",
        "storage",
        "--json",
    )
    found = json.loads(topolane(*ask))["links"]
    # What the job reads takes one way for both servers, since d-mod-k goes by the destination; what it writes takes two.
    read = {"leaf3->pod1-s0", "pod1-s0->core-s0", "core-s0->pod0-s0", "pod0-s0->leaf0", "leaf0->toy1"}
    assert {link["link"] for link in found if link["load"] == 1.0} == {"toy1->leaf0"} | read
    assert sum(link["load"] for link in found) == 2 * 6


def test_the_network_may_be_an_ibnetdiscover_file(topolane, two, write):
    """The output of another subnet is read as it is; the hosts are matched by the names of their adapters."""
    subnet = topolane("machine", "convert", "storage/net.toml", "--to", "ibnetdiscover")
    write("storage/net.ibnetdiscover", subnet)
    output_of(topolane, "machine", "check", "two.toml")
    write("two.toml", two.read_text().replace("net.toml", "net.ibnetdiscover"))
    way = topolane("machine", "route", "two.toml", "toy1", "oss2", "--on", "storage").splitlines()
    assert [way[0].split("->")[0], way[-1].split(" ")[0].split("->")[1]] == ["toy1", "oss2"]
    assert "15 of the 16 nodes, 2 servers oss[1-2]" in output_of(topolane, "machine", "show", "two.toml")
