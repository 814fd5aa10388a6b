"""The files of a run say all that it decided: a sweep over them alone finds nothing given twice.

The sweep shares no code with the engine: it reads the files and knows the machine from its description, a regular
tree whose nodes and cables are numbered level by level.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections import defaultdict
from pathlib import Path

import pytest

CHILDREN, PARENTS = (4, 4, 8), (1, 4, 4)
"""`fat-tree(radix=8)`: nodes of a leaf, leaves of a pod, pods; and how many switches each is joined to above."""
NODES = CHILDREN[0] * CHILDREN[1] * CHILDREN[2]
RUN = (
    "simulate",
    "--machine",
    "fat-tree(radix=8)",
    "--workload",
    "exp-8",
    "--limit",
    400,
    "--no-report",
    "--json",
)

Stay = tuple[float, float, int, frozenset[int]]
"""From, until, job, and what it has then."""


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


def members(interval_set: str) -> frozenset[int]:
    """`0-3 7` as numbers."""
    found: set[int] = set()
    for part in interval_set.split():
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


def stays_on_nodes(out: Path) -> list[Stay]:
    """Every stay of a job in one place: from its start, from move to move, and until its end."""
    moves = defaultdict(list)
    if (out / "moves.csv").exists():
        for row in table(out / "moves.csv"):
            moves[int(row["job_id"])].append(row)
    stays = []
    for row in table(out / "jobs.csv"):
        job, since, here = int(row["job_id"]), float(row["starting_time"]), None
        for move in moves.pop(job, []):
            assert here in (None, move["to_nodes"] and move["from_nodes"]), (
                "a move begins where the last one led"
            )
            stays.append((since, float(move["time"]), job, members(move["from_nodes"])))
            since, here = float(move["time"]), move["to_nodes"]
        assert here in (None, row["allocated_resources"]), "the last move leads to where the job ends"
        stays.append((since, float(row["finish_time"]), job, members(row["allocated_resources"])))
    assert not moves, "a job that moved did run"
    return stays


def stays_on_links(out: Path, columns: tuple[str, ...]) -> list[Stay]:
    if not (out / "job-links.csv").exists():
        return []
    return [
        (float(row["from"]), float(row["until"]), int(row["job_id"]), members(row[column]))
        for row in table(out / "job-links.csv")
        for column in columns
    ]


def given_twice(stays: list[Stay]) -> int:
    """How often something is given to a job while another one has it; what ends leaves before what begins comes."""
    events = [(since, 1, job, what) for since, until, job, what in stays if since < until]
    events += [(until, 0, job, what) for since, until, job, what in stays if since < until]
    holder: dict[int, int] = {}
    twice = 0
    for _, comes, job, what in sorted(events, key=lambda event: event[:2]):
        for each in what:
            if comes:
                twice += each in holder
                holder[each] = job
            elif holder.get(each) == job:
                del holder[each]
    return twice


def place_of(cable: int) -> tuple[int, int]:
    """The level and the group that a cable leaves: cables are numbered by level, group, switch and parent."""
    groups, switches, first = NODES, 1, 0
    for level, (children, parents) in enumerate(zip(CHILDREN, PARENTS)):
        of_group = switches * parents
        if cable < first + groups * of_group:
            return level, (cable - first) // of_group
        first, groups, switches = first + groups * of_group, groups // children, switches * parents
    raise AssertionError(f"the tree has no cable {cable}")


def group_of(node: int, level: int) -> int:
    for children in CHILDREN[:level]:
        node //= children
    return node


def check_links_join(nodes: list[Stay], links: list[Stay]) -> int:
    """A job that has links has some at every leaf on which it is with others elsewhere, and none anywhere else."""
    checked = 0
    for since, until, job, owned in links:
        if since == until or not owned:
            continue
        (here,) = [
            what for start, end, other, what in nodes if other == job and start <= since and until <= end
        ]
        leaves = {group_of(node, 1) for node in here}
        pods = {group_of(node, 2) for node in here}
        places = {place_of(cable) for cable in owned}
        assert {group for level, group in places if level == 1} == leaves
        assert {group for level, group in places if level == 2} == (pods if len(pods) > 1 else set())
        assert {level for level, _ in places} <= {1, 2}
        checked += 1
    return checked


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("policy", ["dedicated", "isolated"])
def test_nothing_is_given_twice(topolane, policy, share, moving):
    """Nodes, links that jobs own, and with them links that are lent: a sweep in order of time meets none twice."""
    options = (["--min-bandwidth", share] if share else []) + (["--defrag", 0.3] if moving else [])
    said = json.loads(topolane(*RUN, "--policy", policy, "--out", "out", *options))
    out = topolane.directory / "out"
    assert (out / "moves.csv").exists() == moving
    assert (out / "job-links.csv").exists() == (policy == "dedicated")
    nodes, links = stays_on_nodes(out), stays_on_links(out, ("links",))
    assert len(nodes) == said["jobs"] + said["moves"]
    assert (said["moves"] > 0) == moving
    assert given_twice(nodes) == 0
    assert given_twice(links) == 0
    assert given_twice(stays_on_links(out, ("links", "lent_links"))) == 0
    assert check_links_join(nodes, links) == sum(
        since < until and bool(what) for since, until, _, what in links
    )
    if moving:
        last_alone = [
            (
                float(row["starting_time"]),
                float(row["finish_time"]),
                int(row["job_id"]),
                members(row["allocated_resources"]),
            )
            for row in table(out / "jobs.csv")
        ]
        assert given_twice(last_alone) > 0, "without the moves the sweep does find what stands twice"
        moved = {int(row["job_id"]): int(row["moves"]) for row in table(out / "jobs.csv")}
        assert sum(moved.values()) == said["moves"] == len(table(out / "moves.csv"))


def test_the_share_over_time_gives_the_mean(topolane):
    """The rows of a job have no gap until its end, and their shares weighted by node-seconds are the summary's mean."""
    said = json.loads(
        topolane(*RUN, "--policy", "dedicated", "--min-bandwidth", 0.5, "--defrag", 0.3, "--out", "out")
    )
    jobs = {row["job_id"]: row for row in table(topolane.directory / "out/jobs.csv")}
    held = itertools.groupby(table(topolane.directory / "out/job-links.csv"), key=lambda row: row["job_id"])
    had = work = 0.0
    for job, rows in ((job, list(rows)) for job, rows in held):
        start, end = (float(jobs[job][name]) for name in ("starting_time", "finish_time"))
        nodes = int(jobs[job]["requested_number_of_resources"])
        assert [row["until"] for row in rows] == [
            *(row["from"] for row in rows[1:]),
            jobs[job]["finish_time"],
        ]
        shares = [float(row["bandwidth_share"]) * (float(row["until"]) - float(row["from"])) for row in rows]
        assert all(0.5 <= float(row["bandwidth_share"]) <= 1 for row in rows)
        if rows[-1]["links"]:
            had += nodes * (float(rows[0]["from"]) - start + sum(shares))
            work += nodes * (end - start)
    assert 0.5 < said["mean_bandwidth_share"] < 1
    assert had / work == pytest.approx(said["mean_bandwidth_share"], abs=1e-6)


@pytest.mark.parametrize("at", [None, 0.4])
def test_the_files_of_a_run_are_what_routes_takes(topolane, at):
    """The jobs at a moment of a run with their own and lent links: `topolane routes` finds nothing wrong with them."""
    topolane(*RUN, "--policy", "dedicated", "--min-bandwidth", 0.5, "--defrag", 0.3, "--out", "out")
    out = topolane.directory / "out"
    moment = () if at is None else ("--at", at)
    said = json.loads(
        topolane(
            *("routes", "--machine", "fat-tree(radix=8)", "--run", "out", *moment, "--out", "lfts", "--json"),
        )
    )
    if at is None:
        most = max(table(out / "utilization.csv"), key=lambda row: float(row["busy_nodes"]))
        time = float(most["time"])
    else:
        time = 3600 * at + min(float(row["submission_time"]) for row in table(out / "jobs.csv"))
    links: dict[str, int] = defaultdict(int)
    for since, until, job, what in stays_on_links(out, ("links", "lent_links")):
        if since <= time < until:
            links[str(job)] += len(what)
    jobs = {str(job) for since, until, job, _ in stays_on_nodes(out) if since <= time < until}
    assert {job["id"]: job["links"] for job in said["jobs"]} == {job: links[job] for job in jobs}
    assert sum(links.values()) > 0


def test_a_run_that_routes_cannot_take(topolane, toy):
    common = ("routes", "--machine", toy, "--out", "lfts")
    topolane(*RUN, "--policy", "dedicated", "--out", "out")
    topolane.refused(*common, says="give one of --state and --run")
    topolane.refused(*common, "--state", "x", "--run", "out", says="give one of --state and --run")
    topolane.refused(*common, "--state", "x", "--at", 1, says="--at names a moment of a run")
    topolane.refused(*common, "--run", "nowhere", says="nowhere: there is no run in it")
    topolane.refused(*common, "--run", "out", says=("machine toy 16 nodes", "--machine"))
    (topolane.directory / "several/runs/dedicated-easy-none").mkdir(parents=True)
    (topolane.directory / "out/jobs.csv").rename(
        topolane.directory / "several/runs/dedicated-easy-none/jobs.csv"
    )
    topolane.refused(*common, "--run", "several", says="several/runs: dedicated-easy-none")
    (topolane.directory / "out/jobs.csv").write_text("id\n1\n")
    topolane.refused(*common, "--run", "out", says="out/jobs.csv: not a table of a run")


def test_the_limit_counts_after_sorting_and_dropping(topolane, toy, write):
    """The first three by submission of those that the machine holds, wherever in the log they stand."""
    write("log.csv", "id,submit,run,nodes\n1,50,9,1\n2,40,9,99\n3,30,9,1\n4,20,9,1\n5,10,9,1\n")
    said = json.loads(
        topolane(
            *("simulate", "--machine", toy, "--trace", "log.csv", "--limit", 3, "--no-report"),
            *("--out", "out", "--json"),
        )
    )
    assert [row["job_id"] for row in table(topolane.directory / "out/jobs.csv")] == ["5", "4", "3"]
    assert said["left_out"] == {"wider than the machine": 1, "beyond the limit": 1}
    assert "1 beyond the limit" in topolane("simulate", "--machine", toy, "--trace", "log.csv", "--limit", 3)
    assert "counted after other options have skipped jobs" in " ".join(
        topolane("simulate", "--help-all").split()
    )
