"""The ranks of a placed job on their hosts, for launchers that do not ask Slurm."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Mapping

from topolane._engine import InputError
from topolane.live.clients.scontrol import scontrol
from topolane.mapping import hostfile, rankfile


@dataclasses.dataclass(frozen=True)
class JobRanks:
    """The ranks of a job, block by block in the order of its nodes."""

    hosts: list[str]
    cores: list[int]


def machinefile(ranks: JobRanks) -> str:
    """A machine file for MPICH (`mpiexec -f FILE`): each line has a host and its number of ranks."""
    blocks = ((host, len(list(block))) for host, block in itertools.groupby(ranks.hosts))
    return "".join(f"{host}:{count}\n" for host, count in blocks)


FORMATS = {"hostfile": hostfile, "rankfile": rankfile, "mpich": machinefile}


def ranks_of(job: str, environment: Mapping[str, str]) -> JobRanks:
    """Where the ranks of a running job are, in the order of the nodes that it was placed on.

    Inside the job (`environment` is the job's), Slurm gives the tasks per node. Outside, they are derived
    from the job's request. Raises InputError if the job has no nodes, or was not placed in an order.
    """
    facts = _facts(job)
    nodes, order = _expanded(facts["NodeList"]), _expanded(_placed_on(facts))
    if not nodes:
        raise InputError(f"job {job} has no nodes: it is {facts['JobState']}")
    if not order:
        raise InputError(f"job {job} was given no order of nodes: its comment names none")
    if Counter(order) != Counter(nodes):
        raise InputError(f"job {job} runs on {facts['NodeList']}, not on the nodes that its comment names")
    inside = environment.get("SLURM_JOB_ID") == job and "SLURM_NTASKS" in environment
    listed = environment.get("SLURM_TASKS_PER_NODE", "") if inside else ""
    tasks = _listed(listed) if inside else _counted(facts, len(nodes))
    if len(tasks) != len(nodes):
        raise InputError(f"SLURM_TASKS_PER_NODE={listed} is not for the {len(nodes)} nodes of job {job}")
    per_node = dict(zip(nodes, tasks))
    blocks = [(host, core) for host in order for core in range(per_node[host])]
    return JobRanks([host for host, _ in blocks], [core for _, core in blocks])


def _placed_on(facts: Mapping[str, str]) -> str:
    found = re.match(r"topolane: (?:as asked )?on ([^\s|]+)(\s|$)", facts.get("Comment", ""))
    return found[1] if found else ""


def _counted(facts: Mapping[str, str], nodes: int) -> list[int]:
    """The tasks of each node in Slurm's order: as requested, else as even as possible, with more on the first
    nodes.
    """
    tasks = int(facts.get("NumTasks", nodes))
    per_node = int(facts.get("NtasksPerN:B:S:C", "0").split(":")[0])
    if per_node:
        return [max(min(per_node, tasks - per_node * index), 0) for index in range(nodes)]
    return [tasks // nodes + (index < tasks % nodes) for index in range(nodes)]


def _listed(text: str) -> list[int]:
    """Slurm's `2(x3),1`."""
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if found is None:
            raise InputError(f"SLURM_TASKS_PER_NODE={text}: {part!r} is no number of tasks")
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def _facts(job: str) -> dict[str, str]:
    """The fields of `scontrol show job`, by name. A comment takes the rest of its line."""
    if not re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", job):
        raise InputError(f"{job!r} is no number of a job")
    facts: dict[str, str] = {}
    for line in scontrol("show", "job", job).splitlines():
        name, _, rest = line.strip().partition("=")
        if name == "Comment":
            facts[name] = rest
            continue
        for word in line.split():
            name, _, rest = word.partition("=")
            facts.setdefault(name, rest)
    return facts


def _expanded(hosts: str) -> list[str]:
    """The names in a hostlist, in its order."""
    return scontrol("show", "hostnames", hosts).split() if hosts not in ("", "(null)") else []
