"""`topolane workload check` names each fault of a log in one line with a count: synthetic dumps, one for each fault."""

from __future__ import annotations

import json

import pytest

HEADER = "JobIDRaw;JobID;Cluster;Submit;Eligible;Start;End;ElapsedRaw;State;TimelimitRaw;NNodes;Partition;QOS;Account;User;NodeList;Restarts"
T = 1_795_000_000
SOUND = {
    "JobIDRaw": 1,
    "Cluster": "hex",
    "Submit": T,
    "Eligible": T,
    "Start": T + 100,
    "End": T + 700,
    "ElapsedRaw": 600,
    "State": "COMPLETED",
    "TimelimitRaw": 60,
    "NNodes": 2,
    "Partition": "batch",
    "QOS": "normal",
    "Account": "physics",
    "User": "alice",
    "NodeList": "n[1-2]",
    "Restarts": 0,
}


def jobs(*changes):
    """What sacct prints: a sound run and others that differ from it."""
    rows = [
        SOUND,
        *({**SOUND, "JobIDRaw": number, **change} for number, change in enumerate(changes, start=2)),
    ]
    for row in rows:
        row.setdefault("JobID", row["JobIDRaw"])
    return "".join(
        line + "\n"
        for line in [
            HEADER,
            *(";".join(str(row.get(name, "")) for name in HEADER.split(";")) for row in rows),
        ]
    )


FILES = {
    "partitions.txt": "PartitionName=batch OverSubscribe=EXCLUSIVE\n",
    "config.txt": "ClusterName = hex\nSelectType = select/cons_tres\n",
    "qos.txt": "Name|Priority\nnormal|0\n",
    "assoc.txt": "Cluster|Account|User\nhex|physics|alice\n",
    "events.txt": "Cluster|NodeName|TimeStart|TimeEnd|State\n",
    "reservations.txt": "Cluster|Name|TimeStart|TimeEnd|NodeName\n",
    "reservations-now.txt": "No reservations in the system\n",
    "licenses.txt": "LicenseName=solver Total=3 Used=0 Free=3 Reserved=0 Remote=no\n",
}


@pytest.fixture
def check(topolane):
    """What the command says about a directory with these jobs, and with other files in the place of sound ones."""

    def check(text, *arguments, **others):
        directory = topolane.directory / "dump"
        directory.mkdir(exist_ok=True)
        changed = FILES | {f"{name}.txt": content for name, content in others.items()}
        for name, content in (changed | {"jobs.txt": text}).items():
            if content is not None:
                (directory / name).write_text(content)
        done = topolane.run("workload", "check", "dump", *arguments)
        is_sound = "nothing wrong was found" in done.stdout or '"findings": []' in done.stdout
        assert (done.returncode, done.stderr) == (0 if is_sound else 1, "")
        return done.stdout.splitlines()

    return check


def test_nothing_is_wrong_with_a_sound_log(check):
    """Jobs that wait, run, never started or were held are no faults."""
    others = (
        {"Start": "Unknown", "End": "Unknown", "State": "PENDING"},
        {"End": "Unknown", "State": "RUNNING"},
        {"Start": "Unknown", "State": "CANCELLED by 1001"},
        {"Eligible": T + 50},
    )
    assert check(jobs(*others)) == ["dump: 2 runs that can be replayed", "nothing wrong was found"]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"Submit": "Unknown"}, "skipped: 1 without a time of submission: a purge has cut them off"),
        ({"End": T + 50, "ElapsedRaw": ""}, "skipped: 1 ended before the start: the clock jumped"),
        (
            {"ElapsedRaw": 3000},
            "1 run whose End - Start is not the run time: the clock jumped; ElapsedRaw is used",
        ),
        (
            {"Submit": T + 300},
            "1 run started before submission: the clock jumped; submission is moved to the start",
        ),
        ({"End": "Unknown"}, "skipped: 1 without an end, though the state says that there was one"),
        (
            {
                "Submit": T - 90_000,
                "Eligible": T - 90_000,
                "Start": T - 80_000,
                "End": "Unknown",
                "State": "RUNNING",
            },
            "skipped: 1 without an end, and past the time limit: see sacctmgr show runawayjobs",
        ),
        (
            {"Restarts": 2},
            "2 runs missing, of jobs that ran several times: purged, too early, or sacct without --duplicates",
        ),
        (
            {"JobIDRaw": "7.batch", "JobID": "7.batch"},
            "1 run missing, of which only steps are there: a purge has cut them off",
        ),
        (
            {"Start": "Unknown", "NodeList": ""},
            "skipped: 1 without a start, though the state says that there was one",
        ),
        (
            {"End": T + 3800, "ElapsedRaw": 3700, "State": "TIMEOUT"},
            "1 run longer than the walltime by over a minute: a replay ends it at the walltime",
        ),
        ({"Account": "gone"}, "1 run of an account that is gone"),
        ({"User": "bob"}, "1 run of a user who is gone from the account"),
        ({"QOS": "former"}, "1 run with a QOS that was deleted or renamed"),
        ({"JobIDRaw": 1}, "skipped: 1 a second row of the same run"),
    ],
)
def test_each_fault_is_one_line(check, row, line):
    assert check(jobs(row))[1:] == [line]


def test_a_qos_renamed_in_the_middle_is_counted_by_its_former_name(check):
    """Slurm keeps the name that a job had; the list has only the new one."""
    said = check(
        jobs({"QOS": "big"}, {"QOS": "big"}, {"QOS": "large"}), qos="Name|Priority\nnormal|0\nlarge|0\n"
    )
    assert said[1:] == ["2 runs with a QOS that was deleted or renamed"]


def test_two_clusters_in_one_dump_are_distinguished(check):
    """Each fault is counted for its cluster. Job 2 of oct is another job than job 2 of hex would be."""
    said = check(
        jobs({"Cluster": "oct", "End": "Unknown"}, {}),
        assoc="Cluster|Account|User\nhex|physics|alice\noct|art|x\n",
    )
    assert said[:-1] == [
        "dump: 2 runs that can be replayed",
        "1 row of other clusters than hex (oct 1): import one with --cluster",
        "oct: skipped: 1 without an end, though the state says that there was one",
    ]
    assert said[-1].startswith(
        "an import with --cluster 'oct' is refused: dump/jobs.txt: no job that ran and ended"
    )


def test_the_lines_are_those_of_the_import(check, topolane):
    """Check and import share their counters."""
    text = jobs({"Account": "gone"}, {"End": "Unknown"}, {"ElapsedRaw": 3000})
    lines = check(text)[1:]
    assert len(lines) == 3
    imported = topolane("workload", "import", "dump", "--out", "log.csv").splitlines()
    assert set(lines) <= set(imported)


def test_faults_of_the_other_files_are_those_of_the_import(check, topolane):
    """Partitions that are gone, licences without a count, events without times, the configuration of another cluster."""
    text = jobs({"Partition": "gone"})
    lines = check(
        text,
        config="ClusterName = oct\nSelectType = select/cons_tres\n",
        events=FILES["events.txt"] + f"hex|n1|Unknown|{T}|DOWN\nhex|n1|{T}|{T}|DRAIN\nhex||{T}|Unknown|\n",
    )
    assert lines == [
        "dump: 2 runs that can be replayed",
        "2 runs of cluster hex, where config.txt is of oct",
        "2 node events without a beginning, or without an end after it: skipped",
        "1 run in a partition that partitions.txt does not have",
    ]
    imported = topolane("workload", "import", "dump", "--out", "log.csv").splitlines()
    assert set(lines[1:]) <= set(imported)


def test_what_cannot_be_checked_is_reported(check):
    assert check(jobs({}), qos=None)[1:] == [
        "no qos.txt: not known is which jobs have a QOS that was deleted or renamed",
        "nothing wrong was found",
    ]


def test_json_has_a_count_for_each_fault(check):
    found = json.loads("\n".join(check(jobs({"Account": "gone"}, {"End": "Unknown"}), "--json")))
    assert (found["runs"], found["unknown"]) == (2, [])
    assert [(each["count"], each["what"], each["is_left_out"]) for each in found["findings"]] == [
        (1, "without an end, though the state says that there was one", True),
        (1, "of an account that is gone", False),
    ]


def test_a_log_is_checked_as_it_stands(topolane, write):
    """SWF: job 2 has no wait, job 3 runs past its time. The output of sacct alone is checked like that of a directory."""
    record = "{} 0 {} {} 1 -1 -1 1 60 -1 1 1 1 -1 -1 1 -1 -1\n"
    write("log.swf", record.format(1, 5, 60) + record.format(2, -1, 60) + record.format(3, 5, 500))
    assert topolane("workload", "check", "log.swf", code=1).splitlines() == [
        "log.swf: 3 runs that can be replayed",
        "1 job without a recorded start, where others have one",
        "1 job ran over a minute past the walltime, at which a replay ends a job",
        (
            "the header does not give both MaxProcs and MaxNodes: 1 core per node is assumed, "
            "so each processor of a job is a node (--cores-per-node)"
        ),
    ]
    write("sacct.txt", jobs({"End": "Unknown"}).replace(";", "|"))
    assert "skipped: 1 without an end" in topolane("workload", "check", "sacct.txt", code=1)


def test_what_is_no_log_is_refused(topolane, write):
    (topolane.directory / "empty").mkdir()
    topolane.refused("workload", "check", "empty", says="empty: no jobs.txt")
    write("noise.txt", b"\xff\xfe\x00")
    topolane.refused("workload", "check", "noise.txt", says="noise.txt: not a log known here")
    topolane.refused("workload", "check", "nowhere.swf", says="nowhere.swf: there is no such file")
