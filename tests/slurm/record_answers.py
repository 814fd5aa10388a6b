"""Submits the same jobs to a cluster and keeps what slurmrestd says of them, for test_versions.py.

tests/slurm/cluster.sh up 8 DIR --auth jwt     # or through other_version.sh
python tests/slurm/record_answers.py DIR [VERSION]...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from live_cluster import Cluster
from waiting import until

ANSWERS = Path(__file__).parent / "answers"

SUBMISSIONS = {
    "plain": ["--nodes=2", "--time=10", "--comment=mine"],
    "no limit": ["--nodes=1"],
    "tasks": ["--ntasks=40", "--time=1:00:00"],
    "range": ["--nodes=2-4", "--ntasks=8", "--time=10"],
    "layout": ["--ntasks=8", "--ntasks-per-node=2", "--cpus-per-task=2", "--time=10"],
    "memory": ["--nodes=1", "--mem=1000", "--time=10"],
    "memory of a core": ["--nodes=1", "--mem-per-cpu=500", "--time=10"],
    "exclusive": ["--nodes=1", "--exclusive", "--time=10"],
    "named": ["--nodes=2", "--nodelist=node[3,5]", "--exclude=node[7-8]", "--time=10"],
    "features": ["--nodes=1", "--constraint=ib&big", "--time=10"],
    "later": ["--nodes=1", "--begin=2030-01-01T00:00:00", "--time=10"],
    "after": ["--nodes=1", "--dependency=afterok:1", "--time=10"],
    "array": ["--nodes=1", "--array=0-3%2", "--time=10"],
    "nice": ["--nodes=1", "--nice=10", "--time=10"],
}


OF_THE_MACHINE = re.compile(
    "current_working_directory|standard_|std.*_expanded|allocating_node|batch_host|hostname|address"
    "|operating_system|command|submit_line|.*_expanded"
)
"""Keys that say where it was recorded."""


def differing(records: dict[str, Any]) -> dict[str, Any]:
    """The first record as it is, and of the others what is not as in the first."""
    first = next(iter(records.values()))
    kept = {"": first}
    for name, record in records.items():
        kept[name] = {key: value for key, value in record.items() if first.get(key, ()) != value}
    return kept


def _a_record_a_line(answer: dict[str, Any]) -> str:
    parts = []
    for kind, records in answer.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in records.items())
        parts.append(f"{json.dumps(kind)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def records(cluster: Cluster, thing: str) -> list[dict[str, Any]]:
    found = json.loads(cluster.ask(thing))[thing]
    return [{key: value for key, value in each.items() if not OF_THE_MACHINE.match(key)} for each in found]


def record(directory: Path, versions: list[str]) -> None:
    cluster = Cluster(directory)
    cluster.run("scontrol", "update", "nodename=node[1-8]", "features=ib,big")
    cluster.run("scontrol", "update", "nodename=node8", "state=drain", "reason=away")
    cluster.run("scontrol", "update", "partitionname=pbatch", "defaulttime=30", "maxtime=120")
    kept = ["starttime=2030-01-01T00:00:00", "duration=60", "users=root", "nodes=node7"]
    cluster.run("scontrol", "create", "reservation", "reservationname=maint", *kept)
    ids = {name: cluster.submit("--hold", *options) for name, options in SUBMISSIONS.items()}
    ids["running"] = cluster.submit("--nodes=2", "--nodelist=node[1-2]", "--time=10")
    until(lambda: cluster.job(ids["running"])["job_state"] == "RUNNING", "the last job runs")
    release = cluster.run("slurmctld", "-V").split()[-1]
    for version in versions or cluster.facts["REST_VERSIONS"].split(","):
        cluster.facts["REST_VERSION"] = version
        jobs = {job["job_id"]: job for job in records(cluster, "jobs")}
        answer = {
            "jobs": differing({name: jobs[job] for name, job in ids.items()}),
            "nodes": differing({node["name"]: node for node in records(cluster, "nodes")[::7]}),
            "partitions": {each["name"]: each for each in records(cluster, "partitions")},
            "reservations": {each["name"]: each for each in records(cluster, "reservations")},
        }
        ANSWERS.mkdir(exist_ok=True)
        (ANSWERS / f"{version}-of-{release}.json").write_text(_a_record_a_line(answer))
    for job in ids.values():
        cluster.run("scancel", job)
    cluster.run("scontrol", "delete", "reservationname=maint")


if __name__ == "__main__":
    record(Path(sys.argv[1]), sys.argv[2:])
