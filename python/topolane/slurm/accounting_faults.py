"""Counts faults in jobs that the other files of an import reveal, and faults in those files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from topolane.findings import Finding
from topolane.slurm import accounting, accounting_config
from topolane.slurm.accounting_jobs import AccountedJobs

OTHER_TIMES = (
    ("events.txt", accounting.EVENTS, "node event"),
    ("reservations.txt", accounting_config.RESERVATIONS, "reservation"),
)
"""Other files with times: their columns, and the name of their rows."""


def of(there: dict[str, Path | None], jobs: AccountedJobs) -> list[Finding]:
    """One finding for each kind of fault. Raises InputError for a file that is not the output of its command."""
    counts = [
        *_of_another_cluster(there["config.txt"], jobs),
        *_gone(there, jobs).items(),
        *_licenses(there, jobs),
    ]
    found = [Finding(count, what) for what, count in counts]
    for file, columns, of in OTHER_TIMES:
        if (path := there[file]) and (count := _of_other_kind(path, columns, jobs)):
            what = "with civil times, where jobs have seconds since 1970, or the other way round: times may be hours off"
            found.append(Finding(count, what, of=of))
    if odd := _odd_events(there["events.txt"], jobs.cluster):
        found.append(
            Finding(odd, "without a beginning, or without an end after it: skipped", of="node event")
        )
    return found


def _of_another_cluster(path: Path | None, jobs: AccountedJobs) -> list[tuple[str, int]]:
    name = accounting.config(path).get("ClusterName") if path else None
    if not name or not jobs.cluster or name == jobs.cluster or not jobs.runs:
        return []
    return [(f"of cluster {jobs.cluster}, where config.txt is of {name}", len(jobs.runs))]


def _gone(there: dict[str, Path | None], jobs: AccountedJobs) -> Counter[str]:
    """The number of runs whose partition, account, user or QOS no longer exists in Slurm."""
    found: Counter[str] = Counter()
    if path := there["partitions.txt"]:
        partitions = accounting.partitions(path)
        found["in a partition that partitions.txt does not have"] = sum(
            run.partition not in partitions for run in jobs.runs if run.partition
        )
    if path := there["assoc.txt"]:
        rows = [row for _, row in accounting.table(path, ("Account", "User"), jobs.cluster)]
        accounts, pairs = {row["Account"] for row in rows}, {(row["Account"], row["User"]) for row in rows}
        found["of an account that is gone"] = sum(
            run.account not in accounts for run in jobs.runs if run.account
        )
        found["of a user who is gone from the account"] = sum(
            (run.account, run.user) not in pairs for run in jobs.runs if run.account in accounts
        )
    if path := there["qos.txt"]:
        known = {row["Name"] for _, row in accounting.table(path, ("Name",), None)}
        found["with a QOS that was deleted or renamed"] = sum(
            run.qos not in known for run in jobs.runs if run.qos
        )
    return +found


def _licenses(there: dict[str, Path | None], jobs: AccountedJobs) -> list[tuple[str, int]]:
    known = accounting_config.known_licenses(there)
    texts = Counter(run.licenses for run in jobs.runs if run.licenses)
    uncounted: Counter[str] = Counter()
    beyond: Counter[str] = Counter()
    for text, runs in texts.items():
        for name, count in accounting.licenses_of(text).items():
            if name not in known:
                uncounted[name] += runs
            elif count > known[name]:
                beyond[name] += runs
    return [
        *(
            (f"asked for licence {name}: no file says how many there are, and no queue counts it", runs)
            for name, runs in sorted(uncounted.items())
        ),
        *(
            (
                f"asked for more of licence {name} than the {known[name]:,} there are: the number is raised to the highest request",
                runs,
            )
            for name, runs in sorted(beyond.items())
        ),
    ]


def _of_other_kind(path: Path, columns: tuple[str, ...], jobs: AccountedJobs) -> int:
    """The number of rows with civil times while jobs have seconds since 1970, or the other way round."""
    rows = [row for _, row in accounting.table(path, columns, jobs.cluster)]
    times = [row["TimeStart"] for row in rows if row["TimeStart"] not in accounting.UNKNOWN]
    return sum(accounting.is_civil(time) != jobs.is_civil for time in times)


def _odd_events(path: Path | None, cluster: str | None) -> int:
    """The number of node events without a usable period of outage. Slurm writes such events for the whole
    cluster, for example.
    """
    if path is None:
        return 0
    odd = 0
    for number, row in accounting.events(path, cluster):
        start, end = accounting.withheld(path, number, row)
        odd += bool(row["NodeName"]) and (start is None or (end is not None and end <= start))
    return odd
