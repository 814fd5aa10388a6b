"""How the scheduler of a real Flux instance is started, and what its end does to the instance."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from flux_instance import TREE, Instance, Job, instance, missing, resources
from topolane._engine import Machine
from topolane.cli.flux import modprobe
from topolane.flux import module_file
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

MACHINE = Machine.parse(TREE, "tree.toml")
OTHER_VERSION = """\
import importlib.util

found = importlib.util.spec_from_file_location("module", {file!r})
module = importlib.util.module_from_spec(found)
found.loader.exec_module(module)


class Handle:
    def __init__(self, handle):
        self._handle = handle

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def attr_get(self, name):
        return "1.2.0" if name == "version" else self._handle.attr_get(name)


def mod_main(handle, *words):
    module.mod_main(Handle(handle), *words)
"""
HOST_OF_EACH = """\
#!/bin/sh
mine=hardware-$PMI_RANK.xml
sed 's/name="HostName" value="[^"]*"/name="HostName" value="host'$PMI_RANK'"/' FILE > FOLDER/$mine
FLUX_HWLOC_XMLFILE=FOLDER/$mine exec "$@"
"""
"""Lets each broker find the hardware of FILE, on a host of its own."""


def loaded_at_start(folder: Path, *words: str) -> None:
    """Makes instances that start in this folder load our scheduler, as the guide says."""
    printed = CliRunner().invoke(modprobe, words, catch_exceptions=False)
    (folder / "modprobe" / "modprobe.d").mkdir(parents=True)
    (folder / "modprobe" / "modprobe.d" / "topolane.toml").write_text(printed.stdout)


def test_an_instance_starts_with_the_scheduler_if_modprobe_d_says_so(tmp_path: Path) -> None:
    """The file that `topolane flux modprobe` prints is all that it takes. Flux's own scheduler is not loaded."""
    (tmp_path / "tree.toml").write_text(TREE)
    loaded_at_start(tmp_path, f"machine={tmp_path / 'tree.toml'}", "policy=dedicated", "queue=conservative")
    with instance(tmp_path, resources(72)) as flux:
        stats = flux.stats()
        assert stats["decides"] == "engine" and stats["nodes"] == 72
        assert stats["settings"][:2] == ["policy=dedicated", "queue=conservative"]
        assert "sched-simple" not in flux.run("module", "list")
        assert flux.wait_state(flux.submit("-N1"), "INACTIVE").nodes == "n0"


def test_an_instance_that_cannot_load_it_says_why(tmp_path: Path) -> None:
    """A machine file that does not name the instance's nodes: the start fails with one sentence."""
    loaded_at_start(tmp_path, "machine=cab")
    with pytest.raises(AssertionError), instance(tmp_path, resources(2)):
        pass
    assert "cab does not name n0 and 1 more, which Flux has" in (tmp_path / "log").read_text()


def test_ranks_that_start_later_are_waited_for(tmp_path: Path) -> None:
    """The module is loaded when only the first of three brokers runs, and Flux finds its nodes itself. Once it knows them, the engine decides."""
    with instance(_below(tmp_path, "one"), None) as alone:
        hardware = alone.run(
            "python", "-c", "from flux import Flux; print(Flux().rpc('resource.topo-get').get_str())"
        )
    (tmp_path / "hardware.xml").write_text(hardware)
    each = tmp_path / "each.sh"
    each.write_text(
        HOST_OF_EACH.replace("FILE", str(tmp_path / "hardware.xml"), 1).replace("FOLDER", str(tmp_path))
    )
    each.chmod(0o755)
    folder = _below(tmp_path, "three")
    loaded_at_start(folder, "policy=isolated")
    with instance(folder, None, 3, [f"--wrap={each}"]) as flux:
        assert flux.stats()["decides"] == "engine" and flux.stats()["nodes"] == 3
        assert flux.wait_state(flux.submit("-N3"), "INACTIVE").nodes == "host[0-2]"


def test_brokers_on_one_host_run_jobs_in_order(tmp_path: Path) -> None:
    """The same with two brokers on one host: no machine has a node twice, and it is too late to refuse. Jobs run, and the log says why."""
    loaded_at_start(tmp_path, "policy=isolated")
    with instance(tmp_path, None, 2) as flux:
        assert flux.stats()["decides"] == "order of priority"
        jobs = [flux.submit("-N2", "-n2"), flux.submit("-N1", "-n1"), flux.submit("-N3")]
        done = flux.idle()
        assert [done[job].result for job in jobs] == ["COMPLETED", "COMPLETED", "FAILED"]
        said = flux.run("dmesg")
        assert "jobs start in order of priority on any free nodes" in said
        assert "is the name of several ranks" in said


def test_a_job_that_asks_for_links_waits_while_the_engine_cannot_answer(tmp_path: Path) -> None:
    """On such an instance a job that asks for links itself waits and says why, others pass it, and `without-engine=wait` keeps all."""
    for settings, waits in (("policy=isolated", 1), ("policy=isolated without-engine=wait", 2)):
        folder = _below(tmp_path, str(waits))
        loaded_at_start(folder, *settings.split())
        with instance(folder, None, 2) as flux:
            asks = flux.submit("-N1", "-n1", "--setattr=system.topolane.min-bandwidth=0.5")
            other = flux.submit("-N1", "-n1")
            if waits == 1:
                assert flux.wait_state(other, "INACTIVE").result == "COMPLETED"
            words = ("jobs", "-no", "{sched.reason_pending}", str(asks))
            said = until(lambda words=words: flux.run(*words).strip(), "it says why")
            assert "Topolane's engine cannot answer" in said
            flux.run("cancel", str(asks), *([str(other)] if waits == 2 else []))


@pytest.mark.parametrize("name", ["sched-simple", "sched-topolane"])
def test_the_end_of_a_module_ends_the_instance(tmp_path: Path, name: str) -> None:
    """Flux's rule for all modules of a broker, its own scheduler among them: `kill -9` of the module's process ends the instance."""
    with instance(tmp_path, resources(4)) as flux:
        flux.run("module", "load", name) if name == "sched-simple" else flux.load()
        (pid,) = re.findall(rf"module-python-exec {name} pid=(\d+)", flux.run("dmesg"))[-1:]
        os.kill(int(pid), signal.SIGKILL)
        until(lambda: flux.broker.poll() is not None, "the instance ends")


def test_a_process_may_be_killed_ten_times_in_the_midst(tmp_path: Path) -> None:
    """The scheduler as a process of its own: the instance outlives it, running jobs keep nodes and links, waiting jobs wait for the next one.
    Every job runs once, and no node and no link is given twice.
    """
    (tmp_path / "tree.toml").write_text(TREE)
    words = (f"machine={tmp_path / 'tree.toml'}", "policy=dedicated")
    draw = random.Random(11)
    with instance(tmp_path, resources(72)) as flux:
        for _ in range(10):
            with flux.process(*words) as scheduler:
                flux.submit_all(
                    [(draw.choice((2, 4, 7, 9, 14, 26)), draw.uniform(0.5, 4), 16) for _ in range(8)]
                )
                scheduler.kill()
                scheduler.wait()
            assert flux.broker.poll() is None
        with flux.process(*words):
            done = list(flux.idle().values())
        assert {job.result for job in done} == {"COMPLETED"} and len(done) == 80
        assert check_nodes_and_links(flux, done) > 50


def check_nodes_and_links(flux: Instance, jobs: list[Job]) -> int:
    """No two jobs at once have one node or own one link. Returns the pairs of jobs that ran at once."""
    notes = flux.notes([job.id for job in jobs])
    met = 0
    for one, other in itertools.combinations(jobs, 2):
        if one.start < other.end and other.start < one.end:
            met += 1
            assert not set(MACHINE.nodes_named(one.nodes)) & set(MACHINE.nodes_named(other.nodes))
            assert not set(notes[one.id]["links"]) & set(notes[other.id]["links"])
    return met


def test_a_process_ends_with_its_instance_and_says_what_is_wrong(tmp_path: Path) -> None:
    """It ends when the instance ends. It does not start with a wrong argument, or if another scheduler runs: one sentence, and exit code 2."""
    with instance(tmp_path, resources(4)) as flux:

        def refused(*words: str) -> str:
            return flux.run("python", module_file(), *words, code=2)

        assert "unknown policy 'nothing'" in refused("policy=nothing")
        assert "unknown argument 'colour=red'" in refused("colour=red")
        flux.run("module", "load", "sched-simple")
        assert "remove the scheduler that is loaded first" in refused()
        flux.run("module", "remove", "sched-simple")
        with flux.process() as scheduler:
            assert flux.wait_state(flux.submit("-N2"), "INACTIVE").result == "COMPLETED"
            flux.stop()
            until(lambda: scheduler.poll() is not None, "the process ends")


def test_another_version_of_flux_is_refused(tmp_path: Path) -> None:
    """A broker whose version the module was not written for: it is not loaded, the log says why, and the instance goes on."""
    other = tmp_path / "other_version.py"
    other.write_text(OTHER_VERSION.format(file=str(module_file())))
    with instance(tmp_path, resources(4)) as flux:
        flux.run("module", "load", other, code=1)
        assert "this instance runs flux-core 1.2.0: Topolane needs 0.84 or newer, before 1.0" in flux.run(
            "dmesg"
        )
        flux.load()
        assert flux.wait_state(flux.submit("-N2"), "INACTIVE").result == "COMPLETED"


def _below(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name
