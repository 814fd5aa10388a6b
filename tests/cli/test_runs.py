"""`compare` and `simulate`: tables, JSON, and the files they leave behind."""

from __future__ import annotations

import csv
import io
import itertools
import json

import polars
import polars.testing
import pytest
from matplotlib import pyplot
from topolane import _engine

BATSIM = [
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
]
OURS = ["slowdown", "aph", "least_aph", "hop_bytes", "links_shared", "pattern", "contention"]
FACTS = {
    *("policy", "queue", "scenario", "network", "workload", "machine", "nodes", "jobs", "load"),
    *("mean_wait", "mean_wait_by_work", "median_wait", "p95_wait", "wait_by_size"),
    *("utilization", "utilization_while_waiting", "makespan", "mean_slowdown", "mean_turnaround"),
    *("mean_aph", "mean_least_aph", "mean_hop_bytes", "jobs_sharing_links", "fragmentation"),
    *("mean_bandwidth_share", "moves", "searches", "searches_cut_short"),
    *("moved_past_walltime", "killed_at_walltime", "without_walltime", "late_against_log", "left_out"),
}
POLICIES = [name for name, _ in _engine.policies() if name not in ("recorded", "isolated-global")]
"""Those that work on trees without a log."""
ISOLATING = [
    "isolated",
    "isolated-hop-bytes",
    "quiet-neighborhoods",
    "laas",
    "jigsaw",
    "jigsaw-relaxed",
    "dedicated",
]
QUEUES = [name for name, _ in _engine.queues() if name != "recorded"]


def without_nan(text: str):
    """JSON as its standard has it, which knows no NaN."""

    def refuse(constant: str):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_policy_under_every_queue(topolane, toy, log):
    runs = without_nan(
        topolane(
            *("compare", "--machine", toy, "--trace", log, "--jobs", 1, "--json"),
            *("--policies", ",".join(POLICIES), "--queues", ",".join(QUEUES), "--scenarios", "none"),
        )
    )
    assert [(run["policy"], run["queue"]) for run in runs] == list(itertools.product(POLICIES, QUEUES))
    for run in runs:
        assert set(run) == FACTS | {"verdict"}
        assert (run["jobs"], run["left_out"], run["nodes"], run["machine"]) == (40, {}, 16, "toy")
        assert (run["jobs_sharing_links"] == 0) or run["policy"] not in ISOLATING
        assert run["mean_bandwidth_share"] == 1.0
        assert 0 < run["utilization"] <= 1


def test_the_table_has_a_row_for_every_run(topolane, toy, log):
    text = topolane("compare", "--machine", toy, "--trace", log, "--scenarios", "none,20,v1", "--jobs", 2)
    lines = text.splitlines()
    assert "log on toy: 40 jobs, 16 nodes, load 2.77" in lines
    table = lines[lines.index(next(x for x in lines if "───" in x)) + 1 :]
    runs = [line.split() for line in itertools.takewhile(str.strip, table)]
    assert [run[0] for run in runs] == ["first-fit", "slurm-tree", "isolated", "isolated", "isolated"]
    assert [run[1] for run in runs][3:] == ["20", "V1"]
    assert "The same for all: queue easy" in text
    for column in ("mean wait", "APH", "makespan", "share links"):
        assert column in text


def test_options_that_change_nothing_are_named(topolane, toy, log):
    """`--min-bandwidth` and `--defrag` do nothing under policies that give jobs no links; a note says so."""
    common = ("compare", "--machine", toy, "--trace", log, "--jobs", 1, "--scenarios", "none")
    given = ("--min-bandwidth", 0.5, "--defrag", 0.1)
    text = topolane(*common, "--policies", "first-fit,isolated", *given)
    assert "--min-bandwidth changes nothing: no job had dedicated links" in text
    assert "--defrag changes nothing: no job had dedicated links" in text
    assert "changes nothing" not in topolane(*common, "--policies", "first-fit,isolated")
    assert "changes nothing" not in topolane(*common, "--policies", "first-fit,dedicated", *given)


def test_what_is_assumed_of_traffic_is_said(topolane, toy, log):
    """Without a network, a line says what `least-slowdown` assumes of routes and traffic. With one nothing is assumed, and other
    policies look at neither."""
    common = ("compare", "--machine", toy, "--trace", log, "--jobs", 1, "--scenarios", "none", "--policies")
    lines = topolane(*common, "first-fit,least-slowdown").splitlines()
    (line,) = (line for line in lines if "assumed" in line)
    assert all(word in line for word in ("least-slowdown", "default routes", "uniform(messages=4)", "30%"))
    assert line in topolane("simulate", *common[1:5], "--policy", "least-slowdown").splitlines()
    assert "assumed to send" not in topolane(*common, "first-fit")
    network = ("--machine", toy, "--trace", log, "--policy", "least-slowdown", "--network", "congestion")
    assert "assumed to send" not in topolane("simulate", *network)


def test_a_log_without_a_machine_is_replayed_on_cab_with_a_note(topolane, toy, log):
    """A log is replayed on `cab` if no machine is named, and a note says so; with `--machine` there is no note."""
    note = "the machine is cab, because --machine names no other"
    assert note in topolane("simulate", "--trace", log)
    assert note not in topolane("simulate", "--trace", log, "--machine", "cab")
    assert note not in topolane("simulate", "--workload", "cab-aug", "--limit", 10)


def test_scenarios_run_only_where_isolation_is_promised(topolane, toy, log):
    common = ("compare", "--machine", toy, "--trace", log, "--jobs", 1, "--json", "--scenarios", "none,20")
    runs = without_nan(topolane(*common, "--policies", "first-fit, isolated,first-fit"))
    assert [(run["policy"], run["scenario"]) for run in runs] == [
        ("first-fit", "none"),
        ("isolated", "none"),
        ("isolated", "20"),
    ]
    assert runs[2]["makespan"] < runs[1]["makespan"]


def test_jobs_accept_less_than_full_bandwidth_if_the_option_says_so(topolane):
    """With `--min-bandwidth .5` jobs on links of their own have between half and all; without it all; others know no share."""
    common = ("--machine", "fat-tree(radix=8)", "--workload", "exp-8", "--limit", 400, "--json")
    halves = without_nan(topolane("simulate", *common, "--policy", "dedicated", "--min-bandwidth", 0.5))
    assert 0.5 <= halves["mean_bandwidth_share"] < 1.0
    runs = without_nan(
        topolane(
            "compare",
            *common,
            "--policies",
            "first-fit,jigsaw,dedicated",
            "--scenarios",
            "none",
            "--min-bandwidth",
            0.5,
        )
    )
    assert [run["mean_bandwidth_share"] for run in runs] == [1.0, 1.0, halves["mean_bandwidth_share"]]
    assert without_nan(topolane("simulate", *common, "--policy", "dedicated"))["mean_bandwidth_share"] == 1.0


@pytest.mark.parametrize("share", ["0", "-0.5", "1.01", "nan"])
def test_a_share_of_bandwidth_out_of_range_is_refused(topolane, toy, log, share):
    done = topolane.run(
        "simulate", "--machine", toy, "--trace", log, "--policy", "dedicated", "--min-bandwidth", share
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the minimum bandwidth share must be above 0 and at most 1" in done.stderr


@pytest.mark.parametrize("form", ["json", "table"])
def test_simulate_prints_one_run(topolane, toy, log, form):
    common = ("simulate", "--machine", toy, "--trace", log, "--policy", "isolated", "--queue", "fcfs")
    if form == "json":
        facts = without_nan(topolane(*common, "--json"))
        assert set(facts) == FACTS
        assert (facts["policy"], facts["queue"], facts["jobs"]) == ("isolated", "fcfs", 40)
        assert sum(size["jobs"] for size in facts["wait_by_size"]) == 40
        assert set(facts["wait_by_size"][0]) == {"low", "high", "jobs", "mean_wait"}
        assert facts["wait_by_size"][-1]["high"] is None
        return
    text = topolane(*common)
    assert "257 or more" in text and "isolated" in text


def test_what_the_outputs_of_a_run_say(topolane, toy, log):
    printed = topolane(
        *("simulate", "--machine", toy, "--trace", log, "--policy", "hop-bytes"),
        *("--out", "a/b/out", "--parquet", "--png", "--json"),
    )
    out = topolane.directory / "a/b/out"
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    tables = {"jobs.csv", "utilization.csv", "jobs.parquet", "utilization.parquet"}
    assert (
        tables | {"summary.json", "report.html", "figures/mean-wait.svg", "figures/fat-tree-1.png"} <= files
    )
    assert not [name for name in files if name.startswith(".")]
    assert not list((topolane.directory).glob(".*"))
    assert without_nan((out / "summary.json").read_text()) == without_nan(printed)

    text = (out / "jobs.csv").read_text()
    assert text.splitlines()[0].split(",") == BATSIM + OURS
    jobs = rows(text)
    assert sorted(int(job["job_id"]) for job in jobs) == list(range(40))
    for job in jobs:
        submit, start, run, finish, wait, turnaround = (
            float(job[f"{name}_time"])
            for name in ("submission", "starting", "execution", "finish", "waiting", "turnaround")
        )
        assert (submit + wait, start + run, submit + turnaround) == (start, finish, finish)
        assert float(job["stretch"]) == pytest.approx(turnaround / run)
        width = sum(
            int(part.partition("-")[2] or part.partition("-")[0]) - int(part.partition("-")[0]) + 1
            for part in job["allocated_resources"].split()
        )
        assert width == int(job["requested_number_of_resources"])
        assert (job["workload_name"], job["success"], job["final_state"]) == (
            "log",
            "1",
            "COMPLETED_SUCCESSFULLY",
        )

    minutes = rows((out / "utilization.csv").read_text())
    assert list(minutes[0]) == ["time", "busy_nodes", "waiting_jobs", "utilization"]
    assert [int(row["time"]) for row in minutes] == [60 * index for index in range(len(minutes))]
    for row in minutes:
        now = float(row["time"])
        busy = [job for job in jobs if float(job["starting_time"]) <= now < float(job["finish_time"])]
        waiting = [job for job in jobs if float(job["submission_time"]) <= now < float(job["starting_time"])]
        assert float(row["busy_nodes"]) == sum(int(job["requested_number_of_resources"]) for job in busy)
        assert int(row["waiting_jobs"]) == len(waiting)
        assert float(row["utilization"]) == pytest.approx(float(row["busy_nodes"]) / 16, abs=1e-5)

    for table in ("jobs", "utilization"):
        frame = polars.read_parquet(out / f"{table}.parquet")
        again = polars.read_csv(out / f"{table}.csv", schema_overrides=frame.schema)
        # Parquet has all digits, CSV six decimals, and five of the utilisation.
        polars.testing.assert_frame_equal(frame, again, abs_tol=1e-5, rel_tol=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--policy", "dedicated", "--network", "congestion", "--defrag", 0.5),
        ("--failures", "50,0.05", "--seed", 3),
    ],
    ids=["plain", "moved", "interrupted"],
)
def test_evalys_reads_the_jobs(topolane, toy, log, tmp_path, more):
    """evalys reads the jobs of any run, counts the busy nodes at every minute as Topolane does, and draws its Gantt chart."""
    jobset = pytest.importorskip("evalys.jobset", reason="needs evalys")
    topolane("simulate", "--machine", toy, "--trace", log, *more, "--no-report", "--out", "out", "--json")
    written = rows((topolane.directory / "out/jobs.csv").read_text())
    jobs = jobset.JobSet.from_csv(topolane.directory / "out/jobs.csv")
    assert len(jobs.df) == len(written) and str(jobs.res_bounds) == "0-15"
    assert ("COMPLETED_FAILED" in set(jobs.df.final_state)) == ("--failures" in more)
    assert (jobs.df.proc_alloc == jobs.df.requested_number_of_resources).all()
    theirs = jobs.utilisation.load
    for row in rows((topolane.directory / "out/utilization.csv").read_text()):
        assert theirs[theirs.index <= float(row["time"])].iloc[-1] == float(row["busy_nodes"])
    jobs.gantt()
    pyplot.savefig(tmp_path / "gantt.svg")
    pyplot.close("all")


def test_a_walltime_ends_a_job(topolane, toy, write):
    write("two.csv", "id,submit,run,nodes,walltime\n1,0,100,2,60\n2,0,100,2,\n")
    common = ("simulate", "--machine", toy, "--trace", "two.csv", "--out", "out", "--no-report", "--json")
    facts = without_nan(topolane(*common))
    assert (facts["killed_at_walltime"], facts["without_walltime"], facts["makespan"]) == (1, 1, 100)
    jobs = rows((topolane.directory / "out/jobs.csv").read_text())
    assert [(job["success"], job["final_state"], job["execution_time"]) for job in jobs] == [
        ("0", "COMPLETED_WALLTIME_REACHED", "60"),
        ("1", "COMPLETED_SUCCESSFULLY", "100"),
    ]
    assert without_nan(topolane(*common, "--default-walltime", 70))["killed_at_walltime"] == 2


def test_several_runs_have_a_directory_each(topolane, toy, log):
    common = (
        "compare",
        "--machine",
        toy,
        "--trace",
        log,
        "--limit",
        10,
        "--jobs",
        1,
        "--out",
        "out",
        "--no-report",
    )
    printed = without_nan(topolane(*common, "--scenarios", "none,10", "--json"))
    out = topolane.directory / "out"
    assert without_nan((out / "summary.json").read_text()) == printed
    runs = ["first-fit-easy-none", "isolated-easy-10", "isolated-easy-none", "slurm-tree-easy-none"]
    assert sorted(path.name for path in (out / "runs").iterdir()) == runs
    assert all((out / "runs" / run / "jobs.csv").is_file() for run in runs)


def test_a_second_run_replaces_its_own_files_only(topolane, toy, log):
    out = topolane.directory / "out"
    (out / "figures").mkdir(parents=True)
    (out / "runs" / "mine").mkdir(parents=True)
    kept = [out / "notes.txt", out / "figures/mine.svg", out / "runs/mine/data.csv"]
    for path in kept:
        path.write_text("mine")
    both = ("--machine", toy, "--trace", log, "--out", "out")
    topolane("compare", *both, "--jobs", 1, "--parquet", "--no-report")
    topolane(
        "simulate", *both, "--policy", "dedicated", "--network", "congestion", "--parquet", "--defrag", 0.1
    )
    assert all((out / f"{table}.csv").exists() for table in ("links", "job-links", "moves"))
    topolane("simulate", *both, "--policy", "random")
    first = (out / "jobs.csv").read_text()
    topolane("simulate", *both, "--policy", "isolated", "--no-report")
    assert (out / "jobs.csv").read_text() != first
    assert [path.read_text() for path in kept] == ["mine"] * 3
    # No file of an earlier run remains next to the new ones, as if it belonged to them.
    assert sorted(path.name for path in out.iterdir()) == [
        *("figures", "jobs.csv", "notes.txt", "runs", "summary.json", "utilization.csv")
    ]
    assert [path.name for path in (out / "runs").iterdir()] == ["mine"]
    topolane("compare", *both, "--jobs", 1, "--no-report")
    assert not (out / "jobs.csv").exists()


def test_a_report_of_a_comparison(topolane, toy, log):
    common = ("compare", "--machine", toy, "--trace", log, "--policies", "first-fit,isolated", "--jobs", 1)
    text = topolane(*common, "--out", "out", "--at", 0.1)
    assert text.endswith("report: out/report.html\n")
    page = (topolane.directory / "out/report.html").read_text()
    assert "isolated" in page and "<svg" in page


def test_the_same_seed_gives_the_same_files(topolane, toy):
    for seed, out in ((1, "a"), (1, "b"), (2, "c")):
        topolane(
            *("simulate", "--machine", toy, "--workload", "exp-3", "--limit", 50, "--policy", "random"),
            *("--seed", seed, "--out", out, "--no-report", "--json"),
        )
    jobs = [(topolane.directory / out / "jobs.csv").read_bytes() for out in "abc"]
    assert jobs[0] == jobs[1] != jobs[2]


def test_a_workload_of_which_nothing_is_left(topolane, toy, log):
    """If every job is skipped, the command is refused with the reasons: a table of zeros would say nothing."""
    common = ("--machine", toy, "--trace", log, "--nodes-x", 100, "--out", "out")
    says = "log.csv: no job is left to run (skipped: 40 wider than the machine)"
    topolane.refused("simulate", *common, says=says)
    topolane.refused("compare", *common, "--jobs", 1, says=says)
    assert not (topolane.directory / "out").exists()


def test_a_pipe_is_a_log(topolane, toy, log):
    facts = topolane(
        *("simulate", "--machine", toy, "--trace", "/dev/stdin", "--json"), stdin=log.read_bytes()
    )
    assert without_nan(facts)["jobs"] == 40
