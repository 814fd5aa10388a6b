"""An earlier Topolane before and after this one, under jobs that run: each reads what the other has written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import topolane
from live_cluster import Inside
from plugin_site import PARTITIONS, plugin_cluster
from test_room_plan_live import OLD, Dying, Room
from topolane.slurm import plugin_build
from waiting import DEADLINE, until

TREE = Path(__file__).parents[2]
EARLIER = "f31f7e1ae4e03d01a7eac243b10334f36a3c93fd"
"""What is compared if there is no tag: the last commit that wrote topolane_jobs in its first form."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the release before: of the last tag, or of EARLIER. Its Python runs with the engine of now."""
    git = ("git", "-C", TREE)
    tag = subprocess.run([*git, "describe", "--tags", "--abbrev=0", "HEAD~1"], capture_output=True, text=True)
    commit = tag.stdout.strip() or EARLIER
    folder = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(
        [*git, "archive", commit, "python", "native/slurm", "crates/capi/include"], capture_output=True
    )
    if archive.returncode:
        pytest.skip(f"this clone does not have the commit {commit}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    extension = next(Path(topolane.__file__).parent.glob("_engine*.so"))
    shutil.copy(extension, folder / "python" / "topolane")
    return folder


class Sides(Room):
    """A cluster whose plugin and commands are of now or of before."""

    def __init__(self, site: Room, earlier: Path, before: Path, now: Path) -> None:
        super().__init__(site.cluster, site.built)
        self.earlier, self.before, self.now = earlier, before, now

    def use(self, built: Path) -> None:
        """Puts a plugin in place and restarts slurmctld, while jobs run."""
        self.cluster.script("stop", "slurmctld")
        put(built, self.built)
        self.cluster.script("start", "slurmctld")
        until(lambda: self.counters()["active"] == 1, "the plugin is active")

    def uses(self) -> dict[int, tuple[str, str]]:
        """As of any site. The plugin of before also names the last job of --test-only, until Slurm asks again."""
        running = {ran.job for ran in self.running() or ()}
        return {job: use for job, use in super().uses().items() if job in running}

    def environment(self, is_earlier: bool) -> dict[str, str]:
        folder = self.earlier / "python" if is_earlier else Path(topolane.__file__).parents[1]
        return self.cluster.environment | {"PYTHONPATH": str(folder)}

    def asked(self, is_earlier: bool, *words: object) -> subprocess.CompletedProcess[str]:
        """A command of then or of now."""
        command = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm", *map(str, words))
        done = subprocess.run(
            [*self.cluster.inside.prefix, *command],
            env=self.environment(is_earlier), capture_output=True, text=True, timeout=DEADLINE,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done


def put(built: Path, folder: Path) -> None:
    """Copies what was built over what is there."""
    for path in [*folder.glob("topology_*.so"), folder / plugin_build.BUILDS]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in built.glob("*.so"):
        shutil.copy(path, folder)
    if (built / plugin_build.BUILDS).is_dir():
        shutil.copytree(built / plugin_build.BUILDS, folder / plugin_build.BUILDS)


@pytest.fixture(scope="module")
def site(
    earlier: Path,
    built: Path,
    engine: Path,
    source: Path,
    inside: Inside,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sides]:
    """A cluster with the plugin of before."""
    before, plugins = tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("plugins")
    program = "import sys, pathlib; from topolane.slurm import plugin_build; plugin_build.build(*map(pathlib.Path, sys.argv[1:3]), 'cc', pathlib.Path(sys.argv[3]))"
    environment = os.environ | {"PYTHONPATH": str(earlier / "python")}
    subprocess.run([sys.executable, "-c", program, source, engine, before], env=environment, check=True)
    put(before, plugins)
    options = ("--leaf", 6, "--pod", 2, "--deadline", 240, "--partitions", PARTITIONS)
    directory = tmp_path_factory.mktemp("slurm")
    with plugin_cluster(plugins, inside, directory, *options, conf=("MinJobAge=10",)) as cluster:
        yield Sides(Room(cluster, plugins), earlier, before, built)


@pytest.fixture
def quiet(site: Sides) -> Sides:
    site.wait_idle()
    site.call()
    return site


def test_upgrade_and_downgrade_under_running_jobs(quiet: Sides) -> None:
    """The new plugin takes over policies and links of jobs that the old one placed, and the other way round. No job gets
    links of another, and commands of now understand what both publish.
    """
    jobs = [quiet.start("-p", "pbatch", "-N9"), quiet.start("-p", "powned", "-w", "node[19,20]")]
    uses, owners = quiet.uses(), quiet.owners()
    assert uses.keys() == set(jobs) and {policy for policy, _ in uses.values()} == {"isolated", "dedicated"}
    quiet.asked(False, "status")
    for built, words in ((quiet.now, ("-p", "powned", "-N2")), (quiet.before, ("-p", "pbatch", "-N2"))):
        quiet.saved(jobs[-1])
        quiet.use(built)
        until(lambda uses=uses: {job: quiet.uses().get(job) for job in uses} == uses, "the same policies")
        assert {job: quiet.owners().get(job) for job in owners} == owners
        jobs.append(quiet.start(*words))
        uses, owners = quiet.uses(), quiet.owners()
        links = [link for each in owners.values() for link in each]
        assert uses.keys() == set(jobs) and len(links) == len(set(links))
        running = quiet.running()
        assert running is not None and quiet.check(running) <= 1
        quiet.asked(False, "status")


@pytest.mark.parametrize("is_earlier", [True, False], ids=["begun before", "begun now"])
def test_a_plan_that_the_other_one_began(quiet: Sides, tmp_path: Path, is_earlier: bool) -> None:
    """A plan and its journal of the one version, which died after its first step, are carried out by the other."""
    old, *_ = quiet.fill(OLD, OLD, OLD, OLD)
    wide = quiet.wait("-N12")
    plan = tmp_path / "plan"
    quiet.asked(is_earlier, "plan", "--room-for", wide, "--out", plan)
    dying = Dying(quiet, tmp_path)
    words = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "apply", str(plan))
    died = subprocess.run(
        [*quiet.cluster.inside.prefix, *words],
        env=quiet.environment(is_earlier) | {"PATH": dying.path, "DIES": "after"}, capture_output=True, text=True,
    )  # fmt: skip
    assert died.returncode == -9 and len(dying.changed()) == 1, died.stderr
    assert plan.with_name("plan.journal").read_text()
    quiet.asked(not is_earlier, "apply", plan, "--timeout", "240")
    assert len(quiet.nodes(wide)) == 12 and quiet.nodes(old)
    running = quiet.running()
    assert running is not None and quiet.check(running) == 0
