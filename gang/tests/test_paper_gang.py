"""`topolane paper gang`: what is counted is what the words say, and the command prints and draws all of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane.cli import cli
from topolane_gang.study import gang, gang_causes, gang_judged, gang_real, gang_simulated, gang_studies
from topolane_gang.study.gang import Done, Play, PlayedJob, PlayOutcome
from topolane_gang.study.gang_causes import Other
from topolane_gang.study.gang_programs import Barrier, Coevp, Independent, ProgramRun
from topolane_gang.study.gang_studies import PolicyMix

TWO = PlayedJob("two", ProgramRun(Independent(0.1), iterations=3), 2)


def test_a_lag_is_counted_from_the_median_of_the_others() -> None:
    """Of three threads that end an iteration at 1.0, 1.1 and 1.4 s, the last lags 0.35 s behind the median of the
    other two, the first is 0.25 s ahead of theirs."""
    assert gang_studies.lags([[1.0], [1.1], [1.4]]) == pytest.approx([-0.25, -0.1, 0.35])


def test_only_iterations_that_all_have_done_are_compared() -> None:
    """A thread's iteration that another has not reached is not compared; nor is that of a lone thread."""
    assert gang_studies.lags([[1.0, 2.0, 3.0], [1.0, 2.3]]) == pytest.approx([0.0, 0.0, -0.3, 0.3])
    assert gang_studies.lags([[1.0, 2.0]]) == []
    assert gang_studies.lags([]) == []


def test_late_is_more_than_an_iteration_after_the_others() -> None:
    """0.1 s is an iteration: 0.09 s behind is not late, 0.15 s is; ahead is never late. Jobs are not compared with
    each other."""
    in_step = Done(TWO, [[0.1, 0.2, 0.3], [0.1, 0.29, 0.39]])
    behind = Done(TWO, [[5.1, 5.2, 5.3], [5.1, 5.35, 5.45]])
    found = gang_studies.even("free", [in_step, behind])
    assert (found.iterations, found.late) == (12, 2)
    assert found.worst == pytest.approx(0.15)
    assert found.share == pytest.approx(2 / 12)


def test_a_fair_half_is_half_of_what_the_job_does_alone() -> None:
    """Alone 100 iterations a second: 40 with another job are 80 % of a fair half. What ends while the jobs settle,
    or after the play, counts nowhere."""

    def ticking(job: PlayedJob, rate: float) -> Done:
        return Done(job, [[tick / rate for tick in range(1, int(rate * 20))]])

    plays = gang_studies.coupled_plays(2, 10.0)
    rates = {"batch": (100, 0.1), "free": (40, 30), "gang": (50, 49), "adaptive": (50, 50)}
    played = [
        PlayOutcome(
            [ticking(*each) for each in zip(play.jobs, rates[play.policy] if len(play.jobs) == 2 else (100,))]
        )
        for play in plays
    ]
    found = gang_studies.coupled(plays, played)
    assert [(one.interval, one.policy) for one in found] == [
        (interval, policy) for interval in gang.INTERVALS for policy in gang.POLICIES
    ]
    for one in found:
        assert one.alone == pytest.approx(100, rel=0.01)
        assert one.shares == pytest.approx([rate / 50 for rate in rates[one.policy]], abs=0.01)


def test_run_time_counts_from_arrival_and_is_unknown_where_a_job_has_not_ended() -> None:
    """A job that comes at 2 s, begins at 5 s and ends at 6 s has run 1 s and was there 4 s. A mean over a job that
    has not ended is no mean."""
    job = PlayedJob("late", ProgramRun(Independent(0.1), iterations=1), 1, arrival=2.0)
    ended, never = Done(job, [[6.0]], 5.0, 6.0), Done(job, [], None, None)
    assert (ended.turnaround, ended.running) == (4.0, 1.0)
    found = gang_studies.mixed("free", [ended, ended])
    assert (found.turnaround, found.running, found.last) == (4.0, 1.0, 6.0)
    broken = gang_studies.mixed("adaptive", [ended, never])
    assert (broken.turnaround, broken.last) == (None, None)
    twice = gang_studies.mixed("free", [ended, Done(job, [[8.0]], 5.0, 8.0)])
    assert (twice.turnaround, twice.each) == (5.0, (5.0,))


def mix(what: str, **seconds: tuple[float | None, float | None]) -> Other:
    """A mix with the mean run time and the last end under each policy."""
    under = [PolicyMix(policy, mean, None, last, ()) for policy, (mean, last) in seconds.items()]
    return Other(what, 16, tuple(under))


def test_batch_is_the_worst_by_one_measure_and_not_by_the_other() -> None:
    """Each measure is judged by itself. A job that has not ended takes longer than all that have."""
    found = mix("m", batch=(7.0, 11.0), free=(6.0, 6.5), gang=(8.0, 8.5))
    assert [row.side for row in gang_judged.mix_rows(found)] == [False, True, True, True]
    sooner = mix("m", batch=(7.0, 11.0), free=(6.0, 6.5), gang=(5.0, 6.3))
    assert [row.side for row in gang_judged.mix_rows(sooner)] == [True, False, True, True]
    never = mix("m", batch=(7.0, 11.0), free=(6.0, 6.5), gang=(None, None))
    assert [row.side for row in gang_judged.mix_rows(never)] == [False, True, False, True]
    assert {row.given for row in gang_judged.mix_rows(found, "fitted")} == {"fitted"}


@pytest.mark.parametrize(
    ("credit", "ganged", "sides"),
    [
        (0.2, 0.05, [True, True]),
        (0.2, 0.1, [True, False]),
        (0.02, 0.0, [False, True]),
        (0.0, 0.0, [False, False]),
    ],
)
def test_gang_has_far_fewer_late_iterations_than_credit(
    credit: float, ganged: float, sides: list[bool]
) -> None:
    """Under half of credit's; where credit has none there is nothing that gang could have fewer of."""
    assert [row.side for row in gang_judged.out_of_step("here", credit, ganged)] == sides


@pytest.mark.parametrize("name", gang.OTHER_MIXES)
def test_jobs_of_a_mix_are_as_long_as_it_says(name: str) -> None:
    """Steps, barriers and iterations of a job add up to its share of the length, within half of one of them."""
    mix = gang.OTHER_MIXES[name]
    for job, length in zip(mix.jobs(4, 12.0), mix.lengths):
        work = job.run.workload
        if isinstance(work, Coevp):
            each = work.coarse + work.tasks / 4 * work.fine + work.wait
        else:
            each = work.interval if isinstance(work, Barrier) else work.iteration
        assert (job.run.iterations or 0) * each == pytest.approx(
            2 * length * gang.LENGTH, abs=each / 2 + 1e-9
        )


def test_simulated_plays_do_all_that_was_asked_for() -> None:
    """Every job of the mix ends, with all iterations of all its threads, under every policy; a job alone begins when
    it comes."""
    for play in gang_studies.mixed_plays(4, 1.0):
        for one in gang_simulated.once(gang_simulated.PlayTask(4, play), seed=0).done:
            assert one.finished is not None and one.began is not None
            assert one.job.arrival <= one.began < one.finished
            assert {len(ends) for ends in one.ends} == {one.job.run.iterations}
    alone = Play(
        "free", (PlayedJob("alone", ProgramRun(Independent(0.1), iterations=5), 4, arrival=1.0),), 10.0
    )
    (one,) = gang_simulated.once(gang_simulated.PlayTask(4, alone, trace=True), seed=0).done
    assert one.began == pytest.approx(1.0, abs=1e-3)
    assert one.turnaround == pytest.approx(0.5, rel=0.01)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> gang_real.Real:
    if os.geteuid() != 0:
        pytest.skip("needs root, for the agent's control groups")
    try:
        return gang_real.Real(tmp_path_factory.mktemp("real"))
    except gang_real.CannotRun as unable:
        pytest.skip(f"real cores: {unable}")


@pytest.mark.parametrize("policy", gang.POLICIES)
def test_real_plays_log_all_jobs(policy: str, real: gang_real.Real) -> None:
    """Threads and MPI ranks run to their ends on this machine's cores under the agent, and were on these cores only;
    who came second under batch began after the first had ended."""
    cores = len(real.cores)
    run = ProgramRun(Independent(0.01), iterations=10)
    jobs = [PlayedJob("threads", run, cores), PlayedJob("also", run, cores)]
    if real.mpi is not None:
        jobs.append(PlayedJob("ranks", ProgramRun(Barrier(0.001), iterations=50), cores, ranks=True))
    played = real.play(Play(policy, tuple(jobs), 60.0), trace=True)
    for one in played.done:
        assert one.finished is not None, one.job.name
        assert [len(ends) for ends in one.ends] == [one.job.run.iterations] * cores
    assert {spell.job for spell in played.spells} == set(range(len(jobs)))
    assert all(0 <= spell.core < cores for spell in played.spells)
    if policy == "batch":
        first, second = played.done[:2]
        assert first.finished is not None and second.began is not None
        assert second.began >= first.finished


def command(*words: str) -> str:
    done = CliRunner().invoke(cli, ["paper", "gang", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "SIMULATED_CORES", (4,))
    monkeypatch.setattr(gang_causes, "CORES", 4)
    monkeypatch.setattr(gang, "SEEDS", 1)


@pytest.mark.usefixtures("small")
def test_the_command_prints_every_table_and_every_claim(tmp_path: Path) -> None:
    """On four simulated cores: all tables, with every policy; and the poster's claims in rows, each given with a reason or tested.
    The picture is drawn where a directory is given."""
    found = json.loads(command("--simulated", "--seconds", "0.5", "--json", "--out", str(tmp_path / "out")))
    assert set(found["tables"]) == {"even", "coupled", "mix", "causes", "mixes"}
    for name in ("even", "mix"):
        assert [line["policy"] for line in found["tables"][name]] == list(gang.POLICIES)
    assert len(found["tables"]["coupled"]) == len(gang.INTERVALS)
    rows = found["rows"]
    assert len({row["what"] for row in rows}) == len(rows) == 2 + 2 * len(gang_causes.HOST) + 8
    assert all(row["given"] or row["side"] is not None for row in rows)
    tested = {row["what"].partition("cores, ")[2].partition(":")[0] for row in rows if not row["given"]}
    assert tested == {
        "three equal CoEVP-like jobs",
        *(f"with work of the host, {share:.0%} of every core" for share in gang_causes.HOST),
    }
    picture = (tmp_path / "out" / "gang-timeline.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


@pytest.mark.usefixtures("small")
def test_where_the_agent_cannot_run_the_simulated_part_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one core there is no gang: the real part says so in a sentence, and the tables are of simulated cores."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    output = command("--seconds", "0.5")
    assert "not measured on real cores: this process may use one core only: there is no gang of one" in output
    assert "4 simulated" in output
    assert not re.search(r"\d real", output)


def test_bad_options_are_refused() -> None:
    for words in (["--seconds", "0.1"], ["--seconds", "nan"], ["--seconds", "x"]):
        assert CliRunner().invoke(cli, ["paper", "gang", *words]).exit_code == 2
