"""`topolane slurm outages` with files of the plugin that are written by hand, and without Slurm."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plugin_files import running, write_counters, write_jobs, write_links
from topolane import InputError, Machine
from topolane._engine import DedicatedRoutes
from topolane.cluster import links
from topolane.cluster.view import Running
from topolane.slurm import links_out
from topolane.slurm.links_out import FILE, LinksOut
from topolane.slurm.plugin_state import sum_of
from waiting import DEADLINE

sys.path.append(str(Path(__file__).parents[1] / "fabric"))
from test_absent import cables, lacking

COMMAND = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm"]
TREE = """\
name = "node"
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
nodes = "node[1-24]"
"""


class Controller:
    """The host of slurmctld: job 7 runs on links of its own, job 8 without."""

    def __init__(self, directory: Path) -> None:
        self.state, self.net, self.fabric = directory / "state", directory / "net", directory / "fabric"
        self.file = self.state / FILE
        self.state.mkdir()
        self.net.write_text(Machine.parse(TREE, "tree.toml").to("ibnetdiscover"))
        self.machine = Machine.parse(self.net.read_text(), "net")
        self.sum = sum_of(self.net.read_bytes())
        (self.own,) = self.machine.cables_named(["leaf0"])
        self.own = [link for link in self.own if link >= self.machine.nodes][:2]
        write_counters(self.state, calls=1)
        write_jobs(
            self.state,
            f"machine {self.net} 24",
            f"machine-sum {self.sum:016x}",
            "out 0",
            running(7, "dedicated", "isolated"),
            running(8, "stock", "shared"),
        )
        write_links(self.state, self.net, (7, 1.0, [0, 1, 6, 7], self.own), (9, 1.0, [12, 18], [40]))

    def run(self, *words: object, **given: object) -> subprocess.CompletedProcess[str]:
        options = {"machine": self.net, "state": self.state} | given
        asked = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        return subprocess.run(
            [*COMMAND, "outages", *asked, *map(str, words)],
            env={"PYTHONPATH": ":".join(sys.path[1:]), "PATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def say(self, *words: object, **given: object) -> dict[str, Any]:
        done = self.run("--json", *words, **given)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def name(self, link: int) -> str:
        return links_out.names(self.machine, [link])[0]

    def read(self) -> LinksOut:
        return links_out.read(self.state, self.machine, self.sum)


def without(net: str, host: str) -> str:
    """The subnet without the cable of a host."""
    rows = net.splitlines()
    lines = {line for pair in cables(net) for line in pair if any(f'"{host}"' in rows[one] for one in pair)}
    assert len(lines) == 2
    return lacking(net, lines)


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_a_list_of_names_is_reported(controller: Controller) -> None:
    """A link, a cable, a node and a switch; the file has them, and the report what is new, what came back, and who owns it."""
    link, other = controller.own
    controller.fabric.write_text(f"# failed\n\n{controller.name(link)}\n  {other}\nnode24\n")
    said = controller.say(fabric=controller.fabric)
    (node,) = controller.machine.cables_named(["node24"])
    assert controller.read() == LinksOut(frozenset({link, other, *node}))
    names = sorted(controller.name(one) for one in (link, other, *node))
    assert sorted(said["failed"]) == sorted(said["newly_failed"]) == names and said["back"] == []
    assert said["jobs"] == [
        {"job": "7", "owns": [controller.name(link), controller.name(other)], "may_use": []}
    ]
    # Job 9 does not run: it only got an answer.
    controller.fabric.write_text(f"pod1-s1\n{controller.name(link)}\n")
    shown = controller.run(fabric=controller.fabric).stdout
    assert (
        f"back in service: 2 links: {', '.join(links_out.names(controller.machine, [*node, other]))}" in shown
    )
    assert f"job 7 owns {controller.name(link)}" in shown
    assert "down?" in shown, "it says that Slurm's jobs are not known"
    # Each run says all of it.
    assert controller.say()["failed"] == [] and controller.read() == LinksOut()
    assert controller.file.stat().st_mode & 0o777 == 0o644


def test_a_present_subnet_is_compared(controller: Controller) -> None:
    """Cables that a later output of ibnetdiscover lacks are out of service, those of hosts that are down as well."""
    net = controller.net.read_text()
    (node,) = controller.machine.cables_named(["node3"])
    controller.fabric.write_text(without(net, "node3"))
    controller.say(fabric=controller.fabric)
    assert controller.read() == LinksOut(frozenset(node))
    controller.fabric.write_text(net)
    assert controller.say(fabric=controller.fabric)["back"] == [controller.name(link) for link in node]


def test_a_machine_of_two_files_numbers_links_otherwise(controller: Controller, tmp_path: Path) -> None:
    """Nodes that only topology.conf names come into the machine; the cable that is gone is still the same one."""
    smaller = Machine.parse(TREE, "tree.toml").only(list(range(2, 24))).to("ibnetdiscover")
    conf = tmp_path / "topology.conf"
    conf.write_text(Machine.parse(TREE, "tree.toml").to("slurm"))
    controller.net.write_text(smaller)
    joined = Machine.parse(smaller, "net").joined(Machine.parse(conf.read_text(), "topology.conf"))[0]
    assert joined.nodes == 24
    total = sum_of(conf.read_bytes(), sum_of(controller.net.read_bytes()))
    write_jobs(controller.state, f"machine {controller.net},{conf} 24", f"machine-sum {total:016x}")
    (node,) = joined.cables_named(["node3"])
    controller.fabric.write_text(without(smaller, "node3"))
    done = controller.run("--machine", conf, fabric=controller.fabric)
    assert done.returncode == 0, done.stderr
    assert links_out.read(controller.state, joined, total) == LinksOut(frozenset(node))


def test_slots_are_reserved(controller: Controller) -> None:
    """The highest slots of every switch, as `topolane slurm routes` reserves them; both commands agree, or say that they do not."""
    said = controller.say("--service-uplinks", 1)
    reserved = DedicatedRoutes.set_aside(controller.machine, 1)
    assert controller.read() == LinksOut(frozenset(), frozenset(reserved))
    assert len(said["reserved"]) == len(reserved) and said["failed"] == []
    assert links_out.slots_of(controller.machine, reserved) == 1
    assert links_out.slots_of(controller.machine, reserved[1:]) is None

    def routes(slots: int) -> str:
        words = ["--machine", controller.net, "--state", controller.state, "--out", controller.state / "lfts"]
        words += ["--install", "true", "--service", "node24", "--service-uplinks", slots]
        done = subprocess.run([*COMMAND, "routes", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "the plugin reserves" not in routes(1)
    output = routes(2)
    assert "the plugin reserves 1 uplink slots of every switch: run `topolane slurm outages`" in output


def test_a_dry_run_writes_nothing(controller: Controller) -> None:
    controller.fabric.write_text("leaf1\n")
    assert controller.run("--dry-run", fabric=controller.fabric).stdout.endswith(
        "nothing is written (--dry-run)\n"
    )
    assert not controller.file.exists()


FAULTS = {
    "no link": ("leaf0->nowhere\n", {}, "fabric:1: "),
    "line": ("# one\nleaf0\n99999\n", {}, "fabric:3: "),
    "empty": ("\n", {}, "the file is empty"),
    "binary": ("leaf0\x00\n", {}, "fabric:1: "),
    "cut short": (None, {}, "fabric"),
    "no fabric": ("", {"fabric": "/nowhere/fabric"}, "/nowhere/fabric: No such file"),
    "no machine": ("leaf0\n", {"machine": "/nowhere/net"}, "/nowhere/net"),
    "another machine": ("leaf0\n", {"machine": "other"}, "with another content"),
    "no state": ("leaf0\n", {"state": "/nowhere"}, "name Slurm's StateSaveLocation"),
    "not ibnetdiscover": (None, {"machine": "tree"}, "give a list of links"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_input_costs_one_sentence(controller: Controller, fault: str, tmp_path: Path) -> None:
    """Exit code 2, and the file stays as it is."""
    controller.fabric.write_text("leaf3\n")
    controller.say(fabric=controller.fabric)
    before = controller.file.read_bytes()
    net = controller.net.read_text()
    (tmp_path / "other").write_text(f"{net}\n")
    (tmp_path / "tree").write_text(TREE)
    text, given, says = FAULTS[fault]
    if fault == "not ibnetdiscover":
        write_jobs(controller.state)
    controller.fabric.write_text((net if given else net[: len(net) // 2]) if text is None else text)
    named = {name: tmp_path / str(value) for name, value in given.items()}
    done = controller.run(**({"fabric": controller.fabric} | named))
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done
    assert controller.file.read_bytes() == before


def test_no_change_of_the_file_is_more_than_a_sentence(controller: Controller) -> None:
    """Cut anywhere or changed anywhere, the file is refused in one sentence, and the next run of the command replaces it."""
    controller.fabric.write_text("leaf1\n")
    controller.say("--service-uplinks", 1, fabric=controller.fabric)
    whole, draw = controller.file.read_bytes(), random.Random(5)
    for _ in range(300):
        changed = bytearray(whole[: draw.randrange(len(whole) - 1)] if draw.random() < 0.3 else whole)
        if len(changed) == len(whole):
            changed[draw.randrange(len(changed) - 1)] ^= 1 << draw.randrange(8)
        controller.file.write_bytes(changed)
        with pytest.raises(InputError) as caught:
            controller.read()
        assert len(str(caught.value)) < 1100
    said = controller.say(fabric=controller.fabric)
    assert any("it is replaced" in problem for problem in said["problems"])
    (leaf,) = controller.machine.cables_named(["leaf1"])
    assert controller.read() == LinksOut(frozenset(leaf))


def test_jobs_that_may_use_a_link() -> None:
    """A job without links of its own may use all uplinks of the groups that it crosses, and the cables of its nodes."""
    machine = Machine.parse(TREE, "tree.toml")
    names = machine.link_names()
    leaf0 = next(link for link, row in enumerate(names) if row[0] == "leaf0")
    pod0 = next(link for link, row in enumerate(names) if row[1] == "pod0")
    holders = {1: [0, 6], 2: [0, 1, 2, 3, 4, 5], 3: [7, 12], 4: [2]}
    jobs = [Running(job, str(job), "", "", tuple(nodes), 0.0, None) for job, nodes in holders.items()]
    found = links.touched(machine, [0, 2, leaf0, pod0], jobs)
    assert found == {
        1: links.Touched((), (0, leaf0)),
        2: links.Touched((), (0, 2)),
        3: links.Touched((), (pod0,)),
    }
