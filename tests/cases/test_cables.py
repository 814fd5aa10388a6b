"""Lists of cables of real clusters: servers on several leaves, racks without hosts, cables that both ends describe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from topolane import InputError, Machine, machine
from waiting import DEADLINE

FILES = Path(__file__).parent / "data" / "cables"
SCRIPT = Path(sys.executable).parent / "topolane"
NODES = "c[1-8]"


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE)


def read(name: str, hosts: str | None = None) -> Machine:
    return machine(FILES / name, hosts=hosts)


def hops(found: Machine, one: str, other: str) -> int | None:
    return found.hops(*found.nodes_named(f"{one},{other}"))


def racks(found: Machine) -> dict[str, str]:
    """The nodes of each leaf."""
    return {name: found.hostlist(range(start, end)) for start, end, name in found.groups(1)}


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("server-with-two-adapters.ibnetdiscover", None),
        ("server-with-two-ports.ibnetdiscover", None),
        ("server-on-two-leaves.netbox.csv", f"{NODES},oss1"),
    ],
)
def test_a_server_on_two_leaves_counts_on_the_first_and_joins_none(name: str, hosts: str | None) -> None:
    found = read(name, hosts)
    assert racks(found) == {"rack-a": "c[1-4],oss1", "rack-b": "c[5-8]"}
    assert hops(found, "c1", "c5") == 2
    assert "host oss1 hangs on several leaf switches and counts on rack-a" in "; ".join(found.notes)
    assert found.to("slurm").count("Nodes=") == 2


def test_a_server_on_two_of_four_leaves_leaves_the_file_readable() -> None:
    found = read("server-on-two-of-four-leaves.ibnetdiscover")
    assert list(racks(found).values()) == ["c[1-4]", "c[5-8],oss1", "c[9-12]", "c[13-16]"]
    assert (found.depth, found.missing_cables) == (2, 0)


def test_a_route_joins_nodes_whose_leaves_share_a_server() -> None:
    done = command("machine", "route", FILES / "server-with-two-adapters.ibnetdiscover", "c1", "c5", "--json")
    assert done.returncode == 0, done.stderr
    assert [link["to"] for link in json.loads(done.stdout)["links"]] == ["rack-a", "spine-1", "rack-b", "c5"]


def test_hosts_that_are_not_named_are_skipped_and_counted() -> None:
    done = command(
        "machine", "show", FILES / "server-with-two-adapters.ibnetdiscover", "--hosts", NODES, "--json"
    )
    assert json.loads(done.stdout)["nodes"] == 8
    assert done.stderr.strip() == 'note: 1 host not named by --hosts is skipped: "oss1"'


def test_two_hosts_of_one_name_are_two_nodes() -> None:
    found = read("two-hosts-of-one-name.ibnetdiscover")
    assert (found.nodes, racks(found)["rack-b"]) == (4, "c[3-4]")
    assert "2 adapters have names that several hosts share" in found.notes[0]


def test_a_host_on_the_spine_is_skipped() -> None:
    found = read("manager-on-the-spine.ibnetdiscover")
    assert racks(found) == {"rack-a": "c[1-4]", "rack-b": "c[5-8]"}
    assert found.notes == ['1 host on a switch above the leaves is skipped: "manager"']


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("rack-without-hosts.ibnetdiscover", None),
        ("rack-without-hosts-under-two-spines.ibnetdiscover", None),
        ("rack-without-hosts.netbox.csv", NODES),
    ],
)
def test_a_rack_without_hosts_is_no_level_above_the_spines(name: str, hosts: str | None) -> None:
    found = read(name, hosts)
    assert (found.depth, racks(found)) == (2, {"rack-a": "c[1-4]", "rack-b": "c[5-8]"})
    assert '1 switch without nodes is skipped: "rack-c"' in found.notes


def test_a_level_of_two_speeds_is_named() -> None:
    found = read("two-speeds-above-the-leaves.ibnetdiscover")
    (note,) = found.notes
    assert note.startswith(
        "cables above level 1 have several speeds (2 of 12.5 GB/s, 2 of 25 GB/s): all count as 25 GB/s"
    )


def test_a_cable_under_two_names_of_its_ports_counts_once() -> None:
    found = read("ports-with-other-names.lldp.json", "c[1-2]")
    assert (found.nodes, found.depth, found.links) == (2, 2, 4)


def test_a_neighbour_without_a_name_is_skipped_and_counted() -> None:
    found = read("neighbour-without-a-name.lldp.json", "c1")
    assert found.nodes == 1
    assert "1 neighbour is skipped: it has no name" in found.notes


def test_a_server_that_is_not_named_is_no_spine() -> None:
    found = read("server-that-is-not-named.lldp.json", "c[1-4]")
    assert (found.depth, found.links) == (2, 6)
    assert (
        '1 device that --hosts does not name and that looks like a server is skipped: "file1"' in found.notes
    )


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("another-form-of-lldp.lldp.json", 1, "this is `lldpctl -f json0`; write `lldpctl -f json`"),
        ("ends-as-numbers.netbox.csv", 1, "has numbers for the ends of its cables and lacks the names"),
        ("one-port-to-two-nodes.netbox.csv", 2, "one side of this cable has 2 ends (a breakout cable)"),
        ("speed-that-is-not-known.ibnetdiscover", 10, 'the speed "4x???" is unknown'),
    ],
)
def test_a_refusal_says_what_the_file_is_or_lacks(name: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read(name, None if name.endswith("ibnetdiscover") else NODES)
    assert words in str(refused.value)
    assert f"{name}:{line}:" in str(refused.value)
