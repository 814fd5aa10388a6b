"""The reader of slurmrestd's answers: recorded by record_answers.py from real ones of each version."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from topolane.slurm import answers
from topolane.slurm.records import SlurmJob

ANSWERS = sorted((Path(__file__).parent / "answers").glob("*.json"))
OLDEST, NEWER = ANSWERS[0], ANSWERS[1:]


def records(path: Path) -> dict[str, dict[str, Any]]:
    """What is read of jobs, nodes, partitions and reservations, by their names."""
    answer = json.loads(path.read_text())
    for kind in ("jobs", "nodes"):
        first = answer[kind].pop("")
        answer[kind] = {name: first | other for name, other in answer[kind].items()}
    partitions = {name: answers.partition(each) for name, each in answer["partitions"].items()}
    return {
        "partitions": partitions,
        "jobs": {name: list(answers.jobs(each, partitions)) for name, each in answer["jobs"].items()},
        "nodes": {name: answers.node(each) for name, each in answer["nodes"].items()},
        "reservations": {name: answers.reservation(each) for name, each in answer["reservations"].items()},
    }


def asked(job: SlurmJob) -> dict[str, Any]:
    """A job but for its number and the hours of its recording."""
    facts = dataclasses.asdict(job)
    for fact in ("id", "number", "record", "array", "submit", "start", "expected_start"):
        facts.pop(fact)
    end = facts.pop("latest_end")
    facts["lasts_at_most"] = None if end is None else round(end - job.start)
    return facts | {"begin": job.begin > job.submit + 3600, "priority": job.priority > 0}


@pytest.mark.parametrize("path", NEWER, ids=lambda path: path.stem)
def test_each_version_says_the_same(path: Path) -> None:
    """The same submissions, nodes, partitions and reservations give the same records as from v0.0.38,
    but for what that Slurm itself says otherwise: exclusive jobs, and the nodes of a job that names none."""
    old, new = records(OLDEST), records(path)
    for kind in ("partitions", "nodes", "reservations"):
        assert new[kind] == old[kind], kind
    assert new["jobs"].keys() == old["jobs"].keys()
    for name, jobs in old["jobs"].items():
        assert len(new["jobs"][name]) == len(jobs), name
        for now, before in zip(new["jobs"][name], jobs, strict=True):
            differing = differ(now, before)
            may_differ = {"exclusive"} if path.stem.startswith("v0.0.45") else set()
            may_differ |= {"most_nodes"} if name in ("tasks", "layout") else set()
            assert differing <= may_differ, (name, differing)
            assert now.most_nodes in (before.most_nodes, now.fewest_nodes), name


def differ(one: SlurmJob, other: SlurmJob) -> set[str]:
    facts, others = asked(one), asked(other)
    return {fact for fact in facts if facts[fact] != others[fact]}


def test_what_was_recorded_is_what_was_asked() -> None:
    """Not all fields may be empty: a few of the oldest answer, as they were submitted."""
    read = records(OLDEST)
    jobs = {name: each[0] for name, each in read["jobs"].items()}
    assert (jobs["range"].fewest_nodes, jobs["range"].most_nodes, jobs["range"].processes) == (2, 4, 8)
    assert jobs["plain"].walltime == 600.0 and jobs["no limit"].walltime == 1800.0
    assert jobs["layout"].cpus_per_process == 2 and jobs["layout"].processes_per_node == 2
    assert (
        jobs["memory"].memory_per_node == 1000 << 20 and jobs["memory of a core"].memory_per_cpu == 500 << 20
    )
    assert jobs["named"].required == "node[3,5]" and jobs["named"].excluded == "node[7-8]"
    assert jobs["running"].nodes == "node[1-2]" and jobs["running"].cores_held == 16
    assert len(read["jobs"]["array"]) == 4
    assert jobs["after"].dependency.startswith("afterok:1") and jobs["features"].features == "ib&big"
    assert read["reservations"]["maint"].nodes == "node7" and not read["nodes"]["node8"].usable
    assert read["partitions"]["pbatch"].longest_walltime == 7200.0
