"""Jobs, nodes, partitions and reservations from the JSON of slurmrestd and of `scontrol --json`.

Only this file and rest.py handle what differs between versions of the format:

- v0.0.38 has plain numbers and one state as text, newer formats `{"set", "infinite", "number"}` and lists of
  states. v0.0.38 has neither `--switches` nor OverSubscribe of partitions.
- `max_nodes` of a waiting job without `-N` is 0 in Slurm 22.05, its own node count in 24.11, and its number
  of tasks in 26.05.
- v0.0.45 says `shared: []` for every job, also with `--exclusive`, so v0.0.44 is preferred.

What misleads in all of them:

- `scontrol --json` prints empty lists and ends with 0 if slurmctld does not answer (after about 9 s with the
  default `MessageTimeout`). Only `last_update` is 0 then. slurmrestd answers with HTTP 500, and drops a
  connection now and then.
- `nodes` of a completing job shrink; all are in `job_resources`.
- The waiting tasks of an array share one record, with their numbers in `array_task_string`.
- A requeued job keeps its number and gets a new `start_time`. The `start_time` of a waiting job is an
  estimate.
- A time limit of null means that of the partition; without one a running job may have 525,600 minutes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from topolane.slurm import gres
from topolane.slurm.records import (
    HELD_BY_SLURM,
    HOLDING,
    NOT_ISOLATED,
    Gres,
    Partition,
    Reservation,
    SlurmJob,
    SlurmNode,
    task_id,
)

MIB = 1 << 20

RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def _number(value: Any) -> int | None:
    """A number, or None. Newer versions write `{set, infinite, number}`."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return None if value is None or value < 0 else int(value)


def _words(value: Any) -> list[str]:
    """One or several words. Newer versions write states as lists."""
    return [value] if isinstance(value, str) else [str(word) for word in value or ()]


def _minutes(value: Any) -> float | None:
    minutes = _number(value)
    return None if minutes is None or minutes == 0 else 60.0 * minutes


def _memory(value: Any) -> int | None:
    found = _number(value)
    return found * MIB if found else None


def tasks_of(text: str) -> list[int]:
    """The task numbers in Slurm's text for an array's waiting tasks, such as `0,2-3%2` or `1-9:4`, ascending."""
    tasks: set[int] = set()
    for part in text.partition("%")[0].strip("[]").split(","):
        match = RANGE.fullmatch(part.strip())
        if match is None:
            continue  # Slurm cuts very long lists short with "..."
        first = int(match[1])
        tasks.update(range(first, int(match[2] or first) + 1, int(match[3] or 1)))
    return sorted(tasks)


def jobs(record: Mapping[str, Any], partitions: Mapping[str, Partition]) -> Iterator[SlurmJob]:
    """The job in a record, or several jobs if the record stands for waiting tasks of an array."""
    job = _job(record, partitions)
    waiting = record["array_task_string"]
    if not waiting:
        yield job
        return
    for task in tasks_of(waiting):
        yield dataclasses.replace(job, id=task_id(job.array, task), number=f"{job.array}_{task}")


def _job(job: Mapping[str, Any], partitions: Mapping[str, Partition]) -> SlurmJob:
    states = _words(job["job_state"])
    names = tuple(name for name in str(job["partition"]).split(",") if name)
    # For a job without a limit, Slurm reports that of its partition. If that has none either, there is no
    # limit.
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
    return SlurmJob(
        id=number if task is None else task_id(array, task),
        number=str(number) if task is None else f"{array}_{task}",
        # Only the array's last task has the number that stands for the whole array.
        record=f"{array}_{task}" if number == array and task is not None else str(number),
        name=job["name"] or "",
        user=job["user_name"] or "",
        account=job["account"] or "",
        state=next((state for state in states if state in HOLDING), states[0]),
        reason=_reason(job),
        priority=_number(job["priority"]) or 0,
        partitions=names,
        nodes=job["nodes"] or "",
        allocated=_allocated_nodes(job) or job["nodes"] or "",
        switches=_number(job.get("required_switches")) or 0,
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
        expected_start=float(_number(job["start_time"]) or 0) if states == ["PENDING"] else 0.0,
        # Before the job ends, this field has the time by which it must end.
        end=0.0
        if (HOLDING - {"COMPLETING"}) & {*states} or states == ["PENDING"]
        else float(_number(job["end_time"]) or 0),
        begin=float(_number(job["eligible_time"]) or 0),
        array=array,
        dependency=job["dependency"] or "",
        reservation=job["resv_name"] or "",
        unsupported_option=_unsupported_option(job),
        comment=job["comment"] or "",
        qos=job["qos"] or "",
        gres=tuple(one for _, one in _resource_options(job) if one is not None),
        gres_held=gres.held(job.get("gres_detail") or (), job.get("tres_alloc_str") or "", fewest),
        requeueable=bool(job.get("requeue")) and bool(job.get("batch_flag")),
        restarts=_number(job.get("restart_cnt")) or 0,
        is_stock=NOT_ISOLATED in (job.get("system_comment") or ""),
        het_job=_number(job["het_job_id"]) or 0,
        het_part=_number(job.get("het_job_offset")) or 0,
        # For a job without a limit, Slurm writes a time a year after the start.
        latest_end=None
        if walltime is None or states == ["PENDING"]
        else float(_number(job["end_time"]) or 0),
    )


def _reason(job: Mapping[str, Any]) -> str:
    # A job that Slurm could not launch also has the reason "JobHeldUser"; only its description differs.
    described = str(job["state_description"] or "")
    return described if described.endswith(HELD_BY_SLURM) else job["state_reason"] or ""


def _unsupported_option(job: Mapping[str, Any]) -> str:
    if _number(job["het_job_id"]):
        return "a heterogeneous job"
    if job["contiguous"]:
        return "--contiguous"
    return next((option for option, understood in _resource_options(job) if understood is None), "")


def _resource_options(job: Mapping[str, Any]) -> Iterator[tuple[str, Gres | None]]:
    """The requested options beyond cores and memory, each with its resource; None for an unsupported option."""
    one_node = _number(job["node_count"]) == 1 and _number(job["max_nodes"]) in (0, 1)
    for what in ("job", "node", "socket", "task"):
        per_node = what == "node" or (what == "job" and one_node)
        for option in (job[f"tres_per_{what}"] or "").split(","):
            # Slurm 24 repeats --cpus-per-task there.
            if option and not option.startswith("cpu="):
                understood = gres.requested(option, per_process=what == "task")
                yield option, understood if per_node or what == "task" else None


def _allocated_nodes(job: Mapping[str, Any]) -> str:
    """All nodes that a job got. For a completing job, `nodes` has only those that it has not freed yet."""
    found = (job.get("job_resources") or {}).get("nodes") or ""
    return found if isinstance(found, str) else str(found.get("list") or "")


def _cores_held(resources: Mapping[str, Any] | None) -> int:
    """The most cores that a running job holds on one node; 0 if unknown."""
    held = resources or {}
    if "allocated_nodes" not in held:  # from v0.0.42 on
        nodes = (held.get("nodes") or {}).get("allocation") or ()
        return max((_number(node["cpus"]["count"]) or 0 for node in nodes), default=0)
    return max((_allocated(node["sockets"].values()) for node in held["allocated_nodes"]), default=0)


def _allocated(sockets: Iterable[Mapping[str, Any]]) -> int:
    return sum(str(word).startswith("allocated") for socket in sockets for word in socket["cores"].values())


def reservation(record: Mapping[str, Any]) -> Reservation:
    """The reservation in a record."""
    return Reservation(
        name=record["name"],
        nodes=record["node_list"] or "",
        start=float(_number(record["start_time"]) or 0),
        end=float(_number(record["end_time"]) or 0),
    )


def node(record: Mapping[str, Any]) -> SlurmNode:
    """The node in a record."""
    words = [*_words(record["state"]), *_words(record.get("state_flags"))]
    features = record.get("active_features") or ""
    cpus = _number(record["cpus"]) or 1
    return SlurmNode(
        name=record["name"],
        words=frozenset(word.lower() for word in words),
        cpus=cpus,
        sockets=_number(record["sockets"]) or 1,
        memory=_memory(record["real_memory"]) or 0,
        features=frozenset(_words(features.split(",") if isinstance(features, str) else features)) - {""},
        gres=gres.of_node(record.get("gres") or ""),
        cpus_used=_number(record.get("alloc_cpus")) or 0,
        memory_used=_memory(record.get("alloc_memory")) or 0,
        gres_used=gres.of_node(record.get("gres_used") or ""),
        cpus_reserved=max(cpus - (_number(record.get("effective_cpus")) or cpus), 0),
    )


def _of(record: Mapping[str, Any], group: str, key: str) -> Any:
    """The value of a key in a group, in data_parser's structure; None without that group."""
    return record.get(group, {}).get(key)


def partition(record: Mapping[str, Any]) -> Partition:
    """The partition in a record."""
    nodes = record["nodes"]
    state = record.get("state") or _of(record, "partition", "state")
    return Partition(
        name=record["name"],
        nodes=nodes if isinstance(nodes, str) else nodes.get("configured", ""),
        up=not {"UP", "DRAIN"}.isdisjoint(_words(state)),
        longest_walltime=_minutes(record.get("max_time_limit") or _of(record, "maximums", "time")),
    )
