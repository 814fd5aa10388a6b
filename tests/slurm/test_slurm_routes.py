"""`topolane slurm routes` as slurmctld calls it, with files of the plugin that are written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from owned_links import Row, write_links, write_running
from topolane import Machine
from topolane._engine import DedicatedRoutes
from waiting import DEADLINE, until_opened

sys.path.append(str(Path(__file__).parents[1] / "fabric"))
from owned_jobs import JOBS, MACHINE, STORAGE, Layout, on, state

COMMAND = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "routes"]


class Controller:
    """The host of slurmctld: its directory of state, the subnet's file, and what was installed, in order."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.state = directory, directory / "state"
        self.net, self.out, self.kept = directory / "net", directory / "lfts", directory / "kept"
        self.state.mkdir()
        self.kept.mkdir()
        self.net.write_text(Machine.parse(MACHINE, "toy.toml").to("ibnetdiscover"))
        self.machine = Machine.parse(self.net.read_text(), "net")
        self.jobs: dict[int, Row] = {row["id"]: row for row in state(JOBS)["running"] if row["links"]}
        self.install = f"sh -c 'cp {self.out} {self.kept}/$(ls {self.kept} | wc -l)'"

    def give(self, *jobs: int) -> None:
        write_links(self.state, [self.net], [self.jobs[job] for job in jobs])

    def hosts(self, job: int) -> str:
        return self.machine.hostlist(sorted(self.jobs[job]["nodes"]))

    def begin(
        self,
        context: str | None,
        job: int | None,
        *options: object,
        array: int | None = None,
        hosts: str | None = None,
        **changed: object,
    ) -> subprocess.Popen[str]:
        """Starts the command, in the environment that slurmctld gives: no PATH. array: whose task the job is."""
        given = {"machine": self.net, "out": self.out, "state": self.state, "install": self.install} | changed
        words = [word for key, value in given.items() for word in (f"--{key}", str(value))]
        environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        if context is not None:
            environment["SLURM_SCRIPT_CONTEXT"] = f"{context}_slurmctld"
        if job is not None:
            environment |= {"SLURM_JOB_ID": str(job), "SLURM_JOB_START_TIME": "1000"}
        environment |= {} if array is None else {"SLURM_ARRAY_JOB_ID": str(array)}
        environment |= {} if hosts is None else {"SLURM_JOB_NODELIST": hosts}
        return subprocess.Popen(
            [*COMMAND, *words, *map(str, options)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, context: str | None, job: int | None, *options: object, **changed: Any) -> Any:
        process = self.begin(context, job, *options, **changed)
        out, error = process.communicate(timeout=DEADLINE)
        return subprocess.CompletedProcess(COMMAND, process.returncode, out, error)

    def installed(self) -> list[str]:
        return [(self.kept / str(number)).read_text() for number in range(len(list(self.kept.iterdir())))]

    def tables_of(self, *jobs: int) -> str:
        """What the file must be for these jobs."""
        rows = [(str(job), self.jobs[job]["nodes"], self.jobs[job]["links"]) for job in jobs]
        return DedicatedRoutes(self.machine, rows).tables(self.net.read_text(), "net").text()


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_tables_follow_prologs_and_epilogs(controller: Controller) -> None:
    """A job's routes are there when its prolog has ended, and gone when its epilogue has, though the plugin names it still.
    Jobs without links change nothing. A job that is requeued gets its routes again."""
    controller.give(1, 2)
    done = controller.call("prolog", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert controller.installed() == [controller.tables_of(1, 2)]
    assert "already" in controller.call("prolog", 1).stdout
    assert controller.call("prolog", 99).stdout == controller.call("epilog", 99).stdout == ""
    assert controller.call("epilog", 1).returncode == 0
    assert controller.installed()[1:] == [controller.tables_of(2)]
    assert controller.call("prolog", 1).returncode == 0
    assert controller.installed()[2:] == [controller.tables_of(1, 2)]
    controller.give(2, 3)  # written when job 3 was placed: job 1 is gone
    assert controller.call("prolog", 3).returncode == 0
    assert controller.installed()[3:] == [controller.tables_of(2, 3)]
    # By hand the tables are always installed.
    assert controller.call(None, None).stdout.endswith("the tables are installed\n")
    assert controller.installed()[4:] == [controller.tables_of(2, 3)]


def test_many_at_once_cost_few_computations(controller: Controller) -> None:
    """24 prologs of jobs that the plugin names already, then their 24 epilogues: each finds what it needs in the subnet."""
    many = 24
    pairs = [(6 * pod + leaf, plane) for pod in range(2) for leaf in (0, 2) for plane in range(6)]
    layouts = [Layout(n + 1, on((leaf, leaf + 1), 1), (plane,)) for n, (leaf, plane) in enumerate(pairs)]
    controller.jobs = {row["id"]: row for row in state(layouts)["running"]}
    assert len(controller.jobs) == many
    controller.give(*controller.jobs)
    for context, last in (
        ("prolog", controller.tables_of(*controller.jobs)),
        ("epilog", controller.tables_of()),
    ):
        before = len(controller.installed())
        begun = [controller.begin(context, job) for job in controller.jobs]
        for process in begun:
            process.communicate(timeout=DEADLINE)
            assert process.returncode == 0
        new = controller.installed()[before:]
        assert new[-1] == last
        assert len(new) <= 6, "they were computed again and again"


def test_routes_stay_until_the_nodes_are_free(controller: Controller) -> None:
    """The epilogue runs while the nodes still end the job's processes: their traffic stays on the job's links."""
    controller.give(1, 2)
    assert controller.call("prolog", 2).returncode == 0
    write_running(controller.state, [1, 2])
    epilogue = controller.begin("epilog", 1)
    until_opened(controller.state / "topolane_jobs")
    assert epilogue.poll() is None and len(controller.installed()) == 1
    write_running(controller.state, [2])
    epilogue.communicate(timeout=DEADLINE)
    assert controller.installed()[1:] == [controller.tables_of(2)]
    # A node that does not end the job holds the epilogue no longer than that, and the routes stay.
    done = controller.call("epilog", 2, "--wait", 3)
    assert done.returncode == 0 and len(controller.installed()) == 2
    # A record that cannot be read may be the job's.
    odd = 'rule 3 stock 1 Partition=\xff\n{"job":2,"policy":"dedicated","share":1,"link_use":"of a later release"}\n'
    jobs = f"topolane-jobs 2 {int(time.time()) + 5}\n{odd}"
    (controller.state / "topolane_jobs").write_bytes(jobs.encode("latin-1"))
    done = controller.call("epilog", 2, "--wait", 3)
    assert (done.returncode, done.stderr) == (0, "") and len(controller.installed()) == 2
    # A file that is not written any more says nothing.
    write_running(controller.state, [2], age=60)
    assert controller.call("epilog", 2, "--wait", 4).returncode == 0
    assert controller.installed()[2:] == [controller.tables_of()]


def test_a_job_that_ends_gives_way_on_nodes_that_another_has(controller: Controller) -> None:
    """The plugin's file has all nodes of a job until the next job is placed, which may be on some of them."""
    old, new = controller.jobs[1], controller.jobs[8]
    both = [*old["nodes"], new["nodes"][0]]
    controller.jobs = {5: new | {"id": 5}, 7: old | {"id": 7, "nodes": both}}
    controller.give(5, 7)
    done = controller.call("prolog", 5)
    assert done.returncode == 0 and "job 7 is on the subnet's default routes" in done.stderr
    assert controller.installed() == [controller.tables_of(5)]


ARRAY, FIRST, SECOND, THIRD = 20, 21, 22, 23


@pytest.fixture
def tasks(controller: Controller) -> Controller:
    """An array with the nodes and links of jobs 1 and 2: the plugin's file names a new task by the number of the array."""
    for task, job in ((FIRST, 1), (SECOND, 2)):
        controller.jobs[task] = controller.jobs[job] | {"id": task}
    return controller


def give_array(controller: Controller, task: int, *others: int) -> None:
    """The plugin has answered for a task of the array. It knows the other jobs by their own numbers."""
    controller.jobs[ARRAY] = controller.jobs[task] | {"id": ARRAY}
    controller.give(ARRAY, *others)


def of_array(
    controller: Controller, context: str, task: int, like: int | None = None, *options: object
) -> Any:
    """The script of a task, on the nodes of the job `like`."""
    hosts = controller.hosts(task if like is None else like)
    return controller.call(context, task, *options, array=ARRAY, hosts=hosts)


def test_a_task_of_an_array_has_routes_before_the_plugin_names_it(tasks: Controller) -> None:
    """The plugin gives the links to the array, and to the task only when it answers again: that changes no tables."""
    give_array(tasks, FIRST)
    broken = tasks.call(
        "prolog", FIRST, "--strict", array=ARRAY, hosts=tasks.hosts(FIRST), install="sh -c 'exit 3'"
    )
    assert broken.returncode == 2 and "ended with 3" in broken.stderr
    assert "1 job; the tables are installed\n" in of_array(tasks, "prolog", FIRST).stdout
    assert tasks.installed() == [tasks.tables_of(FIRST)]
    tasks.give(FIRST)
    assert "already" in of_array(tasks, "prolog", FIRST).stdout
    give_array(tasks, SECOND, FIRST)
    assert of_array(tasks, "prolog", SECOND).returncode == 0
    assert tasks.installed()[1:] == [tasks.tables_of(FIRST, SECOND)]
    # The last task has the number of the array.
    give_array(tasks, FIRST, SECOND)
    assert of_array(tasks, "prolog", ARRAY, FIRST).returncode == 0
    assert of_array(tasks, "epilog", FIRST).stdout == "", "those are another task's links by now"
    assert of_array(tasks, "epilog", SECOND).returncode == 0
    assert tasks.installed()[-1] == tasks.tables_of(FIRST)


def test_a_task_of_an_array_ends_before_the_plugin_names_it(tasks: Controller) -> None:
    """Its routes are gone, and stay away if other jobs start. The next task may have the same nodes and links."""
    give_array(tasks, FIRST, 8)
    assert of_array(tasks, "prolog", FIRST).returncode == 0
    write_running(tasks.state, [FIRST, 8])
    epilogue = tasks.begin("epilog", FIRST, array=ARRAY, hosts=tasks.hosts(FIRST))
    until_opened(tasks.state / "topolane_jobs")
    assert epilogue.poll() is None, "the task's nodes are not free"
    assert "already" in tasks.call("prolog", 8).stdout
    write_running(tasks.state, [8])
    epilogue.communicate(timeout=DEADLINE)
    assert epilogue.returncode == 0
    assert tasks.installed() == [tasks.tables_of(FIRST, 8), tasks.tables_of(8)]
    assert "already" in tasks.call("prolog", 8).stdout
    tasks.jobs[SECOND] = tasks.jobs[FIRST] | {"id": SECOND}
    assert of_array(tasks, "prolog", SECOND).returncode == 0
    assert tasks.installed()[2:] == [tasks.tables_of(SECOND, 8)]
    assert of_array(tasks, "epilog", FIRST).stdout == "", "a late one takes nothing from another task"
    assert len(tasks.installed()) == 3


def test_a_task_that_stock_slurm_placed_has_no_links_of_another_task(tasks: Controller) -> None:
    """Its nodes are not those that the plugin gave to the array."""
    give_array(tasks, FIRST)
    assert of_array(tasks, "prolog", FIRST).returncode == 0
    for number in (THIRD, ARRAY):
        for context in ("prolog", "epilog"):
            done = of_array(tasks, context, number, 8)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tasks.installed() == [tasks.tables_of(FIRST)]
    assert of_array(tasks, "epilog", FIRST).returncode == 0
    assert tasks.installed()[1:] == [tasks.tables_of()]


def test_a_machine_of_two_files_numbers_nodes_and_links_otherwise(controller: Controller) -> None:
    """The tables are those of the subnet, with the jobs' nodes and links by name. What the subnet lacks is named once."""
    full, conf = controller.machine, controller.directory / "topology.conf"
    conf.write_text(full.to("slurm"))
    controller.net.write_text(full.only(list(range(3, full.nodes))).to("ibnetdiscover"))
    wired = Machine.parse(controller.net.read_text(), "net")
    joined = wired.joined(Machine.parse(conf.read_text(), "topology.conf"))[0]
    assert (joined.nodes, wired.nodes) == (216, 213)

    def row(job: int, machine: Machine) -> Row:
        known, names = machine.link_names(), full.link_names()
        nodes = [machine.node_named(full.node_name(node)) for node in controller.jobs[job]["nodes"]]
        links = [known.index(names[link]) for link in controller.jobs[job]["links"]]
        return {"id": job, "nodes": [node for node in nodes if node is not None], "links": links}

    def tables(*jobs: int) -> str:
        rows = [(str(job), row(job, wired)["nodes"], row(job, wired)["links"]) for job in jobs]
        return DedicatedRoutes(wired, rows).tables(controller.net.read_text(), "net").text()

    assert row(2, wired)["links"] != row(2, joined)["links"]
    write_links(controller.state, [controller.net, conf], [row(job, joined) for job in (2, 8)])
    done = controller.call("prolog", 2, "--machine", conf)
    assert done.returncode == 0 and controller.installed() == [tables(2, 8)]
    assert done.stderr == f"{controller.net} does not have toy[2-3]: no routes of jobs lead there\n"
    assert "already" in controller.call("prolog", 8, "--machine", conf).stdout
    # A task of an array has its nodes by the numbers of both files.
    controller.jobs[ARRAY] = controller.jobs[5] | {"id": ARRAY}
    write_links(controller.state, [controller.net, conf], [row(job, joined) for job in (8, ARRAY)])
    done = controller.call("prolog", FIRST, "--machine", conf, array=ARRAY, hosts=controller.hosts(5))
    assert (done.returncode, done.stderr) == (0, "") and controller.installed()[1:] == [tables(8, ARRAY)]
    # A job has no routes if the subnet has none of its nodes.
    write_links(controller.state, [controller.net, conf], [row(1, joined) | {"nodes": [0, 1]}])
    done = controller.call("prolog", 1, "--strict", "--machine", conf)
    assert done.returncode == 2 and f"{controller.net} has none of its nodes" in done.stderr
    # The plugin's numbers are those of both files, in this order.
    for words, machine in (((), controller.net), (("--machine", controller.net), conf)):
        done = controller.call("prolog", 1, "--strict", *words, machine=machine)
        assert done.returncode == 2 and "of another machine file" in done.stderr, done.stderr
    done = controller.call("prolog", 1, "--strict", "--machine", conf, "--machine", conf)
    assert done.returncode == 2 and "one machine file or two, not 3" in done.stderr


FAULTS = {
    "machine": ({"machine": "/nowhere/net"}, "/nowhere/net"),
    "another machine": ({"machine": "other"}, "of another machine file"),
    "no state": ({"state": "/nowhere"}, "name Slurm's StateSaveLocation"),
    "no command": ({"install": "/nowhere/command"}, "No such file"),
    "a command that fails": ({"install": "sh -c 'echo no subnet >&2; exit 3'"}, "ended with 3: no subnet"),
    "a command that hangs": (
        {"install": "sh -c 'sleep infinity & wait'", "wait": 1},
        "has not ended after 5 s",
    ),
    "out": ({"out": "/nowhere/lfts"}, "/nowhere/lfts"),
    "uplinks": ({"service-uplinks": 1}, "name these nodes with --service"),
    "service": ({"service": "unknown"}, "--service unknown"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_runs_whatever_fails(controller: Controller, fault: str, tmp_path: Path) -> None:
    """A fault costs the job its own routes and one sentence; only --strict makes Slurm requeue the job."""
    controller.give(1)
    (tmp_path / "other").write_text(controller.net.read_text() + "\n")
    changed, said = FAULTS[fault]
    changed = changed | ({"machine": tmp_path / "other"} if fault == "another machine" else {})
    done = controller.call("prolog", 1, **changed)
    assert done.returncode == 0 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    strict = controller.call("prolog", 1, "--strict", **changed)
    assert strict.returncode == 2 and said in strict.stderr and strict.stderr.count("\n") == 1
    by_hand = controller.call(None, None, **changed)
    assert by_hand.returncode == 2
    # And the next one that can does it.
    assert controller.call("prolog", 1).stdout.endswith("the tables are installed\n")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "header", "count", "link", "node", "text"])
def test_a_garbled_file_of_links_installs_nothing(controller: Controller, damage: str) -> None:
    controller.give(1, 2)
    path = controller.state / "topolane_links"
    text = path.read_text()
    jobs = [controller.jobs[1], controller.jobs[2]]
    if damage == "link":
        write_links(controller.state, [controller.net], [jobs[0] | {"links": [10**6]}])
    elif damage == "node":
        write_links(controller.state, [controller.net], [jobs[0] | {"nodes": [10**6]}])
    else:
        path.write_text(
            {
                "cut": text[: len(text) // 2],
                "changed": text.replace(" 1 ", " 2 ", 1),
                "empty": "",
                "header": text.replace("topolane-links 1", "topolane-links 2"),
                "count": text.replace("\n1 1 ", "\n1 1 9", 1),
                "text": "\x00\xff" * 100,
            }[damage]
        )
    done = controller.call("prolog", 1)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "topolane" in done.stderr
    assert controller.installed() in ([], [controller.tables_of()])


def test_reserved_uplink_slots_carry_no_job(controller: Controller) -> None:
    """A job that owns a reserved slot is on the default routes, and says so; the others keep theirs."""
    controller.give(1, 8)  # job 8 is on the lower three slots of its leaves
    done = controller.call("prolog", 8, "--service", STORAGE, "--service-uplinks", 3)
    assert done.returncode == 0 and done.stderr == ""
    controller.give(2, 8)
    done = controller.call("prolog", 2, "--service", STORAGE, "--service-uplinks", 3)
    assert "reserved for service nodes" in done.stderr and done.returncode == 0
    strict = controller.call("prolog", 2, "--strict", "--service", STORAGE, "--service-uplinks", 3)
    assert strict.returncode == 2
