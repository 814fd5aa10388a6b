"""Jobs that accept less than full bandwidth on dedicated links: by partition, by their comment, and as explained."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from driving import driving
from live_cluster import Cluster, until
from test_owned_routes import installed, settings  # noqa: F401
from test_start import refusal
from test_status import command, said, status
from topolane import InputError, Machine
from topolane.live.allocation import Allocation, BandwidthHistory
from topolane.live.links_file import DedicatedLinksFile
from topolane.slurm.config import read

FULL = "min-bandwidth must be a number above 0 and at most 1"


def replay(log: Path) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "replay", str(log)]
    return subprocess.run(asked, capture_output=True, text=True, timeout=60)


def submit(cluster: Cluster, place: str, *asked: str) -> int:
    return cluster.submit("--nodes=8", "--time=5", f"--nodelist={place}", *asked)


def nobody_runs(cluster: Cluster) -> bool:
    return cluster.run("squeue", "-h", "-o", "%i") == ""


def test_the_partition_and_then_the_user_say_how_little_is_enough(
    cluster: Cluster,
    settings: dict[str, Any],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four nodes on each of two leaves: at full bandwidth a leaf owns four uplinks, at 0.7 of it three, at a half two,
    at 0.1 one. What the user says goes before the partition's."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])
    config = tmp_path / "topolane.toml"
    with driving(cluster, tmp_path, **settings, **{"min-bandwidth": {"pbatch": 0.5}}):
        wishes = {
            "": (4, 0.5),
            "min-bandwidth=1": (8, 1.0),
            "mine, min-bandwidth=0.7; and more": (6, 0.7),
            "phi=.1 xphi=2": (2, 0.1),  # the former name
        }
        places = [f"node[{n}-{n + 3},{n + 6}-{n + 9}]" for n in (1, 19, 37, 55)] + ["node[11-18]"]
        jobs = {
            wish: submit(cluster, place, *([f"--comment={wish}"] if wish else []))
            for wish, place in zip(wishes, places)
        }
        bad = submit(cluster, places[-1], "--comment=min-bandwidth=2")
        both = cluster.submit("--nodes=8", "--time=5", "--comment=min-bandwidth=.2 phi=.3")
        for job in jobs.values():
            until(lambda job=job: cluster.job(job)["job_state"] == "RUNNING", "it runs")
        # A wrong wish is one sentence in the comment, beside it; mended, the job runs.
        until(lambda: cluster.job(bad)["comment"].startswith("topolane: min-bandwidth"), "it is told")
        assert (
            cluster.job(bad)["comment"]
            == f"topolane: min-bandwidth=2 in its comment: {FULL} | min-bandwidth=2"
        )
        until(lambda: "more than one min-bandwidth" in cluster.job(both)["comment"], "it is told")
        assert cluster.job(both)["comment"].endswith(" | min-bandwidth=.2 phi=.3")
        cluster.run("scontrol", "update", f"jobid={bad}", "comment=min-bandwidth=0.25")
        until(lambda: cluster.job(bad)["job_state"] == "RUNNING", "mended, it runs")
        jobs["min-bandwidth=0.25"], wishes["min-bandwidth=0.25"] = bad, (2, 0.25)
        assert all(cluster.job(job)["comment"].endswith(wish) for wish, job in jobs.items())
        until(lambda: installed(settings)[-1][1].keys() >= set(jobs.values()), "all have links")
        held = installed(settings)[-1][1]
        assert {
            wish: (len(held[job]["links"]), held[job]["bandwidth_share"]) for wish, job in jobs.items()
        } == wishes
        # Leaves have two jobs, and no link has: so say the table, the sentences and the picture.
        found = status(cluster, config)
        rows = {row["job"]: row for row in found["running"]}
        assert {
            wish: (rows[str(job)]["links"], rows[str(job)]["bandwidth_share"]) for wish, job in jobs.items()
        } == wishes
        assert found["links_shared"] == 0 and all(row["may_meet"] == [] for row in rows.values())
        drawn = tmp_path / "tree.svg"
        printed = command(cluster, "status", "--config", config, "--svg", drawn).stdout
        assert "0 links may carry the traffic of two jobs" in printed
        assert re.search(r"4 dedicated links( and \d+ lent)?, bandwidth share 0\.5", printed), printed
        assert "8 dedicated links " in printed
        assert drawn.read_text().count("#d0021b") == 1  # the legend's
        text = said(read(config), jobs[""])
        assert "it owns 4 links of" in text and "with 0.5 of full bandwidth on them." in text
        assert "No other job may use them." in text
        cluster.run("scancel", both, *jobs.values())
        until(lambda: nobody_runs(cluster), "all are gone")
    # The log has it all: told again, the engine gives the same links; told another share, others.
    log = tmp_path / "log.jsonl"
    assert replay(log).returncode == 0, replay(log)
    lines = log.read_text().splitlines(keepends=True)
    asked = [
        i for i, line in enumerate(lines) if '"event": "submit"' in line and '"min_bandwidth": 0.7' in line
    ]
    assert len(asked) == 1
    lines[asked[0]] = lines[asked[0]].replace('"min_bandwidth": 0.7', '"phi": 0.3')
    log.write_text("".join(lines))
    assert replay(log).returncode == 1


def test_a_job_that_waits_for_links_is_told_which_are_left(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves of six nodes and two uplinks: four nodes on each of two leaves need all of them. No tables are written, and
    still the daemon that comes back, and who looks, know whose links are whose."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])
    machine = tmp_path / "toy.toml"
    machine.write_text(
        'name = "toy"\n[[site]]\nname = "core"\nchildren = [6, 3, 4]\nnodes = "node[1-72]"\nparents = [1, 2, 2]\n'
    )
    config, state = tmp_path / "topolane.toml", tmp_path / "state"
    given = {"policy": "dedicated", "topology": str(machine), "state": str(state)}
    with driving(cluster, tmp_path, **given) as daemon:
        first = submit(cluster, "node[1-4,7-10]")
        until(lambda: cluster.job(first)["job_state"] == "RUNNING", "it runs")
        second = submit(cluster, "node[5-6,11-16]", "--comment=min-bandwidth=0.5")
        until(lambda: "would share" in said(read(config), second), "it waits for links")
        text = said(read(config), second)
        assert "On dedicated links it accepts 0.5 of full bandwidth." in text
        assert text.count(f"has 2 idle nodes, but job {first} uses leaf") == 2
        assert "has 4 idle nodes and 2 of 2 uplinks free." in text
        assert "must lie in one" not in text and f"Until then must end: job {first} (by " in text
        daemon.kill()
        daemon.wait()
    before = json.loads(state.read_text())
    assert [(row["id"], len(row["links"])) for row in before["running"]] == [(first, 4)]
    with driving(cluster, tmp_path, **given):
        third = cluster.submit("--exclude=node[1-18]", "--nodes=4", "--time=5")
        until(lambda: cluster.job(third)["job_state"] == "RUNNING", "it runs in one leaf")
        (row,) = [row for row in status(cluster, config)["running"] if row["job"] == str(first)]
        assert (row["links"], row["bandwidth_share"]) == (4, 1.0)
        assert json.loads(state.read_text()) == before
        cluster.run("scancel", first, second, third)
        until(lambda: nobody_runs(cluster), "all are gone")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("min-bandwidth = 0.5", "3: min-bandwidth is not used by policy 'isolated'; use policy dedicated"),
        (
            'policy = "jigsaw"\nmin-bandwidth = 0.5',
            "4: min-bandwidth is not used by policy 'jigsaw'; use policy dedicated",
        ),
        (
            'policy = "dedicated"\nmin-bandwidth = 2',
            "4: min-bandwidth must be a number above 0 and at most 1, not 2",
        ),
        (
            'policy = "dedicated"\nphi = true',
            "4: min-bandwidth must be a number above 0 and at most 1, not True",
        ),
        (
            'policy = "dedicated"\nphi = 0.5\nmin-bandwidth = 0.5',
            "4: phi is the former name of min-bandwidth, which is given too",
        ),
        (
            'policy = "dedicated"\n[min-bandwidth]\npbatch = 0',
            "5: pbatch must be a number above 0 and at most 1, not 0",
        ),
        (
            'policy = "owned"\n[phi]\npdebug = 0.5',
            "5: pdebug is not known here; there are pbatch",
        ),
    ],
)
def test_a_setting_that_is_none_is_one_sentence(tmp_path: Path, lines: str, sentence: str) -> None:
    config = tmp_path / "topolane.toml"
    config.write_text(f'slurmrestd = "unix:/nowhere"\npartitions = ["pbatch"]\n{lines}\n')
    with pytest.raises(InputError) as error:
        read(config)
    assert str(error.value) == f"{config}:{sentence}"


def test_former_names_of_keys_and_policies_are_read_as_the_present_ones(tmp_path: Path) -> None:
    config = tmp_path / "topolane.toml"
    common = 'slurmrestd = "unix:/nowhere"\npartitions = ["pbatch"]\nroutes = "lfts"\nservice = "io1"\n'
    config.write_text(common + 'policy = "owned"\nphi = 0.5\nservice-lanes = 2\n')
    former = read(config)
    config.write_text(common + 'policy = "dedicated"\nmin-bandwidth = 0.5\nservice-uplinks = 2\n')
    assert former == read(config)
    assert (former.policy, former.min_bandwidth, former.service_uplinks) == ("dedicated", {"pbatch": 0.5}, 2)


def test_a_state_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """It calls the share of full bandwidth `phi`."""
    machine, state = Machine.preset("cab"), tmp_path / "state"
    assert machine is not None
    share = BandwidthHistory(begin=0.0, since=2.0, bandwidth_share=0.75, had=1.0)
    jobs = {7: Allocation(frozenset({0, 18}), (1296, 1314), 0.5, (), share)}
    DedicatedLinksFile(str(state), machine).keep(jobs)
    assert "phi" not in state.read_text()
    state.write_text(state.read_text().replace("bandwidth_share", "phi"))
    assert DedicatedLinksFile(str(state), machine).read() == jobs


def test_it_is_said_at_the_start(cluster: Cluster, tmp_path: Path) -> None:
    """With exit code 2."""
    assert "is not used by policy" in refusal(cluster, tmp_path, {"min-bandwidth": 0.5})
