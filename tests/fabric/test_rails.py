"""A real DGX fabric is read as what its text says, counted here by a parser of its own."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from subnet import topolane
from topolane import machine

DUMP = Path(__file__).parents[3] / "shared/machines/dgx-h100-rails.ibnetdiscover"

needs_the_dump = pytest.mark.skipif(not DUMP.exists(), reason=f"{DUMP} is not there")

SWITCH = re.compile(r'Switch\s+\d+\s+"(S-\w+)"\s+# "MF0;([^:]+):')
PORT = re.compile(r'\[(\d+)\](?:\(\w+\))?\s+"([SH]-\w+)"\[\d+\](?:\(\w+\))?\s+# "([^"]*)"')


class Dump:
    """What the text says of leaves, spines and cables. A leaf's name ends in its rail and its group of racks."""

    def __init__(self, text: str) -> None:
        self.names = dict(SWITCH.findall(text))
        self.hosts: dict[str, dict[int, str]] = defaultdict(dict)
        self.cables: Counter[tuple[str, str]] = Counter()
        at = ""
        for line in text.splitlines():
            if line.startswith("Switch"):
                at = self.names[line.split('"')[1]]
            elif line.startswith("Ca"):
                at = ""
            elif (found := PORT.match(line)) and at:
                port, peer, description = found.groups()
                if peer.startswith("S-"):
                    self.cables[at, self.names[peer]] += 1
                elif "Aggregation Node" not in description:
                    self.hosts[at][int(port)] = description

    @property
    def leaves(self) -> list[str]:
        return sorted(name for name in self.names.values() if "IBLEAF" in name)

    @property
    def spines(self) -> list[str]:
        return sorted(name for name in self.names.values() if "IBSPINE" in name)

    def nodes(self) -> int:
        """Hosts: named ones once, and as many nameless ones as the leaf of a group with most of them has."""
        named = {
            text.split()[0]
            for ports in self.hosts.values()
            for text in ports.values()
            if not text.startswith("MT")
        }
        nameless: Counter[str] = Counter()
        for leaf, ports in self.hosts.items():
            group = leaf.split("-")[-1]
            nameless[group] = max(nameless[group], sum(text.startswith("MT") for text in ports.values()))
        return len(named) + nameless.total()


@pytest.fixture(scope="module")
def dump() -> Dump:
    return Dump(DUMP.read_text())


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rails") / "dgx.toml"
    topolane("machine", "convert", DUMP, "--to", "toml", "--out", out)
    return out


@needs_the_dump
def test_rails_nodes_and_spines_are_those_of_the_text(dump: Dump) -> None:
    shown = json.loads(topolane("machine", "show", DUMP, "--json"))
    assert shown["nodes"] == dump.nodes() == 141
    rails = {leaf.split("-")[-2] for leaf in dump.leaves}
    assert shown["rails"] == [{"rails": len(rails), "meet": True}]
    assert len(rails) == 4
    groups = {leaf.split("-")[-1] for leaf in dump.leaves}
    assert len(shown["levels"][0]) == len(groups) == 8
    assert {row["name"].split("-")[-1] for row in shown["levels"][0]} == groups


@needs_the_dump
def test_every_cable_of_the_text_is_there_and_no_other(dump: Dump) -> None:
    fabric = machine(str(DUMP))
    upward = {ends: count for ends, count in dump.cables.items() if "IBLEAF" in ends[0]}
    found = fabric.cables_named([f"{leaf}->{spine}" for leaf, spine in upward])
    assert [len(cables) for cables in found] == list(upward.values())
    hosts = sum(len(ports) for ports in dump.hosts.values())
    assert fabric.links - fabric.missing_cables == hosts + sum(upward.values())


@needs_the_dump
def test_tapering_is_that_of_the_fullest_leaf(dump: Dump) -> None:
    fullest = max(len(ports) for ports in dump.hosts.values())
    full = len(dump.spines) * max(dump.cables.values())
    line = next(line for line in topolane("machine", "show", DUMP).splitlines() if "taper" in line)
    assert f"taper {full / fullest:.2f}" in line
    assert f"{len(dump.spines)} switches" in topolane("machine", "show", DUMP)


@needs_the_dump
def test_hosts_are_on_the_rails_of_their_leaves(dump: Dump) -> None:
    """The first host of a group reaches a host of another on each rail by the leaves of that rail."""
    order = sorted({leaf.split("-")[-2] for leaf in dump.leaves})
    for rail, number in enumerate(order):
        shown = json.loads(
            topolane(
                "machine",
                "route",
                DUMP,
                "a06-p1-dgx-02-c01",
                "b07-p1-dgx-07-c01",
                "--rails",
                str(rail),
                str(rail),
                "--json",
            )
        )
        first, last = shown["links"][0]["to"], shown["links"][-1]["from"]
        assert first.endswith(f"-{number}-02") and last.endswith(f"-{number}-07")


@needs_the_dump
def test_gpus_on_other_rails_go_over_nvlink_or_over_the_spines() -> None:
    ends = ("a06-p1-dgx-02-c01", "b07-p1-dgx-07-c01", "--rails", "0", "3", "--json")
    nvlink = json.loads(topolane("machine", "route", DUMP, *ends))
    assert nvlink["nvlink_first"] and nvlink["links"][0]["to"].endswith("-04-02")
    spines = json.loads(topolane("machine", "route", DUMP, *ends, "--cross-rail", "spines"))
    assert not spines["nvlink_first"]
    assert spines["links"][0]["to"].endswith("-01-02") and spines["links"][-1]["from"].endswith("-04-07")


@needs_the_dump
def test_the_toml_of_the_dump_is_the_same_machine(toml: Path) -> None:
    assert "joined = [false, true]" in toml.read_text()
    one, other = (json.loads(topolane("machine", "show", path, "--json")) for path in (DUMP, toml))
    del one["name"], other["name"]
    assert one == other


@needs_the_dump
def test_forwarding_tables_lead_to_every_adapter(dump: Dump, tmp_path: Path) -> None:
    """Every switch has an entry for every adapter, except spines for those on a leaf that no cable joins them to."""
    state = tmp_path / "state.json"
    state.write_text('{"running": [{"id": 1, "nodes": "b05-p1-dgx-05-c[01-18]"}]}')
    out = tmp_path / "lfts"
    topolane("routes", "--machine", DUMP, "--state", state, "--out", out)
    text = out.read_text()
    assert text.count("Unicast lids") == len(dump.names) == 40
    adapters = sum(len(ports) for ports in dump.hosts.values())
    apart = [(leaf, spine) for leaf in dump.leaves for spine in dump.spines if not dump.cables[leaf, spine]]
    without = sum(len(dump.hosts[leaf]) for leaf, _ in apart)
    assert text.count("Channel Adapter") == 40 * adapters - without


class Walk:
    """Follows forwarding tables from port to port of the dump."""

    def __init__(self, dump: str, tables: str) -> None:
        self.peers: dict[tuple[str, int], str] = {}
        self.lids: dict[tuple[str, str], int] = {}
        """LID of a host's adapter, by the host and its leaf."""
        names = dict(SWITCH.findall(dump))
        at = host = ""
        for line in dump.splitlines():
            if line.startswith("Switch"):
                at = names[line.split('"')[1]]
            elif line.startswith("Ca"):
                at, host = "", line.split('"')[3].split()[0]
            elif at and (found := PORT.match(line)):
                port, peer, description = found.groups()
                self.peers[at, int(port)] = names.get(peer) or description.split()[0]
            elif found := re.match(r'\[\d+\]\(\w+\)\s+"(S-\w+)"\[\d+\]\s+# lid (\d+)', line):
                self.lids[host, names[found[1]]] = int(found[2])
        self.ports: dict[tuple[str, int], int] = {}
        for line in tables.splitlines():
            if found := re.match(r"Unicast lids .*\('(.*)'\):", line):
                at = found[1]
            elif found := re.match(r"0x(\w+) (\d+) #", line):
                self.ports[at, int(found[1], 16)] = int(found[2])

    def way(self, leaf: str, lid: int) -> list[str]:
        """The switches from a leaf on, and the host at the end."""
        way = [leaf]
        while way[-1] in self.names():
            way.append(self.peers[way[-1], self.ports[way[-1], lid]])
            assert len(way) < 6, f"a loop: {way}"
        return way

    def names(self) -> set[str]:
        return {switch for switch, _ in self.peers}


@needs_the_dump
def test_tables_keep_jobs_on_their_links_of_every_rail(dump: Dump, tmp_path: Path) -> None:
    """Two jobs across leaf groups: what an adapter sends to the other adapters of its rail stays on links of its job."""
    running: list[dict[str, Any]] = []
    for number in (1, 2):
        state = tmp_path / f"ask{number}.json"
        state.write_text(json.dumps({"running": running, "request": {"nodes": 24}}))
        said = json.loads(topolane("place", "--machine", DUMP, "--policy", "dedicated", "--json", state))
        running.append({"id": number, "nodes": said["nodes"], "links": said["links"]})
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"running": running}))
    topolane("routes", "--machine", DUMP, "--state", state, "--out", tmp_path / "lfts")
    walk = Walk(DUMP.read_text(), (tmp_path / "lfts").read_text())
    fabric = machine(str(DUMP))
    names = fabric.link_names()
    crossed = 0
    for job in running:
        owned = {(names[cable][0], names[cable][2]) for cable in job["links"]}
        assert owned and {leaf.split("-")[-2] for leaf, _ in owned} == {"01", "02", "03", "04"}
        hosts = {fabric.node_name(node) for node in job["nodes"]}
        adapters = [(host, leaf, lid) for (host, leaf), lid in walk.lids.items() if host in hosts]
        for _, leaf, _ in adapters:
            for host, last, lid in adapters:
                if leaf.split("-")[-2] != last.split("-")[-2] or leaf == last:
                    continue
                way = walk.way(leaf, lid)
                assert way[-2:] == [last, host]
                assert (leaf, way[1]) in owned and (last, way[1]) in owned
                crossed += 1
    assert crossed > 1000
