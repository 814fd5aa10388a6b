"""`topolane slurm install` and `uninstall` on a real Slurm, and what its stanza does to users' requests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, running, script, until

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")
pytest.importorskip("lupa", reason="needs the extra slurm: lupa")

from topolane import InputError
from topolane.slurm import stanza as text

TOPOLANE = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

SITE = b"""\
function slurm_job_submit(job, partitions, uid)
    if job.name == "forbidden" then
        slurm.log_user("the site forbids it")
        return slurm.ESLURM_INVALID_LICENSES
    end
    if job.name == "broken" then error("the site's own fault") end
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
"""A job_submit.lua that a site had before."""


@pytest.fixture(scope="module")
def site(slurm: None) -> Iterator[Cluster]:
    """Twelve nodes whose slurmctld runs the site's own job_submit.lua; other users may submit.

    Not among pytest's directories, which are closed to others.
    """
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux), to be another user than root")
    partitions = "pbatch pdebug:node[1-6]"
    with tempfile.TemporaryDirectory(prefix="topolane-") as directory:
        options = ("--partitions", partitions, "--hold", "lua", "--open", "yes", "--conf", "MessageTimeout=3")
        with running(12, Path(directory), *options) as cluster:
            put(cluster, SITE)
            yield cluster


def put(cluster: Cluster, lua: bytes | None) -> None:
    """Puts a file in the place of job_submit.lua, later than any that slurmctld has read."""
    file = cluster.directory / "job_submit.lua"
    moment = int(file.stat().st_mtime) + 1 if file.exists() else None
    if lua is None:
        file.unlink()
        return
    file.write_bytes(lua)
    os.utime(file, moment and (moment, moment))


@pytest.fixture
def config(site: Cluster, tmp_path: Path) -> Path:
    return configuration(site, tmp_path / "topolane.toml", ["pbatch"])


def configuration(cluster: Cluster, file: Path, partitions: list[str]) -> Path:
    lines = {"slurmrestd": f"unix:{cluster.facts['SOCKET']}", "partitions": partitions, "interval": 0.1}
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items()))
    return file


def topolane(cluster: Cluster, *words: object) -> subprocess.CompletedProcess[str]:
    command = [*TOPOLANE, *map(str, words)]
    return subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=60)


def refused(cluster: Cluster, *words: object) -> str:
    """The one sentence of a command that ends with exit code 2."""
    done = topolane(cluster, *words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    return done.stderr


@contextlib.contextmanager
def installed(cluster: Cluster, config: Path) -> Iterator[None]:
    done = topolane(cluster, "install", "--config", config)
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        cluster.run("scancel", "--partition=pbatch")
        cluster.run("scancel", "--partition=pdebug")
        done = topolane(cluster, "uninstall", "--config", config)
        assert done.returncode == 0, done.stderr
        assert (cluster.directory / "job_submit.lua").read_bytes() == SITE


def user(cluster: Cluster, *words: object) -> subprocess.CompletedProcess[str]:
    """A Slurm command of a user who is not root."""
    command = [*NOBODY, *map(str, words)]
    return subprocess.run(command, env=cluster.environment, cwd="/", capture_output=True, text=True)


def submit(cluster: Cluster, *words: object, seconds: int = 60) -> int:
    done = user(cluster, "sbatch", "--parsable", "-o/dev/null", *words, "--wrap", f"sleep {seconds}")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def wait_state(cluster: Cluster, job: int, state: str) -> None:
    until(lambda: cluster.job(job)["job_state"] == state, f"job {job} is {state}")


def release_as_daemon(cluster: Cluster, job: int, hosts: str, count: int) -> None:
    change = {"nodelist": hosts, "nodes": str(count), "hold": False, "comment": f"topolane: on {hosts}"}
    assert cluster.rest(f"job/{job}", change)["errors"] == []


def test_without_slurmctld_nothing_is_uninstalled(site: Cluster, config: Path) -> None:
    with installed(site, config):
        file = site.directory / "job_submit.lua"
        before = file.read_bytes()
        script("stop", site.directory, "slurmctld")
        try:
            assert "topolane: " in refused(site, "uninstall", "--config", config)
            assert file.read_bytes() == before
        finally:
            script("start", site.directory, "slurmctld")


def test_a_file_made_for_the_stanza_is_removed_once_slurmctld_can_do_without(
    site: Cluster, config: Path, tmp_path: Path
) -> None:
    """slurmctld does not start without job_submit.lua where slurm.conf names the plugin: the file then
    stays and holds nothing. A file that slurmctld does not read is removed at once."""
    elsewhere = tmp_path / "job_submit.lua"
    done = topolane(site, "install", "--config", config, "--job-submit", elsewhere)
    assert "not this file" in done.stdout and elsewhere.exists()
    topolane(site, "uninstall", "--config", config, "--job-submit", elsewhere)
    assert not elsewhere.exists()
    file = site.directory / "job_submit.lua"
    put(site, text.stanza(["pbatch"], [0], b""))
    try:
        assert site.job(submit(site))["priority"] == 0
        said = topolane(site, "uninstall", "--config", config).stdout
        assert "slurmctld does not start without it: take JobSubmitPlugins=lua out of" in said
        wait_state(site, submit(site, seconds=1), "COMPLETED")
        assert script("stop", site.directory, "slurmctld").returncode == 0
        assert script("start", site.directory, "slurmctld").returncode == 0
        done = topolane(site, "install", "--config", config)
        assert done.returncode == 0 and file.read_bytes() == text.stanza(["pbatch"], [0], b"")
    finally:
        put(site, SITE)


def test_jobs_of_the_managed_partition_wait_and_all_others_start(site: Cluster, config: Path) -> None:
    """By the default partition too; `sbatch --hold` is told apart, by the job's comment; both in two
    partitions of which one is managed is refused with a sentence."""
    with installed(site, config):
        by_default, by_name = submit(site, "--comment=mine"), submit(site, "-ppbatch", "--array=0-3")
        held, other = submit(site, "--hold", "--comment=mine"), submit(site, "-ppdebug")
        wait_state(site, other, "RUNNING")
        for job, comment in (
            (by_default, "mine"),
            (by_name, ""),
            (held, "topolane: held by its user | mine"),
        ):
            assert site.job(job)["priority"] == 0
            assert site.job(job)["admin_comment"] == "topolane"
            assert site.job(job)["comment"] == comment
        both = user(site, "sbatch", "-ppbatch,pdebug", "--wrap", "true")
        assert (
            both.returncode and "topolane starts the jobs of pbatch: a job cannot wait there" in both.stderr
        )


def test_the_functions_that_were_there_go_on(site: Cluster, config: Path) -> None:
    """What they refuse is refused in their words; where one fails with an error, Slurm takes the job as
    before, and it is held."""
    with installed(site, config):
        done = user(site, "sbatch", "-Jforbidden", "--wrap", "true")
        assert done.returncode and "the site forbids it" in done.stderr and "license" in done.stderr
        assert site.job(submit(site, "-Jbroken"))["admin_comment"] == "topolane"


def test_installing_again_changes_nothing_and_other_partitions_replace_it(
    site: Cluster, config: Path, tmp_path: Path
) -> None:
    file = site.directory / "job_submit.lua"
    shown = topolane(site, "install", "--config", config, "--dry-run").stdout
    assert file.read_bytes() == SITE and shown.startswith("-- topolane: begin")
    with installed(site, config):
        once = file.read_bytes()
        assert shown.encode() in once and once.endswith(b"\nreturn slurm.SUCCESS\n")
        done = topolane(site, "install", "--config", config)
        assert "has the stanza already for pbatch" in done.stdout and file.read_bytes() == once
        both = configuration(site, tmp_path / "both.toml", ["pbatch", "pdebug"])
        assert "slurmctld has read it" in topolane(site, "install", "--config", both).stdout
        assert site.job(submit(site, "-ppdebug,pbatch"))["priority"] == 0


def test_a_user_holds_and_releases_and_cannot_escape(site: Cluster, config: Path) -> None:
    """Hold and release are told to the daemon by the comment, nodes are a wish, and nice is refused; the
    job stays held through all of it and the user's own comment stays with it."""
    with installed(site, config):
        job = submit(site, "-N2", "--comment=mine")
        for words, comment in (
            (("hold", job), "topolane: held by its user | mine"),
            (
                ("update", f"job={job}", "comment=topolane: on node1"),
                "topolane: held by its user | topolane: on",
            ),
            (("update", f"job={job}", "comment=mine"), "topolane: held by its user | mine"),
            (
                ("update", f"job={job}", "timelimit=7", "nodelist=node3,node4"),
                "topolane: held by its user | mine",
            ),
            (("release", job), "topolane: to be placed | mine"),
        ):
            done = user(site, "scontrol", *words)
            assert done.returncode == 0, done.stderr
            assert site.job(job)["priority"] == 0 and site.job(job)["comment"].startswith(comment), words
        assert site.job(job)["time_limit"] == 7 and site.job(job)["required_nodes"] == "node3,node4"
        nice = user(site, "scontrol", "update", f"job={job}", "nice=5")
        assert "Requested operation is presently disabled" in nice.stderr and site.job(job)["priority"] == 0
        moved = user(site, "scontrol", "update", f"job={job}", "partition=pdebug")
        assert "presently disabled" in moved.stderr and site.job(job)["partition"] == "pbatch"


def test_what_an_administrator_holds_no_user_releases(site: Cluster, config: Path) -> None:
    with installed(site, config):
        job = submit(site)
        site.run("scontrol", "hold", job)
        assert "denied" in user(site, "scontrol", "release", job).stderr
        user(site, "scontrol", "update", f"job={job}", "comment=topolane: to be placed")
        assert site.job(job)["comment"].startswith("topolane: held by its user")
        site.run("scontrol", "release", job)
        assert site.job(job)["comment"].startswith("topolane: to be placed")
        assert (site.job(job)["priority"], site.job(job)["admin_comment"]) == (0, "topolane")


def test_a_request_for_a_whole_array_means_the_same_to_each_task(site: Cluster, config: Path) -> None:
    """Slurm hands all tasks one request: what was made of it for the first must not be read by the next."""
    with installed(site, config):
        array = submit(site, "--array=0-2")
        site.rest(
            f"job/{array}_1", {"nodelist": "node5", "nodes": "1", "hold": False, "comment": "topolane: on"}
        )
        until(lambda: len(site.rest("jobs")["jobs"]) > 1, "a task is split off")

        def comments() -> dict[int, tuple[str, str]]:
            jobs = [job for job in site.rest("jobs")["jobs"] if job["array_job_id"] == array]
            return {job["array_task_id"]: (job["job_state"], job["comment"]) for job in jobs}

        until(lambda: comments()[1][0] == "RUNNING", "the task runs")
        user(site, "scontrol", "hold", f"{array}_0")
        for verb, said in (
            ("hold", "held by its user"),
            ("release", "to be placed"),
            ("hold", "held by its user"),
        ):
            user(site, "scontrol", "update", f"job={array}", "timelimit=9")
            user(site, "scontrol", verb, array)
            waiting = {comment for state, comment in comments().values() if state == "PENDING"}
            assert waiting == {f"topolane: {said}"}, verb
            assert comments()[1] == ("RUNNING", "topolane: on")


def test_the_nodes_of_a_job_that_runs_are_nobodys_to_change(site: Cluster, config: Path) -> None:
    """A release that is repeated, or a shorter list, would shrink the job: refused, also for root, and the
    job can be changed otherwise as before."""
    with installed(site, config):
        job = submit(site, "-N2", "-t5")
        release_as_daemon(site, job, "node[7-8]", 2)
        wait_state(site, job, "RUNNING")
        for change in ({"nodes": "2", "nodelist": "node[7-8]", "hold": False}, {"nodelist": "node7"}):
            assert site.rest(f"job/{job}", change)["errors"][0]["error_number"] == 2073
        assert "no longer pending" in user(site, "scontrol", "update", f"job={job}", "nodelist=node7").stderr
        assert user(site, "scontrol", "update", f"job={job}", "timelimit=4").returncode == 0
        assert (site.job(job)["nodes"], site.job(job)["time_limit"]) == ("node[7-8]", 4)
        assert "JOB_RESIZED" not in site.job(job)["flags"]


def test_a_job_that_slurm_refuses_its_nodes_does_not_start_at_the_next_change(
    site: Cluster, config: Path
) -> None:
    """Slurm would release a job with BadConstraints as soon as anything of it is changed."""
    with installed(site, config):
        job = submit(site, "-N2")
        release_as_daemon(site, job, "node[1-3]", 2)  # more than it asked for
        until(lambda: site.job(job)["state_reason"] == "BadConstraints", "Slurm refuses it")
        assert user(site, "scontrol", "update", f"job={job}", "comment=mine").returncode == 0
        assert site.job(job)["priority"] == 0


def test_the_daemon_is_not_mistaken_for_an_administrator(site: Cluster, config: Path) -> None:
    """What it writes as a comment leaves the job as it is, held or running; its hold is no administrator's,
    takes in a job that waited before the stanza was there, and forgets old nodes."""
    early = submit(site, "--begin=now+600")
    with installed(site, config):
        job = submit(site)
        site.rest(f"job/{job}", {"comment": "topolane: why not"})
        assert site.job(job)["state_reason"] == "JobHeldUser"
        release_as_daemon(site, job, "node9", 1)
        wait_state(site, job, "RUNNING")
        site.rest(f"job/{job}", {"comment": "topolane: why not"})
        assert site.job(job)["comment"] == "topolane: on node9"
        site.run("scontrol", "requeue", job)
        until(lambda: site.job(job)["job_state"] == "PENDING", "it is requeued")
        for each in (early, job):
            hold = {"hold": True, "comment": "topolane: to be placed", "nodelist": ""}
            assert site.rest(f"job/{each}", hold)["errors"] == []
            found = site.job(each)
            assert (found["priority"], found["required_nodes"]) == (0, "")
            assert (found["admin_comment"], found["comment"]) == ("topolane", "topolane: to be placed")


def test_uninstall_gives_every_job_back(site: Cluster, config: Path) -> None:
    """All that was held for the daemon starts by Slurm alone, arrays and a requeued job on other nodes
    than the daemon's too; who held his job himself holds it still, and may release it himself."""
    topolane(site, "install", "--config", config)
    plain, array = submit(site, "--comment=mine", seconds=1), submit(site, "--array=0-1", seconds=1)
    mine, admins = submit(site, "--hold"), submit(site)
    placed = submit(site, "-N1", seconds=30)
    site.run("scontrol", "hold", admins)
    release_as_daemon(site, placed, "node12", 1)
    wait_state(site, placed, "RUNNING")
    site.run("scontrol", "requeue", placed)
    until(lambda: site.job(placed)["job_state"] == "PENDING", "it is requeued")
    site.rest(f"job/{placed}", {"hold": True, "comment": "topolane: on node12"})
    assert site.job(placed)["required_nodes"] == "node12"
    would = topolane(site, "uninstall", "--config", config, "--dry-run")
    assert "Nothing was changed" in would.stdout and site.job(plain)["priority"] == 0
    done = topolane(site, "uninstall", "--config", config, "--json")
    assert done.returncode == 0, done.stderr
    assert (site.directory / "job_submit.lua").read_bytes() == SITE
    assert {int(job["job"]): job["what"] for job in json.loads(done.stdout)["jobs"]} == {
        plain: "released",
        array: "released",
        mine: "stays held by its user",
        admins: "stays held by an administrator",
        placed: "released, its node list cleared",
    }
    for job in (plain, array):
        wait_state(site, job, "COMPLETED")
    assert (site.job(plain)["comment"], site.job(placed)["required_nodes"]) == ("mine", "")
    assert site.job(placed)["priority"] > 0
    again = topolane(site, "uninstall", "--config", config)
    assert again.returncode == 0 and "no stanza" in again.stdout
    assert site.job(mine)["priority"] == site.job(admins)["priority"] == 0
    assert user(site, "scontrol", "release", admins).returncode == 1
    assert user(site, "scontrol", "release", mine).returncode == 0
    wait_state(site, mine, "RUNNING")
    site.run("scancel", mine, admins, placed)


def test_what_cannot_be_done_is_one_sentence_and_touches_nothing(
    site: Cluster, config: Path, tmp_path: Path
) -> None:
    file = site.directory / "job_submit.lua"
    half = tmp_path / "half.lua"
    half.write_bytes(SITE + text.stanza(["pbatch"], [0], b"")[:300])
    wrong = tmp_path / "wrong.lua"
    wrong.write_text("function f()\nreturn return\n")
    nix = configuration(site, tmp_path / "nix.toml", ["nix"])
    for words, said in (
        (("install", "--config", nix), "Slurm has no partition nix; there are "),
        (("install", "--config", config, "--job-submit", tmp_path), f"{tmp_path}: Is a directory"),
        (
            ("install", "--config", config, "--job-submit", "/proc/nix.lua"),
            "/proc/nix.lua: cannot be written",
        ),
        (
            ("install", "--config", config, "--job-submit", half),
            f"{half}:11: a stanza of topolane that is not",
        ),
        (("uninstall", "--config", config, "--job-submit", half), f"{half}:11: a stanza of topolane that"),
        (("install", "--config", config, "--job-submit", wrong), f"{wrong}:2: this is not Lua"),
    ):
        assert said in refused(site, *words)
    assert file.read_bytes() == SITE
    plain = subprocess.run(
        [*NOBODY, sys.executable, "-c", "import topolane.slurm.install"], capture_output=True
    )
    if plain.returncode == 0:
        done = user(site, *TOPOLANE, "install", "--config", config)
        assert done.returncode == 2 and "Permission denied" in done.stderr
    assert file.read_bytes() == SITE


def test_slurmctld_that_does_not_take_it_has_the_old_file_back(site: Cluster, config: Path) -> None:
    """A script that compiles and fails when it is run: slurmctld goes on with what it had."""
    fails = SITE.replace(b"\nreturn", b"\nerror('as it is loaded')\nreturn")
    put(site, fails)
    try:
        assert "slurmctld does not take the stanza" in refused(site, "install", "--config", config)
        assert (site.directory / "job_submit.lua").read_bytes() == fails
    finally:
        put(site, SITE)


@pytest.mark.parametrize(
    "lua",
    [
        "x = 1",
        "function f() return 1 end\nreturn slurm.SUCCESS\n",
        "f() return 0 -- return it",
        "-- return x\nx = 1 -- return",
        "return (function() return 1 end)()",
        "#!/usr/bin/lua\r\nlocal x = [[ return ]]\r\nreturn slurm.SUCCESS;\r\n",
        "local s = 'return \xff'\nif x then return 1 end\n",
        "x = 7 // 2\nreturn x.returns",
    ],
)
def test_the_stanza_goes_before_the_last_return_and_comes_out_without_a_trace(lua: str) -> None:
    """Nothing can follow the `return` that ends a chunk; comments, strings and inner functions have
    others. What is left is the file as it was, byte for byte."""
    own, before = text.stanza(["pbatch"], [0], b""), lua.encode("latin-1")
    after = text.insert_stanza(before, own, "f.lua")
    assert text.insert_stanza(after.replace(b"\n" + own, b""), own, "f.lua") == after
    assert text.remove_stanza(after, "f.lua") == before


def test_a_partition_whose_name_lua_would_read_otherwise_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be the name of a partition"):
        text.stanza(['x"] = true, os.exit() --'], [0], b"")


def test_the_unit_is_one_that_systemd_takes(site: Cluster, config: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze (systemd)")
    made = topolane(site, "unit", "--config", config)
    assert made.returncode == 0, made.stderr
    assert f" slurm run --config {config}\n" in made.stdout
    assert f"Environment=SLURM_CONF={site.facts['SLURM_CONF']}\n" in made.stdout
    file = tmp_path / "topolane-slurm.service"
    file.write_text(made.stdout)
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
