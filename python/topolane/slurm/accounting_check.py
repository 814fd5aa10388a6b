"""Counts faults in the files that an import reads, without changing the files."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from topolane import texts
from topolane._engine import InputError
from topolane.findings import Checked, Finding
from topolane.slurm import accounting, accounting_faults, accounting_jobs, accounting_workload


def of_directory(directory: str | os.PathLike[str]) -> Checked:
    """The faults in a directory that `accounting.commands` filled, by cluster.

    Raises InputError if the jobs are missing, or if a file is not the output of its command.
    """
    there = {dump.file: accounting.found(directory, dump.file) for dump in accounting.DUMPS}
    path = there[accounting.JOBS]
    if path is None:
        raise InputError(
            f"{directory}: no {accounting.JOBS}; `topolane workload import --commands` prints how to write it"
        )
    checked = of_jobs(path, there)
    # What an import refuses must be refused here too.
    refused = _refused(directory, list(accounting_jobs.clusters(path)))
    lost = [
        f"no {dump.file}: not known is {dump.lost}" for dump in accounting.DUMPS if there[dump.file] is None
    ]
    return Checked(checked.runs, checked.findings, checked.unknown + lost + refused)


def _refused(directory: str | os.PathLike[str], clusters: list[str]) -> list[str]:
    """A sentence for each cluster whose import would fail. With a single cluster, raises the InputError of
    its import.
    """
    if len(clusters) < 2:
        accounting_workload.read(directory)
        return []
    refused = []
    for cluster in clusters:
        try:
            accounting_workload.read(directory, cluster=cluster)
        except InputError as error:
            refused.append(f"an import with --cluster {texts.shown(cluster)} is refused: {error}")
    return refused


def of_jobs(path: Path, there: dict[str, Path | None] | None = None) -> Checked:
    """The faults in a file of `sacct`, checked against the other files of its directory. Raises InputError if
    it is no such file.
    """
    rows = accounting_jobs.clusters(path)
    if len(rows) < 2:
        return _of_cluster(path, there, None)
    (first, _), *others = rows.most_common()
    names = ", ".join(f"{name} {count:,}" for name, count in others)
    count = sum(count for _, count in others)
    several = Finding(count, f"of other clusters than {first} ({names}): import one with --cluster", of="row")
    each = [_of_cluster(path, there, name) for name in rows]
    return Checked(
        sum(checked.runs for checked in each),
        [several, *(finding for checked in each for finding in checked.findings)],
        list(dict.fromkeys(sentence for checked in each for sentence in checked.unknown)),
    )


def _of_cluster(path: Path, there: dict[str, Path | None] | None, cluster: str | None) -> Checked:
    jobs = accounting_jobs.read(path, cluster)
    counts = [Finding(count, what, is_left_out=True, cluster=cluster) for what, count in jobs.skipped.items()]
    counts += [Finding(count, what, cluster=cluster) for what, count in jobs.notes.items()]
    if there is not None:
        faults = accounting_faults.of(there, jobs)
        counts += [dataclasses.replace(fault, cluster=cluster) for fault in faults]
    findings = [finding for finding in counts if finding.what not in accounting_jobs.NO_FAULTS]
    findings.sort(key=lambda finding: (not finding.is_left_out, -finding.count, finding.what))
    return Checked(len(jobs.runs), findings, jobs.without)
