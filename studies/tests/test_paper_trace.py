"""`topolane paper sites --trace`: a log's submissions become programs, and are played on several sites."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import InputError
from topolane.cli import cli
from topolane_studies import sites, sites_cloud, sites_hours, sites_smpi, sites_trace
from topolane_studies.sites import SitesProgram, Wan
from topolane_studies.sites_arrivals import ArrivalsScenario, ProgramArrival
from topolane_studies.sites_cloud import KnownProgram, SitesLayout
from topolane_studies.sites_trace import Submitted

THREE = SitesLayout(3, 20)


def swf(folder: Path, jobs: list[tuple[int, int, int]]) -> str:
    """A log of (submission, run time, processors)."""
    log = folder / "log.swf"
    lines = [
        f"{number} {at} 0 {run} {n} -1 -1 {n} {run} -1 1 1 1 1 1 1 -1 -1"
        for number, (at, run, n) in enumerate(jobs)
    ]
    log.write_text("\n".join(lines) + "\n")
    return str(log)


def test_the_first_jobs_that_ran_are_read(tmp_path: Path) -> None:
    """In the order of submission, from the first one on; one that never ran is skipped; two at least."""
    log = swf(tmp_path, [(500, 60, 8), (100, 0, 4), (200, 30, 2), (900, 10, 1)])
    assert sites_trace.read(log, 2, None) == [Submitted(0.0, 2, 30.0), Submitted(300.0, 8, 60.0)]
    with pytest.raises(InputError, match=r"log\.swf: no two jobs that ran"):
        sites_trace.read(log, 1, None)


def test_a_job_is_a_kernel_on_the_most_ranks_that_fit() -> None:
    """No more ranks than nodes, nor than 64; fewer only where the kernel does not run on more; the same seed draws
    the same kernels, and all kernels come."""
    wide = [Submitted(0.0, nodes, 60.0) for nodes in range(2, 200)]
    drawn = [sites_trace.kernel_of(number, each, 1) for number, each in enumerate(wide)]
    assert drawn == [sites_trace.kernel_of(number, each, 1) for number, each in enumerate(wide)]
    assert {job.kernel for job in drawn if job} == set(sites.KERNELS)
    for each, job in zip(wide, drawn):
        if job is None:
            assert each.nodes < 4
            continue
        allowed = sites_trace.SQUARES if job.kernel == "bt" else sites_trace.RANKS
        assert job.ranks == max(ranks for ranks in allowed if ranks <= each.nodes)
    assert all(sites_trace.kernel_of(number, Submitted(0.0, 1, 1.0), 1) is None for number in range(20))


def known() -> dict[SitesProgram, KnownProgram]:
    """Programs that send much and little."""
    rates = {"cg": (50.0, 2e7), "ep": (0.1, 10.0)}
    found = {}
    for kernel in sites.KERNELS:
        turns, sent = rates.get(kernel, (5.0, 5e6))
        for ranks in sites_trace.SQUARES if kernel == "bt" else sites_trace.RANKS:
            found[SitesProgram(kernel, ranks)] = KnownProgram(
                SitesProgram(kernel, ranks), 1.0, 50.0, turns, sent, turns, sent
            )
    return found


def log(jobs: int = 60) -> list[Submitted]:
    """A job every minute, of 1 to 64 nodes and up to an hour."""
    return [Submitted(60.0 * n, 1 + 37 * n % 64, 60.0 + 617 * n % 3600) for n in range(jobs)]


def scenario(policy: str, layout: SitesLayout = THREE) -> ArrivalsScenario:
    coming = sites_trace.arrivals(log(), 1, known())
    programs = (*known().values(), sites_trace.SILENT)
    extra = (*(0.5 for _ in known()), 0.0)
    return ArrivalsScenario(policy, 1, programs, extra, len(coming), Wan(), layout, sites_trace.TICK, coming)


def test_the_hosts_are_those_that_the_log_keeps_busy() -> None:
    """Rank-seconds over the host-seconds until the last submission are 90 %, up to a host a site; there is always
    room for the widest program."""
    coming = sites_trace.arrivals(log(), 1, known())
    work = sum(sites_trace.work(each) for each in coming)
    for count in (2, 3, 10):
        layout = sites_trace.layout(coming, count)
        assert layout.sites == count
        least = work / (coming[-1].at * sites_trace.LOAD)
        assert least <= layout.sites * layout.hosts < least + count
    idle = [each for each in coming if each.program.job.ranks == 64][:1] + list(coming[-1:])
    assert sites_trace.layout([dataclasses.replace(each, length=1e-6) for each in idle], 2).hosts == 32


@pytest.mark.parametrize("policy", sites_trace.policies())
def test_a_log_is_played_to_its_end(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At no moment has a host two guests; every program ends, none sooner than on one site, or is never placed;
    `stay` moves no guest."""
    settle = sites_hours.HourlySites.set_speeds

    def checked(cloud: sites_hours.HourlySites) -> None:
        hosts = [host for running in cloud.running for host in running.hosts]
        assert len(hosts) == len(set(hosts)) and max(hosts, default=0) < THREE.sites * THREE.hosts
        settle(cloud)

    monkeypatch.setattr(sites_hours.HourlySites, "set_speeds", checked)
    cloud = sites_hours.HourlySites(scenario(policy))
    moves = cloud.played().moves
    assert len(cloud.ended) + len(cloud.refused) == 60
    assert all(end - start >= arrival.alone * (1 - 1e-9) for arrival, start, end in cloud.ended)
    assert all(start >= arrival.at for arrival, start, _ in cloud.ended)
    assert policy != "stay" or moves == 0


def test_a_program_that_no_site_holds_is_refused_by_a_policy_of_one_site() -> None:
    """`make-room` puts a program onto one site or none: wider ones are counted as never placed, and the others go
    on. Policies that spread programs refuse only those that all sites together do not hold."""
    ranks = [each.program.job.ranks for each in scenario("stay").log]
    on_one, on_all = (sum(n > hosts for n in ranks) for hosts in (THREE.hosts, THREE.hosts * THREE.sites))
    assert sites_trace.play(scenario("make-room")).refused == on_one > on_all > 0
    assert sites_trace.play(scenario("inter-site-traffic")).refused == on_all


def test_programs_that_no_site_holds_have_no_run_time() -> None:
    """Two programs of two ranks on sites of one host, under a policy of one site: both are never placed, and nothing is a mean of
    no runs."""
    wide = KnownProgram(SitesProgram("cg", 2), 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    coming = tuple(ProgramArrival(wide, at, 600.0) for at in (0.0, 60.0))
    one = ArrivalsScenario(
        "make-room", 1, (wide,), (0.0,), 2, Wan(), SitesLayout(2, 1), sites_trace.TICK, coming
    )
    outcome = sites_trace.play(one)
    assert (outcome.refused, outcome.stretch, outcome.hours) == (2, None, None)
    mean = sites_trace.mean([outcome], 2, "make-room")
    assert mean["refused"] == 2 and math.isnan(mean["stretch"])


def test_work_and_throughput_count_until_the_last_submission() -> None:
    """Two programs of one rank, of 600 s and 7,200 s, the second an hour after the first: by then one has ended, and
    600 of the 3,600 seconds of each host are work on one of them."""
    coming = sites_trace.arrivals([Submitted(0.0, 1, 600.0), Submitted(3600.0, 1, 7200.0)], 1, {})
    one = ArrivalsScenario(
        "stay", 1, (sites_trace.SILENT,), (0.0,), 2, Wan(), SitesLayout(2, 2), sites_trace.TICK, coming
    )
    outcome = sites_trace.play(one)
    assert (outcome.throughput, outcome.stretch, outcome.moves) == (pytest.approx(1.0), pytest.approx(1.0), 0)
    assert outcome.work == pytest.approx(600 / 3600 / 4)
    assert outcome.hours == pytest.approx((600 + 7200) / 2 / 3600)


def test_each_two_sites_have_a_link() -> None:
    """What crosses a link is what the guests at its ends exchange, if all send to all: of halves all of it."""
    assert sites_cloud.links((0, 1, 20, 21), THREE) == {(0, 1): 1.0}
    assert sites_cloud.links((0, 20, 40), THREE) == {
        pair: pytest.approx(4 / 9) for pair in [(0, 1), (0, 2), (1, 2)]
    }
    assert sites_cloud.links((40, 41), THREE) == {}


def test_guests_stay_on_their_sites_where_they_can() -> None:
    """Of two guests on site 0 and one on site 1, hosts on 1, 1 and 0 move one."""
    hosts = sites_cloud.keeping(THREE, (5, 20, 21), (0, 1, 20))
    assert sorted(hosts) == [5, 20, 21]
    assert sites_cloud.moved((0, 1, 20), hosts, THREE) == 1
    assert sites_cloud.keeping(THREE, (0, 1, 2), ()) == (0, 1, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace", "LOG", "--sites", "11"], "11 is not in the range 2<=x<=10"),
        (["--sites", "4"], "give --trace FILE"),
        (["--trace", "LOG", "--out", "DIR"], "cannot be given with --trace"),
        (["--trace", "missing.swf"], "missing.swf"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    places = {"LOG": swf(tmp_path, [(0, 60, 4), (60, 60, 4)]), "DIR": str(tmp_path / "out")}
    done = CliRunner().invoke(cli, ["paper", "sites", *(places.get(each, each) for each in arguments)])
    assert done.exit_code != 0
    assert said in f"{done.output}{done.exception}"
    assert not (tmp_path / "out").exists()


def test_a_log_without_simgrid_is_not_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    trace = swf(tmp_path, [(0, 60, 4), (60, 60, 4)])
    done = CliRunner().invoke(cli, ["paper", "sites", "--trace", trace, "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["outcomes"] == [] and "smpicc" in answer["not_measured"]


def test_the_command_plays_a_log_under_every_policy(tmp_path: Path) -> None:
    """For every number of sites, policy and seed an outcome, in JSON and as a table with the rule."""
    try:
        sites_smpi.build(tmp_path)
    except sites_smpi.Missing as missing:
        pytest.skip(f"SimGrid: {missing}")
    trace = swf(tmp_path, [(60 * n, 900 + 60 * n, 2 + n) for n in range(6)])
    arguments = [
        "paper",
        "sites",
        "--trace",
        trace,
        "--sites",
        "2",
        "--sites",
        "3",
        "--seeds",
        "1",
        "--jobs",
        "2",
    ]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["jobs"] == 6 and answer["rule"] == sites_trace.RULE
    found = [(each["sites"], each["policy"]) for each in answer["outcomes"]]
    assert found == [(count, policy) for count in (2, 3) for policy in sites_trace.policies()]
    assert all(each["stretch"] >= 1 - 1e-9 and 0 < each["work"] <= 1 for each in answer["outcomes"])
