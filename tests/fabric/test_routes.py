"""Tables of `topolane routes` in a simulated subnet: loaded by opensm, read back and followed."""

import json
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from owned_jobs import JOBS, LATER, MACHINE, STORAGE, placed_by, state, trace
from subnet import ask, needs_a_subnet, running, sweep, topolane
from tables_text import Text
from topolane import Machine
from waiting import until

EVEN = (1, 4, 5, 6, 8, 9, 10)
"""The jobs by hand whose leaves and pods all own as much."""


class Subnet:
    """A simulated subnet, what ibnetdiscover says of it, and the tables of the jobs by hand."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self.environment, self.directory = environment, directory
        self.ftree = sweep(environment, "ftree").read_text()
        self.net = directory / "net.ibnetdiscover"
        self.net.write_text(ask(environment, "ibnetdiscover").stdout)
        self.machine = Machine.parse(self.net.read_text(), str(self.net))

    def write(self, jobs: dict[str, Any], *options: str | Path) -> tuple[Path, dict[str, Any]]:
        """Writes tables for some jobs; the file, and what the command says."""
        given, out = self.directory / "state.json", self.directory / "lfts"
        given.write_text(json.dumps(jobs))
        said = topolane("routes", "--machine", self.net, "--state", given, "--out", out, "--json", *options)
        return out, json.loads(said)

    def load(self, tables: Path) -> str:
        """Lets opensm load tables; what the switches have then."""
        sweep(self.environment, "file", "-U", str(tables))
        return ask(self.environment, "dump_fts").stdout


@pytest.fixture(scope="module")
def subnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subnet]:
    directory = tmp_path_factory.mktemp("routes")
    (directory / "toy.toml").write_text(MACHINE)
    with running(directory / "toy.toml", directory) as environment:
        yield Subnet(environment, directory)


def ports(tables: str) -> dict[tuple[str, int], int]:
    """Port by (switch, LID)."""
    return Text("", tables).port


@needs_a_subnet
def test_no_packet_of_a_job_leaves_its_links(subnet: Subnet) -> None:
    jobs = state(JOBS)
    tables, said = subnet.write(jobs)
    installed = subnet.load(tables)
    # The switches have what the file says, entry by entry.
    assert ports(installed) == ports(tables.read_text())
    assert said["entries"] == len(ports(installed))
    net = subnet.net.read_text()
    for job, seen in trace(subnet.machine, jobs["running"], Text(net, installed)).items():
        size = len(next(row["nodes"] for row in jobs["running"] if row["id"] == job))
        assert (seen.pairs, seen.outside, seen.others) == (size * (size - 1), 0, 0), job
        # Equal leaves: as d-mod-k on a whole tree, no shift puts two flows on a link.
        assert seen.most <= (1 if job in EVEN else 2), job
    # The tables of the fat-tree engine do send jobs over each other's links.
    before = trace(subnet.machine, jobs["running"], Text(net, subnet.ftree))
    assert sum(seen.others > 0 for seen in before.values()) > len(JOBS) / 2


@needs_a_subnet
@pytest.mark.parametrize("policy", ["dedicated", "jigsaw", "laas"])
def test_jobs_that_a_policy_placed_keep_to_their_links(subnet: Subnet, policy: str) -> None:
    jobs = placed_by(policy, subnet.machine, seed=1)
    assert sum(len(job["links"]) > 0 for job in jobs["running"]) > 5
    installed = subnet.load(subnet.write(jobs)[0])
    seen = trace(subnet.machine, jobs["running"], Text(subnet.net.read_text(), installed))
    assert {job: (found.outside, found.others) for job, found in seen.items()} == dict.fromkeys(seen, (0, 0))


@needs_a_subnet
def test_ibtracert_goes_the_same_way(subnet: Subnet) -> None:
    jobs = state(JOBS)
    text = Text(subnet.net.read_text(), subnet.load(subnet.write(jobs)[0]))
    host = {name: device for device, name in text.name.items()}
    drawn = random.Random(1)
    for job in jobs["running"]:
        pair = [host[subnet.machine.node_name(node)] for node in drawn.sample(job["nodes"], 2)]
        said = ask(subnet.environment, "ibtracert", *(str(text.lid[device]) for device in pair)).stdout
        steps = re.findall(r'^\[(\d+)\] -> .*"(.*)"$', said, re.MULTILINE)
        walked = [(str(port), text.name[text.far[device, port]]) for device, port in text.walk(*pair)]
        assert steps == walked, said


@needs_a_subnet
def test_a_job_that_comes_or_goes_leaves_the_entries_of_others(subnet: Subnet) -> None:
    first, _ = subnet.write(state(JOBS))
    before = subnet.load(first)
    kept = subnet.directory / "lfts-before"
    kept.write_text(first.read_text())
    later = state([LATER if job.id == 4 else job for job in JOBS])
    second, said = subnet.write(later, "--previous", kept)
    after = subnet.load(second)
    old, new = ports(before), ports(after)
    changed = {entry for entry in old | new if old.get(entry) != new.get(entry)}
    text = Text(subnet.net.read_text(), after)
    lid_of = {text.name[device]: lid for device, lid in text.lid.items()}
    gone_and_come = [*state(JOBS)["running"][3]["nodes"], *later["running"][3]["nodes"]]
    touched = {lid_of[subnet.machine.node_name(node)] for node in gone_and_come}
    assert changed
    assert {lid for _, lid in changed} <= touched
    counts = {job["id"]: job["changed"] for job in said["jobs"]}
    assert said["changed"] == len(changed)
    assert counts["11"] > 0
    assert all(count == 0 for job, count in counts.items() if job != "11")


@needs_a_subnet
def test_opensm_follows_lids_that_have_changed(subnet: Subnet) -> None:
    # The file goes by the identifiers of ports: with the LIDs of two hosts swapped in it, opensm
    # installs the same tables, and with those out of date it installs the right ones.
    tables, _ = subnet.write(state(JOBS))
    right = ports(subnet.load(tables))
    swapped = subnet.directory / "lfts-swapped"
    a, b = (f"0x{lid:04x}" for lid in (Text(subnet.net.read_text(), "").lid.values()) if lid in (1, 4))
    text = tables.read_text()
    text = re.sub(
        rf"^(?:{a}|{b}) ", lambda found: f"{b if found[0] == f'{a} ' else a} ", text, flags=re.MULTILINE
    )
    swapped.write_text(text)
    assert ports(text) != right
    assert ports(subnet.load(swapped)) == right


@needs_a_subnet
def test_a_running_opensm_takes_new_tables_on_a_signal(subnet: Subnet) -> None:
    # As the hook of the Slurm driver does it: it replaces the file and sends SIGHUP to opensm.
    tables, _ = subnet.write(state(JOBS))
    command = [
        "opensm",
        "-R",
        "file",
        "-U",
        str(tables),
        "-f",
        str(subnet.directory / "running.log"),
        "-s",
        "0",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}

    def installed() -> dict[tuple[str, int], int]:
        return ports(ask(subnet.environment, "dump_fts").stdout)

    sweep(subnet.environment, "ftree")
    manager = subprocess.Popen(command, env=subnet.environment, cwd=subnet.directory, **quiet)
    try:
        first = ports(tables.read_text())
        until(lambda: installed() == first)
        subnet.write(state([LATER if job.id == 4 else job for job in JOBS]))
        second = ports(tables.read_text())
        assert first != second
        assert installed() == first
        manager.send_signal(signal.SIGHUP)
        until(lambda: installed() == second)
    finally:
        manager.kill()  # it waits for a simulator on SIGTERM
        manager.wait()


@needs_a_subnet
def test_lanes_set_aside_keep_service_traffic_off_owned_links(subnet: Subnet) -> None:
    jobs = state(JOBS, lanes=5)
    _, mixed = subnet.write(jobs, "--service", STORAGE)
    _, apart = subnet.write(jobs, "--service", STORAGE, "--service-uplinks", "1")
    assert mixed["service"]["over_dedicated_links"] > 0
    assert mixed["service"]["routes"] == apart["service"]["routes"] > 0
    assert apart["service"]["over_dedicated_links"] == 0
