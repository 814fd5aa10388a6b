"""An import names in one line each what Slurm has and the queue `slurm` has not, and reads limits as Slurm does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from topolane import InputError
from topolane.slurm import accounting, accounting_check, accounting_workload

ZERO = 1_795_000_000
CONFIG = "SelectType = select/cons_tres\nPriorityType = priority/multifactor\n"
RUN = {
    "JobIDRaw": 1,
    "JobID": 1,
    "Cluster": "hex",
    "Submit": ZERO,
    "Eligible": ZERO,
    "Start": ZERO + 100,
    "End": ZERO + 700,
    "ElapsedRaw": 600,
    "State": "COMPLETED",
    "TimelimitRaw": 60,
    "NNodes": 2,
    "AllocTRES": "cpu=32,node=2",
    "Partition": "batch",
    "QOS": "normal",
    "Account": "physics",
    "User": "alice",
    "Priority": 1000,
    "NodeList": "n[1-2]",
}
"""A row of sacct; columns that are not here are empty."""
PENDING = {
    "Start": "Unknown",
    "End": "Unknown",
    "State": "PENDING",
    "NodeList": "None assigned",
    "Reason": "Resources",
}
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State\n"
RESERVATIONS = "Cluster|Name|TimeStart|TimeEnd|NodeName|TRES|Flags\n"
ASSOCIATIONS = "Cluster|Account|User|Partition|ParentName|Share|GrpTRES|MaxJobs\n"


@pytest.fixture
def dump(tmp_path):
    """Writes a directory of files: a run, rows that differ from it, and other files."""

    def dump(*changes, **others) -> Path:
        rows = [RUN, *({**RUN, "JobIDRaw": number, **row} for number, row in enumerate(changes, start=2))]
        lines = [";".join(str(row.get(name, "")) for name in accounting.FIELDS) for row in rows]
        text = "\n".join([";".join(accounting.FIELDS), *lines, ""])
        for name, content in {"jobs": text, **others}.items():
            (tmp_path / f"{name}.txt").write_text(content)
        return tmp_path

    return dump


def lines_with(directory, words):
    """The lines of an import with these words."""
    return [line for line in accounting_workload.read(directory).notes if words in line]


def queue(directory):
    return json.loads(accounting_workload.read(directory).queue)


@pytest.mark.parametrize(
    ("setting", "is_reported"),
    [
        ("SchedulerType = sched/builtin", True),
        ("SchedulerType = sched/backfill", False),
        ("PriorityFlags = NO_FAIR_TREE,MAX_TRES", True),
        ("PriorityFlags = ", False),
        ("PriorityUsageResetPeriod = MONTHLY", True),
        ("PriorityUsageResetPeriod = NONE", False),
        ("PriorityWeightTRES = CPU=1000", True),
        ("PriorityWeightAssoc = 0", False),
        ("PrioritySiteFactorPlugin = (null)", False),
    ],
)
def test_settings_that_change_decisions_are_reported(dump, setting, is_reported):
    key, _, value = setting.partition(" = ")
    lines = lines_with(dump(config=f"{CONFIG}{setting}\n"), key)
    assert lines == ([f"{key} is {value!r}, which the queue slurm does not know"] if is_reported else [])


def test_settings_of_another_priority_plugin_do_not_matter(dump):
    config = "SelectType = select/cons_tres\nPriorityType = priority/basic\nPriorityFlags = MAX_TRES\n"
    assert not lines_with(dump(config=config), "PriorityFlags")


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        ("QoS=big", "QoS"),
        ("OverSubscribe=FORCE:4", "OverSubscribe"),
        ("ExclusiveUser=YES", "ExclusiveUser"),
        ("MaxCPUsPerNode=32", "MaxCPUsPerNode"),
        ("State=DOWN", "State"),
        ("TRESBillingWeights=CPU=1.0,Mem=0.25G", "TRESBillingWeights"),
        ("QoS=N/A OverSubscribe=FORCE:1 ExclusiveUser=NO MaxCPUsPerNode=UNLIMITED State=UP", ""),
    ],
)
def test_partitions_with_rules_of_their_own_are_reported(dump, words, setting):
    lines = lines_with(dump(partitions=f"PartitionName=batch Nodes=n[1-2] {words}\n"), "partition with")
    value = words.partition("=")[2]
    sentence = f"1 partition with {setting}, which the queue slurm does not know: {'batch ' + value!r}"
    assert lines == ([sentence] if setting else [])


def test_a_partition_of_a_newer_slurm_gives_whole_nodes(dump):
    """Slurm 26.11 prints Exclusive where older ones print OverSubscribe=EXCLUSIVE."""
    for words, cores in (("Exclusive=NODE OverSubscribe=NO", False), ("Exclusive=NO OverSubscribe=NO", True)):
        imported = accounting_workload.read(dump(partitions=f"PartitionName=batch Nodes=n[1-2] {words}\n"))
        assert ("cores" in imported.csv.partition("\n")[0].split(",")) == cores


def test_limits_on_other_things_than_nodes_and_jobs_are_reported(dump):
    """Limits that only single jobs have are none of them: a job that ran was within its own."""
    directory = dump(
        qos="Name|Flags|GrpTRES|GrpTRESRunMins|MaxTRES|MaxTRESPU|MaxWall\n"
        "normal|||||cpu=8,node=3|1-00:00:00\nbig|NoReserve,DenyOnLimit|gres/gpu=8|cpu=100|cpu=2||\nsmall||node=2||||\n",
        assoc=f"{ASSOCIATIONS}hex|physics||||1|node=4,cpu=64|\n",
    )
    assert lines_with(directory, "limits that") == [
        "2 QOS with limits that the queue slurm does not know: 'GrpTRES gres/gpu', 'GrpTRESRunMins cpu', 'MaxTRESPU cpu'",
        "1 association with limits that the queue slurm does not know: 'GrpTRES cpu'",
    ]
    assert lines_with(directory, "flags") == [
        "1 QOS with flags that the queue slurm does not know: 'NoReserve'"
    ]


def test_limits_hold_only_where_slurm_enforces_them(dump):
    files = {
        "qos": "Name|MaxJobsPU|MaxTRESPU\nnormal|3|cpu=8\n",
        "assoc": f"{ASSOCIATIONS}hex|physics||||1|node=4|\n",
    }
    for enforced, holds in (
        ("associations", False),
        ("associations,limits,qos", True),
        ("associations,limits,safe", True),
    ):
        directory = dump(config=f"{CONFIG}AccountingStorageEnforce = {enforced}\n", **files)
        found = queue(directory)
        limits = [row["limits"] for row in (*found["qos"], *found["associations"])]
        assert limits == ([{"jobs_per_user": 3}, {"nodes": 4}] if holds else [{}, {}])
        assert bool(lines_with(directory, "no limit of a QOS or an association holds")) != holds
        assert bool(lines_with(directory, "limits that the queue")) == holds


def test_limits_in_percent_are_no_numbers_of_nodes(dump):
    directory = dump(qos="Name|Flags|GrpTRES|MaxJobsPU\nnormal|Relative|node=50|3\n")
    assert queue(directory)["qos"][0]["limits"] == {"jobs_per_user": 3}
    assert lines_with(directory, "flags") == [
        "1 QOS with flags that the queue slurm does not know: 'Relative'"
    ]


def test_accounts_are_below_their_parents(dump):
    """The printed command asks for ParentName, which sacctmgr does not show by itself."""
    assert "ParentName" in next(dump.command for dump in accounting.DUMPS if dump.file == "assoc.txt")
    rows = "hex|root||||1||\nhex|science|||root|2||\nhex|physics|||science|3||\nhex|physics|alice|||4||\n"
    directory = dump(assoc=ASSOCIATIONS + rows)
    assert [row["parent"] for row in queue(directory)["associations"]] == ["", "root", "science", ""]
    assert not lines_with(directory, "ParentName")
    directory = dump(assoc="Cluster|Account|User\nhex|physics|\n")
    assert (
        len(
            lines_with(
                directory, "assoc.txt has no column ParentName: all accounts are taken to be below the root"
            )
        )
        == 1
    )


def test_a_limit_in_one_partition_is_not_a_limit_everywhere(dump):
    """Whichever row sacctmgr prints first."""
    rows = ["hex|physics|alice|||1||20\n", "hex|physics|alice|debug||1||1\n"]
    for text in ("".join(rows), "".join(reversed(rows))):
        directory = dump(assoc=ASSOCIATIONS + text)
        assert [row["limits"] for row in queue(directory)["associations"]] == [{"jobs_per_user": 20}]
        assert len(lines_with(directory, "1 association of a user in one partition")) == 1
    directory = dump(assoc=ASSOCIATIONS + rows[1])
    assert [row["limits"] for row in queue(directory)["associations"]] == [{}]


def test_a_node_that_saves_power_is_free(dump):
    """Slurm writes an event for a node of a cloud that is switched off, and starts it for a job."""
    rows = [
        f"hex|n{node}|{ZERO}|{ZERO + 500}|{state}\n"
        for node, state in enumerate(
            ["IDLE~", "POWERED_DN", "ALLOC#", "DOWN~", "DRAIN~", "IDLE*", "MAINT"], start=1
        )
    ]
    rows.append(f"hex|n8|{ZERO + 10**6}|{ZERO + 10**6 + 1}|IDLE~\n")  # after the last job
    directory = dump(events=EVENTS + "".join(rows))
    assert [row["nodes"] for row in queue(directory)["out_of_service"]] == ["n4", "n5", "n6", "n7"]
    assert lines_with(directory, "save power") == [
        "3 times that a node was switched off to save power: it counts as free, and starts at once"
    ]


def test_jobs_of_a_reservation_run_on_its_nodes_in_maintenance(dump):
    """Slurm writes an event for each node of a reservation with the flag MAINT. The reservation keeps others away."""
    events = f"{EVENTS}hex|n1|{ZERO}|{ZERO + 500}|MAINT\n"
    directory = dump(
        events=events, reservations=f"{RESERVATIONS}hex|care|{ZERO}|{ZERO + 500}|n1||MAINT,SPEC_NODES\n"
    )
    found = queue(directory)
    assert (found["out_of_service"], [row["name"] for row in found["reservations"]]) == ([], ["care"])
    assert not lines_with(directory, "flags")


def test_reservations_that_are_not_kept_as_in_slurm_are_reported(dump):
    """Flags, and parts of nodes; reservations of another time do not count."""
    rows = [
        f"hex|flexible|{ZERO}|{ZERO + 500}|n[1-2]|cpu=32|FLEX,DAILY\n",
        f"hex|part|{ZERO}|{ZERO + 500}|n[1-2]|cpu=8|SPEC_NODES\n",
        f"hex|old|{ZERO - 500}|{ZERO - 100}|n[1-2]|cpu=8|FLEX\n",
    ]
    directory = dump(
        reservations=RESERVATIONS + "".join(rows),
        partitions="PartitionName=batch Nodes=n[1-4] TotalCPUs=64 TotalNodes=4\n",
    )
    assert lines_with(directory, "flags") == [
        "1 reservation with flags that the queue slurm does not know: 'FLEX'"
    ]
    assert lines_with(directory, "fewer processors") == [
        "1 reservation of fewer processors than the nodes have: the queue slurm keeps whole nodes"
    ]


def test_features_and_limits_that_made_runs_wait_are_counted(dump):
    directory = dump(
        {"Constraints": "haswell&big", "Reason": "QOSMaxGRESPerUser"},
        {"Constraints": "haswell&big", "Reason": "JobArrayTaskLimit"},
        {"Constraints": "ib", "Reason": "QOSMaxJobsPerUserLimit"},
        {"Reason": "AssocGrpCPURunMinutesLimit"},
        {"Reason": "AssocGrpNodeLimit"},
    )
    assert lines_with(directory, "--constraint") == [
        "3 runs asked for features of nodes (--constraint), which no queue knows: 'haswell&big 2', 'ib 1'"
    ]
    sentence = "3 runs waited last for a limit that the queue slurm does not know: "
    reasons = "'QOSMaxGRESPerUser 1', 'JobArrayTaskLimit 1', 'AssocGrpCPURunMinutesLimit 1'"
    assert lines_with(directory, "waited last") == [sentence + reasons]


def test_a_job_that_was_resized_is_reported(dump):
    """Slurm ends its row, and begins another that was submitted when its size changed."""
    rest = {
        "JobIDRaw": 2,
        "Submit": ZERO + 700,
        "Eligible": ZERO + 700,
        "Start": ZERO + 700,
        "End": ZERO + 1300,
    }
    directory = dump({"State": "RESIZING", "NNodes": 4}, {**rest, "NNodes": 2})
    assert lines_with(directory, "resized") == [
        "1 run ended because the job was resized: the rest of the job is a job of its own, submitted then"
    ]
    assert not lines_with(directory, "requeued")
    assert not [
        finding for finding in accounting_check.of_directory(directory).findings if "resized" in finding.what
    ]


def test_a_job_that_still_waits_waits_in_the_replay(dump):
    """Until the last time of the records; not if it was held, or stopped by a limit that the queue does not have."""
    directory = dump(
        {**PENDING, "Eligible": ZERO + 50},
        {**PENDING, "Priority": 0},
        {**PENDING, "Reason": "QOSMaxGRESPerUser"},
        {**PENDING, "Eligible": "Unknown"},
        {**PENDING, "Eligible": ZERO + 9999},
    )
    waiting = [(row["id"], row["submit"], row["until"]) for row in queue(directory)["never_started"]]
    assert waiting == [(2, 50, 700)]


@pytest.mark.parametrize(
    ("tasks", "parameters", "stands_for", "kept"),
    [
        ("3-7", "", 5, 5),
        ("3-7%2", "", 5, 2),
        ("1,3-5,9-20:3%50", "", 8, 8),
        ("0-99", "", 100, 20),
        ("0-99", "bf_max_job_array_resv=30", 100, 30),
        ("0-99", "bf_max_job_array_resv=0", 100, 1),
        ("0-99", "bf_max_job_array_resv=1001", 100, 20),
        ("4", "", 1, 1),
    ],
)
def test_a_row_of_an_array_is_as_many_jobs_as_it_has_tasks(dump, tasks, parameters, stands_for, kept):
    """Tasks that waited to the end or were cancelled stand for the number that may run at once and that backfill reserves nodes for."""
    row = {**PENDING, "JobID": f"2_[{tasks}]"}
    gone = {**row, "JobIDRaw": 3, "JobID": f"3_[{tasks}]", "State": "CANCELLED by 5", "End": ZERO + 300}
    directory = dump(row, gone, config=f"{CONFIG}SchedulerParameters = {parameters}\n")
    imported = accounting_workload.read(directory)
    found = json.loads(imported.queue)["never_started"]
    ids = [number + 10_000_000_000 * task for number in (3, 2) for task in range(kept)]
    assert sorted(job["id"] for job in found) == sorted(ids)
    assert {(job["id"] % 10_000_000_000, job["until"]) for job in found} == {(3, 300), (2, 700)}
    assert f"skipped: {2 * stands_for} never started" in imported.notes
    sentence = (
        f"{2 * stands_for} tasks of 2 arrays waited and never started: the queue slurm has {2 * kept} of them"
    )
    assert [line.partition(", for each")[0] for line in imported.notes].count(sentence) == 1
    assert not [line for line in imported.notes if "does not know" in line]


def test_a_list_of_tasks_that_is_cut_off_is_reported(dump):
    """sacct prints 64 letters of the list, unless SLURM_BITSTR_LEN is 0. The number before the end may lack digits."""
    directory = dump(
        {**PENDING, "JobID": "2_[1,3,5,1...%9]"}, {**PENDING, "JobIDRaw": 3, "JobID": "3_[7...]"}
    )
    imported = accounting_workload.read(directory)
    assert len(json.loads(imported.queue)["never_started"]) == 3 + 1
    assert "skipped: 4 never started" in imported.notes
    sentence = "2 arrays of which sacct printed only the first waiting tasks"
    assert [line.partition(":")[0] for line in imported.notes].count(sentence) == 1
    assert "SLURM_BITSTR_LEN=0" in accounting.commands()
    with pytest.raises(InputError, match="jobs.txt:3: JobID '2_.x.' has no list of tasks like 3-7,9"):
        accounting_workload.read(dump({**PENDING, "JobID": "2_[x]"}))


def test_columns_that_an_older_sacct_does_not_print_are_reported(dump):
    """sacct of Slurm 20.11 has no Licenses and no Planned. Planned is not needed."""
    directory = dump()
    assert not lines_with(directory, "no columns")
    header, row = (directory / "jobs.txt").read_text().splitlines()
    kept = [
        place for place, name in enumerate(header.split(";")) if name not in ("Licenses", "Planned", "QOS")
    ]
    lines = [";".join(line.split(";")[place] for place in kept) for line in (header, row)]
    (directory / "jobs.txt").write_text("\n".join(lines) + "\n")
    assert lines_with(directory, "no columns") == [
        "no columns QOS, Licenses: the queue slurm goes without what they say"
    ]


def test_nodes_of_jobs_that_still_run_are_reported(dump):
    running = {"End": "Unknown", "State": "RUNNING"}
    directory = dump({**running, "NNodes": 4}, {**running, "NNodes": 3})
    assert lines_with(directory, "still ran") == [
        "7 nodes of jobs that still ran: free in a replay from the start of these jobs on"
    ]


def test_times_of_two_kinds_are_reported(dump):
    """Civil times and seconds since 1970 differ by the zone of the site: nodes would be down at other hours."""
    rows = [f"hex|n{node}|2026-11-18T12:08:00|2026-11-18T12:09:00|DOWN\n" for node in (1, 2)]
    events = EVENTS + "".join(rows)
    sentence = (
        "2 node events with civil times, where jobs have seconds since 1970, or the other way round: "
        "times may be hours off"
    )
    directory = dump(events=events)
    assert lines_with(directory, "civil") == [sentence]
    assert sentence in map(str, accounting_check.of_directory(directory).findings)
    civil = {name: "2026-11-18T12:06:40" for name in ("Submit", "Eligible", "Start", "End")}
    assert len(lines_with(dump(civil), "times of some rows are civil times, and of others seconds")) == 1
