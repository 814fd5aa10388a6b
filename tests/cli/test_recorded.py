"""What really happened, from `sacct -P`, on a machine small enough to work out by hand."""

from __future__ import annotations

import csv
import json

import pytest

# 8 nodes, 2 a leaf, 2 leaves a pod. A leaf has 2 uplinks; a pod has 2 switches of 2 uplinks each.
MACHINE = """
name = "tiny"
[[site]]
name = "core"
children = [2, 2, 2]
parents = [1, 2, 2]
"""

LOG = """\
JobIDRaw|Submit|Start|End|NNodes|NodeList|TimelimitRaw|State
1|2026-03-01T00:00:00|2026-03-01T00:00:10|2026-03-01T00:10:10|2|tiny[1-2]|60|COMPLETED
1.batch|2026-03-01T00:00:10|2026-03-01T00:00:10|2026-03-01T00:10:10|1|tiny1||COMPLETED
2|2026-03-01T00:00:00|2026-03-01T00:01:00|2026-03-01T00:31:00|2|tiny[3,5]|60|COMPLETED
3|2026-03-01T00:02:00|2026-03-01T00:05:00|2026-03-01T00:25:00|2|tiny[4,6]|60|COMPLETED
4|2026-03-01T00:10:00|2026-03-01T00:32:00|2026-03-01T00:42:00|2|tiny[1,3]|60|COMPLETED
5|2026-03-01T00:20:00|2026-03-01T00:20:00|2026-03-01T00:30:00|3|tiny[1-2,7]|60|COMPLETED
6|2026-03-01T00:40:00|2026-03-01T00:40:00|2026-03-01T00:50:00|1|tiny8|60|COMPLETED
7|2026-03-01T00:45:00|2026-03-01T00:45:00|2026-03-01T00:55:00|1|tiny8|60|COMPLETED
8|2026-03-01T00:50:00|Unknown|Unknown|1|None assigned|60|PENDING
"""

# Job: wait, APH, least APH of its number of nodes, hop-bytes, links shared.
#  1  both nodes on leaf 0: no switch left.
#  2  tiny3 on leaf 1, tiny5 on leaf 2: 4 hops. While it runs, job 3 crosses the same two leaves
#     (2 uplinks each) and the same two pods (4 uplinks each): 12 links.
#  3  the same from the other side.
#  4  leaves 0 and 1 of pod 0: 2 hops; alone on the machine.
#  5  pairs (1,2): 0, (1,7) and (2,7): 4 hops, 8 over 3 pairs; at best 2 on a leaf and one on the next: 4
#     over 3. It leaves leaves 0 and 3 alone, but meets jobs 2 and 3 on the uplinks of both pods: 8.
#  7  the log gives tiny8 to two jobs at once: it waits the 300 s until job 6 has ended.
EXPECTED = {
    1: (10, 0, 0, 0, 0),
    2: (60, 4, 0, 4, 12),
    3: (180, 4, 0, 4, 12),
    4: (1320, 2, 0, 2, 0),
    5: (0, 8 / 3, 4 / 3, 8, 8),
    6: (0, 0, 0, 0, 0),
    7: (300, 0, 0, 0, 0),
}
COLUMNS = ("waiting_time", "aph", "least_aph", "hop_bytes", "links_shared")


@pytest.fixture
def recorded(topolane, write):
    write("tiny.toml", MACHINE)
    write("log.txt", LOG)
    return ("--machine", "tiny.toml", "--trace", "log.txt")


def test_a_log_is_replayed_as_it_was(topolane, recorded):
    facts = json.loads(
        topolane("simulate", *recorded, "--policy", "recorded", "--out", "out", "--no-report", "--json")
    )
    assert (facts["queue"], facts["jobs"], facts["late_against_log"]) == ("recorded", 7, 1)
    assert facts["left_out"] == {"never started": 1, "step of a job": 1}
    assert facts["mean_wait"] == pytest.approx(sum(row[0] for row in EXPECTED.values()) / 7)
    assert facts["jobs_sharing_links"] == 3
    assert facts["mean_aph"] == pytest.approx((0 + 4 + 4 + 2 + 8 / 3) / 5)
    with (topolane.directory / "out/jobs.csv").open() as file:
        jobs = {int(row["job_id"]): [float(row[name]) for name in COLUMNS] for row in csv.DictReader(file)}
    assert jobs == {job: pytest.approx(row, abs=1e-6) for job, row in EXPECTED.items()}


def test_in_a_comparison_it_runs_once(topolane, recorded):
    runs = json.loads(
        topolane(
            *("compare", *recorded, "--policies", "recorded,isolated", "--queues", "easy,fcfs"),
            *("--scenarios", "none", "--jobs", 1, "--json"),
        )
    )
    assert [(run["policy"], run["queue"]) for run in runs] == [
        ("recorded", "recorded"),
        ("isolated", "easy"),
        ("isolated", "fcfs"),
    ]
    assert "1 job started later than the log says" in topolane("simulate", *recorded, "--policy", "recorded")


@pytest.mark.parametrize("command", [("simulate", "--policy"), ("compare", "--jobs", 1, "--policies")])
def test_a_log_without_node_lists_cannot_be_replayed(topolane, recorded, log, command):
    run, *options = command
    says = "log names no nodes, so none can be replayed"
    topolane.refused(
        run, *options, "recorded", "--machine", "tiny.toml", "--trace", log, "--out", "out", says=says
    )


def test_jobs_on_nodes_that_the_machine_has_not_are_skipped_and_counted(topolane, recorded, write):
    write("log.txt", LOG.replace("tiny[4,6]", "tiny[4,9]"))
    facts = json.loads(topolane("simulate", *recorded, "--policy", "recorded", "--json"))
    assert facts["jobs"] == 6
    assert facts["left_out"]["ran on nodes that the machine does not have"] == 1


def test_a_log_of_another_machine_is_refused(topolane, recorded, write):
    write("log.txt", LOG.replace("|tiny", "|other"))
    says = "which machine tiny does not have; nor do the others have all their nodes there"
    topolane.refused("simulate", *recorded, "--policy", "recorded", says=says)


def test_a_node_list_that_is_none(topolane, recorded, write):
    write("log.txt", LOG.replace("tiny[4,6]", "tiny[4,6"))
    topolane.refused("simulate", *recorded, "--policy", "recorded", says='"tiny[4,6"')


def test_widened_jobs_are_no_longer_those_of_the_log(topolane, recorded):
    says = "names no nodes"
    topolane.refused("simulate", *recorded, "--policy", "recorded", "--nodes-x", 2, says=says)
