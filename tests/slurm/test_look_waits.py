"""The plugin's thread waits for locks of slurmctld that another thread holds, while slurmctld ends, starts again or changes hands.

Everything goes on in order without this thread: slurmctld saves its state and ends, its successor publishes. If the thread gets the
locks after all, it frees them and reads nothing: what Slurm's jobs point to may be gone. `waiting_look.c` makes it wait.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import PARTITIONS, Site, plugin_cluster
from topolane.slurm import plugin_state
from waiting import until

HERE = Path(__file__).parent
FILES = ("hold", "waits", "at-end", "looked", "freed")


class Waiting(Site):
    """A cluster whose slurmctlds have a thread that waits when a test says so."""

    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / name

    def let_wait(self) -> None:
        """Makes the thread that looks at jobs wait: a job starts, so there is something to look at."""
        self.file("hold").touch()
        self.start("-p", "pbatch", "-N1")
        until(self.file("waits").exists, "the thread waits")

    def publishes(self) -> None:
        """Waits until a job that starts now is in the records. Slurm is not asked to call the plugin."""
        job = self.start("-p", "pstock", "-N1")
        path = self.state / plugin_state.JOBS
        until(
            lambda: job in plugin_state.parse_jobs(path.read_text(), path.name).running,
            f"the record of {job}",
        )

    def ended(self, log: str) -> None:
        """Checks what a slurmctld that ended wrote: it saved its state, and found no lock in use."""
        assert "Saving all slurm state" in log, log
        for fault in ("Semaphores still set", "Locks left set", "fatal", "egmentation"):
            assert fault not in log, log


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waiting]:
    folder, directory = tmp_path_factory.mktemp("waits"), tmp_path_factory.mktemp("slurm")
    library = folder / "waiting_look.so"
    words = ["cc", "-shared", "-fPIC", f'-DFOLDER="{folder}"', "-ldl", "-o"]
    subprocess.run([*words, library, HERE / "waiting_look.c"], check=True)
    inside = Inside(inside.prefix, inside.environment | {"SLURMCTLD_PRELOAD": str(library)})
    options = ("--partitions", PARTITIONS, "--backup", "yes")
    with plugin_cluster(built, inside, directory, *options) as cluster:
        cluster.script("stop", "backup")
        waiting = Waiting(cluster, built)
        waiting.folder = folder
        yield waiting


@pytest.fixture(autouse=True)
def no_files(site: Waiting) -> Iterator[None]:
    site.wait_idle()
    yield
    for name in FILES:
        site.file(name).unlink(missing_ok=True)


@pytest.mark.parametrize("when", ["never", "at-end"])
def test_slurmctld_ends(site: Waiting, when: str) -> None:
    """Whether the thread never gets the locks, or gets them when all else of slurmctld has ended."""
    site.let_wait()
    if when == "at-end":
        site.file("at-end").touch()
    before = len(site.log())
    site.cluster.run("scontrol", "shutdown", "slurmctld")
    until(lambda: not site.cluster.lives("slurmctld"), "the end of slurmctld")
    assert not (site.cluster.directory / "run" / "slurmctld.pid").exists(), "slurmctld ended in order"
    site.ended(site.log()[before:])
    assert site.file("freed").exists() == (when == "at-end")
    assert not site.file("looked").exists()
    site.cluster.script("start", "slurmctld")
    site.publishes()


def test_slurmctld_reads_its_configuration_again(site: Waiting) -> None:
    """The process that follows publishes, while the former one may be there still."""
    site.let_wait()
    before = len(site.log())
    site.reconfigure()
    site.ended(site.log()[before:])
    site.publishes()
    site.file("waits").unlink(missing_ok=True)
    assert not site.file("looked").exists()


def test_a_slurmctld_that_takes_control_again(site: Waiting) -> None:
    """The second slurmctld gives control back and takes it once more, in the same process and with its locks, while the thread of the
    first time still waits. It has another thread now. Later the old one gets the locks."""

    def takes_over() -> None:
        count = site.log("backup").count("Running as primary controller")
        site.cluster.run("scontrol", "takeover")
        until(lambda: site.log("backup").count("Running as primary controller") > count, "the takeover")
        until(site.answers, "an answer")

    site.cluster.script("start", "backup")
    takes_over()
    site.let_wait()
    count = site.log("backup").count("running in background mode")
    site.cluster.script("start", "slurmctld")
    until(lambda: site.log("backup").count("running in background mode") > count, "the standby")
    takes_over()
    site.publishes()
    assert not site.file("freed").exists()
    site.file("waits").unlink()
    until(site.file("freed").exists, "the thread has freed the locks")
    site.publishes()
    assert not site.file("looked").exists()
    site.cluster.script("start", "slurmctld")
    until(site.answers, "the first slurmctld")
    site.cluster.script("stop", "backup")
