"""A client of Slurm, through slurmrestd.

The versions of its interface differ in how they write numbers and states; only this file and rest.py know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from topolane.slurm import gres, scontrol
from topolane.slurm.arrays import tasks_of
from topolane.slurm.records import (
    HELD_BY_SLURM,
    HOLDING,
    Gres,
    Job,
    Node,
    Partition,
    Reservation,
    Snapshot,
    task_id,
)
from topolane.slurm.rest import Rest
from topolane.slurm.tokens import SlurmError, Token

__all__ = ["Slurm", "SlurmError"]

MIB = 1 << 20

LONGEST_COMMENT = 1024
"""Bytes. Slurm refuses an update with a longer comment, and would not release the job."""


class Slurm:
    """A Slurm cluster behind slurmrestd.

    address: `unix:/path/to/socket` or `http://host:port`. token_file: a JWT, if slurmrestd requires one.
    Raises InputError for an invalid address; SlurmError if slurmrestd does not answer or supports no known
    version of the interface.
    """

    def __init__(self, address: str, *, token_file: str | None = None) -> None:
        self._rest = Rest(address, None if token_file is None else Token(token_file))
        self.version = self._rest.version

    def close(self) -> None:
        """Ends the connection."""
        self._rest.close()

    def snapshot(self) -> Snapshot:
        """All jobs, nodes, partitions and reservations. The clock is read first, so a change during the
        reading is seen next time.
        """
        try:
            return self._snapshot()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SlurmError(f"slurmrestd ({self.version}) says what is not understood: {error!r}") from error

    def _snapshot(self) -> Snapshot:
        now = self.clock()
        # Slurm may take a second to write thousands of jobs and nodes, so read both at once.
        with ThreadPoolExecutor(max_workers=1) as other:
            asked = other.submit(self._get, "nodes", "nodes")
            records = self._get("jobs", "jobs")
            nodes = {each.name: each for each in map(_node, asked.result())}
        partitions = {each.name: each for each in map(_partition, self._get("partitions", "partitions"))}
        kept = map(_reservation, self._get("reservations", "reservations"))
        reservations = {each.name: each for each in kept}
        jobs = {job.id: job for record in records for job in _jobs(record, partitions)}
        return Snapshot(now, jobs, nodes, partitions, reservations)

    def clock(self) -> float:
        """Slurm's time, whole seconds since 1970."""
        return float(_number(self._rest.get("diag")["statistics"]["req_time"]) or 0)

    def changed(self, since: float) -> bool:
        """Whether anything has changed since that time of Slurm's clock. Cheap if nothing has."""
        things = ("jobs", "nodes", "partitions", "reservations")
        return any(self._rest.is_new(thing, since) for thing in things)

    def release(self, job: Job, hosts: str, count: int, comment: str) -> None:
        """Lets a held job start on exactly these nodes."""
        # Without the count Slurm adds nodes of its own to a list that is shorter than what was asked for.
        change = {"nodelist": hosts, "nodes": str(count), "hold": False, "comment": _cut(comment)}
        self._update(self._set_apart(job) if self._rest.parses_data else job.number, change)

    def hold(self, job: Job, comment: str, *, keep_nodes: bool) -> None:
        """Holds a waiting job, and clears its node list unless `keep_nodes`."""
        change = {"hold": True, "comment": _cut(comment)}
        self._update(job.record, change if keep_nodes else change | {"nodelist": ""})

    def comment(self, job: Job, text: str) -> None:
        """Writes a comment for the user on the job, or on all waiting tasks of its array."""
        self._update(job.record, {"comment": _cut(text)})

    def return_job(self, job: Job, comment: str, *, release: bool, clear_nodes: bool) -> None:
        """Returns a waiting job, or all waiting tasks of its array, to Slurm."""
        change: dict[str, Any] = {"comment": comment}
        if clear_nodes:
            change["nodelist"] = ""
        if release:
            change["hold"] = False
        self._update(job.record, change)

    def _set_apart(self, job: Job) -> str:
        """Makes a record for this job alone, and returns its number. Tasks of an array wait in one record
        until one is changed by its number, which data_parser refuses and scontrol does.
        """
        if "_" not in job.number:
            return job.record
        scontrol.update(job.number, f"Comment={job.comment}")
        task = int(job.number.partition("_")[2])
        for each in self._get(f"job/{job.array}", "jobs"):
            # The last one that waits may stay in the array's own record.
            if _number(each["array_task_id"]) == task or tasks_of(each["array_task_string"] or "") == [task]:
                return str(each["job_id"])
        raise SlurmError(f"task {job.number} cannot be set apart from its array")

    def _get(self, path: str, key: str) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self._rest.get(path)[key]
        return found

    def _update(self, job: str, change: Mapping[str, Any]) -> None:
        hosts = change.get("nodelist")
        if self._rest.parses_data:
            job = job.partition("_")[
                0
            ]  # there the last task of an array can only be named by the number of the array
        if hosts is not None and self._rest.parses_data:
            # There `nodelist` is ignored with a mere warning, and a released job starts anywhere.
            change = {key: value for key, value in change.items() if key != "nodelist"}
            change |= {"required_nodes": [hosts]}
        self._rest.post(f"job/{job}", change)


def _cut(text: str) -> str:
    """The comment, cut to the length that Slurm accepts."""
    if len(text.encode()) <= LONGEST_COMMENT:
        return text
    return text.encode()[: LONGEST_COMMENT - 3].decode(errors="ignore") + "..."


def _number(value: Any) -> int | None:
    """A number, or None. Newer versions write `{set, infinite, number}`."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return None if value is None or value < 0 else int(value)


def _signed(value: Any) -> int:
    """v0.0.38 writes a number below 0 as 2^32 more than it is."""
    number = (value.get("number") or 0 if isinstance(value, dict) else value) or 0
    return int(number) - (1 << 32 if number >= 1 << 31 else 0)


def _words(value: Any) -> list[str]:
    """One or several words. Newer versions write states as lists."""
    return [value] if isinstance(value, str) else [str(word) for word in value or ()]


def _minutes(value: Any) -> float | None:
    minutes = _number(value)
    return None if minutes is None or minutes == 0 else 60.0 * minutes


def _memory(value: Any) -> int | None:
    found = _number(value)
    return found * MIB if found else None


def _jobs(record: Mapping[str, Any], partitions: Mapping[str, Partition]) -> Iterator[Job]:
    """The job in a record, or the waiting tasks of an array."""
    job = _job(record, partitions)
    waiting = record["array_task_string"]
    if not waiting:
        yield job
        return
    for task in tasks_of(waiting):
        yield dataclasses.replace(job, id=task_id(job.array, task), number=f"{job.array}_{task}")


def _job(job: Mapping[str, Any], partitions: Mapping[str, Partition]) -> Job:
    states = _words(job["job_state"])
    names = tuple(name for name in str(job["partition"]).split(",") if name)
    # For a job without a limit Slurm gives that of its partition; without either there is no limit.
    walltime = _minutes(job["time_limit"])
    longest = [partitions[name].longest_walltime for name in names if name in partitions]
    if walltime is None and longest:
        walltime = max((limit for limit in longest if limit is not None), default=None)
    most = _number(job["max_nodes"]) or 0
    processes = _number(job["tasks"]) or 1
    # Slurm's own estimate may exceed what the user allows.
    fewest = max(min(_number(job["node_count"]) or 1, most or 2**31), 1)
    # Slurm 26.05 reports as many nodes as processes if no node count was requested.
    most_is_tasks = isinstance(job["max_nodes"], Mapping) and fewest < most == processes
    number, array = int(job["job_id"]), _number(job["array_job_id"]) or 0
    task = _number(job["array_task_id"])
    return Job(
        id=number if task is None else task_id(array, task),
        number=str(number) if task is None else f"{array}_{task}",
        # The last task of an array has the number that names all of them.
        record=f"{array}_{task}" if number == array and task is not None else str(number),
        name=job["name"] or "",
        user=job["user_name"] or "",
        state=next((state for state in states if state in HOLDING), states[0]),
        reason=_reason(job),
        priority=_number(job["priority"]) or 0,
        partitions=names,
        nodes=job["nodes"] or "",
        required=job["required_nodes"] or "",
        excluded=job["excluded_nodes"] or "",
        features=job["features"] or "",
        fewest_nodes=fewest,
        most_nodes=0 if most_is_tasks else most,
        processes=processes,
        cpus_per_process=max(_number(job["cpus_per_task"]) or 1, (_number(job["cpus"]) or 0) // processes),
        processes_per_node=_number(job["tasks_per_node"]) or 0,
        memory_per_node=_memory(job["memory_per_node"]),
        memory_per_cpu=_memory(job["memory_per_cpu"]),
        exclusive="none" in _words(job.get("shared") or job.get("exclusive")),
        cores_held=_cores_held(job.get("job_resources")),
        walltime=walltime,
        submit=float(_number(job["submit_time"]) or 0),
        start=0.0 if states == ["PENDING"] else float(_number(job["start_time"]) or 0),
        # Before it has ended, this is the time by which it must end.
        end=0.0 if HOLDING & {*states} or states == ["PENDING"] else float(_number(job["end_time"]) or 0),
        begin=float(_number(job["eligible_time"]) or 0),
        array=array,
        array_limit=_number(job["array_max_tasks"]) or 0,
        dependency=job["dependency"] or "",
        reservation=job["resv_name"] or "",
        unsupported_option=_unsupported_option(job),
        note=job["admin_comment"] or "",
        comment=job["comment"] or "",
        nice=_signed(job["nice"]),
        qos=job["qos"] or "",
        association=_number(job["association_id"]) or 0,
        tres=job["tres_req_str"] or "",
        gres=tuple(one for _, one in _resource_options(job) if one is not None),
        gres_held=gres.held(job.get("tres_alloc_str") or "", fewest),
    )


def _reason(job: Mapping[str, Any]) -> str:
    # A job that Slurm could not launch is "JobHeldUser" too; only the description differs.
    described = str(job["state_description"] or "")
    return described if described.endswith(HELD_BY_SLURM) else job["state_reason"] or ""


def _unsupported_option(job: Mapping[str, Any]) -> str:
    if _number(job["het_job_id"]):
        return "a heterogeneous job"
    if job["contiguous"]:
        return "--contiguous"
    return next((option for option, understood in _resource_options(job) if understood is None), "")


def _resource_options(job: Mapping[str, Any]) -> Iterator[tuple[str, Gres | None]]:
    """What the job requests in addition to cores and memory; None with an option that is not supported."""
    one_node = _number(job["node_count"]) == 1 and _number(job["max_nodes"]) in (0, 1)
    for what in ("job", "node", "socket", "task"):
        per_node = what == "node" or (what == "job" and one_node)
        for option in (job[f"tres_per_{what}"] or "").split(","):
            # Slurm 24 repeats --cpus-per-task there.
            if option and not option.startswith("cpu="):
                understood = gres.requested(option, per_process=what == "task")
                yield option, understood if per_node or what == "task" else None


def _cores_held(resources: Mapping[str, Any] | None) -> int:
    """The most cores that a running job holds on one of its nodes, or 0."""
    held = resources or {}
    if "allocated_nodes" not in held:  # from v0.0.42 on
        nodes = (held.get("nodes") or {}).get("allocation") or ()
        return max((_number(node["cpus"]["count"]) or 0 for node in nodes), default=0)
    return max((_allocated(node["sockets"].values()) for node in held["allocated_nodes"]), default=0)


def _allocated(sockets: Iterable[Mapping[str, Any]]) -> int:
    return sum(str(word).startswith("allocated") for socket in sockets for word in socket["cores"].values())


def _reservation(reservation: Mapping[str, Any]) -> Reservation:
    return Reservation(
        name=reservation["name"],
        nodes=reservation["node_list"] or "",
        start=float(_number(reservation["start_time"]) or 0),
        end=float(_number(reservation["end_time"]) or 0),
    )


def _node(node: Mapping[str, Any]) -> Node:
    words = [*_words(node["state"]), *_words(node.get("state_flags"))]
    features = node.get("active_features") or ""
    return Node(
        name=node["name"],
        words=frozenset(word.lower() for word in words),
        cpus=_number(node["cpus"]) or 1,
        sockets=_number(node["sockets"]) or 1,
        memory=_memory(node["real_memory"]) or 0,
        features=frozenset(_words(features.split(",") if isinstance(features, str) else features)) - {""},
        gres=gres.of_node(node.get("gres") or ""),
    )


def _of(record: Mapping[str, Any], group: str, key: str) -> Any:
    """The value of a key in a group, as data_parser writes it; None without that group."""
    return record.get(group, {}).get(key)


def _partition(partition: Mapping[str, Any]) -> Partition:
    nodes = partition["nodes"]
    state = partition.get("state") or _of(partition, "partition", "state")
    tres = partition.get("tres") or ""
    priority = partition.get("priority") or {
        word: partition.get(f"priority_{word}") for word in ("job_factor", "tier")
    }
    return Partition(
        name=partition["name"],
        nodes=nodes if isinstance(nodes, str) else nodes.get("configured", ""),
        up=not {"UP", "DRAIN"}.isdisjoint(_words(state)),
        longest_walltime=_minutes(partition.get("max_time_limit") or _of(partition, "maximums", "time")),
        priority_factor=_number(priority["job_factor"]) or 0,
        priority_tier=_number(priority["tier"]) or 0,
        tres=tres if isinstance(tres, str) else tres.get("configured", ""),
    )
