"""Nice values that the import infers from recorded priorities by Slurm's formula, on synthetic records whose nice values are known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from topolane.slurm import accounting_nice
from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun

USERS = [("physics", "games"), ("physics", "lp"), ("biology", "mail"), ("biology", "news")]
STEP = 500
"""Points of priority between two ranks of fair share: 2,000 over four users."""
CONFIG = {
    "begin": 0,
    "priority": {
        "weight_age": 20000,
        "weight_fair_share": 4 * STEP,
        "weight_job_size": 1000,
        "weight_partition": 1000,
        "weight_qos": 1000,
        "period": 60,
        "favor_small": False,
    },
    "processors_per_node": 16,
    "partitions": [
        {"name": "batch", "nodes": "n[1-66]", "factor": 1},
        {"name": "debug", "nodes": "n[55-72]", "factor": 10},
    ],
    "qos": [{"name": "normal", "priority": 0}, {"name": "short", "priority": 100}],
    "associations": [
        *({"account": account, "user": ""} for account in ("physics", "biology")),
        *({"account": account, "user": user} for account, user in USERS),
    ],
}


def priority(nodes, partition, qos, rank, nice):
    """What Slurm records, with 72 nodes of 16 processors and one requested processor for each node."""
    size = (nodes / 72 + nodes / 1152) / 2 * 1000
    parts = {"batch": 100.0, "debug": 1000.0}[partition] + {"normal": 0.0, "short": 1000.0}[qos]
    return max(math.floor(rank * STEP + size + parts - nice), 1)


def job(number, second, rank, nice=0, nodes=1, partition="batch", qos="normal", whose=USERS[0], **others):
    """A job submitted in this second while its user has this rank."""
    run = AccountedRun(
        job=number,
        shown=str(number),
        submit=int(second),
        eligible=int(second),
        start=5000,
        run=10,
        walltime=60,
        nodes=nodes,
        share=None,
        hosts="",
        state="COMPLETED",
        partition=partition,
        qos=qos,
        account=whose[0],
        user=whose[1],
        priority=str(priority(nodes, partition, qos, rank, nice)),
        reason="",
        reservation="",
        processors=nodes,
        licenses="",
    )
    return run._replace(**others)


def imported(runs, config=CONFIG):
    """By number of the job, the nice values that the import infers."""
    found = accounting_nice.of(AccountedJobs(runs=list(runs)), config, 0)
    return {number: nice for (number, _), nice in found.items()}


def without(key, value=None, config=CONFIG):
    return {name: each for name, each in config.items() if name != key} | (
        {} if value is None else {key: value}
    )


def test_jobs_of_a_user_are_compared_whatever_they_ask_for():
    """Size, partition and QOS are known, so what is missing between two jobs without a nice value is a nice value."""
    jobs = [
        job(1, 61, 2),
        job(2, 65, 2, nice=130, nodes=7, qos="short"),
        job(3, 70, 2, nice=70, nodes=4, partition="debug"),
        job(4, 75, 2, nodes=7, partition="debug"),
        job(5, 76, 2, nodes=4, qos="short"),
        job(6, 76, 3, nodes=7, qos="short", whose=USERS[1]),
        job(7, 76, 3, nodes=4, partition="debug", whose=USERS[1]),
    ]
    assert imported(jobs) == {2: 130, 3: 70}


def test_a_job_alone_in_its_turn_has_no_nice_value():
    """Its fair share is not known. Nor is it between two turns with one rank: it may have changed and changed back."""
    jobs = [job(1, 61, 2), job(2, 110, 2), job(3, 130, 3, nice=70), job(4, 181, 2), job(5, 200, 2)]
    assert imported(jobs) == {}


def test_a_whole_number_of_ranks_is_no_nice_value():
    """A priority that fits another rank may be of a job that came before the computation."""
    assert imported([job(1, 61, 3), job(2, 62, 3, nice=STEP), job(3, 63, 3, nice=70), job(4, 64, 3)]) == {}


def test_late_in_a_turn_the_last_job_has_the_rank_of_the_one_before_it():
    """Slurm computes priorities once in a turn, late by seconds and never early (_decay_thread in
    priority_multifactor.c), so nothing lies between two jobs in the second half.
    """
    assert imported([job(1, 85, 2), job(2, 95, 2), job(3, 115, 2, nice=70)]) == {3: 70}
    assert imported([job(1, 65, 2), job(2, 75, 2), job(3, 115, 2, nice=70)]) == {}, "one may"


@pytest.mark.parametrize(("certain", "nice"), [(70, {2: 70, 9: 70}), (90, {9: 90})])
def test_a_job_before_or_after_the_others_of_its_turn_has_a_value_that_another_job_has(certain, nice):
    """Slurm computes priorities some time after a turn began, so such a job may be of another rank."""
    others = [job(8, 121, 3), job(9, 122, 3, nice=certain), job(10, 123, 3)]
    assert imported([job(1, 61, 2), job(2, 65, 2, nice=70), *others]) == nice
    assert imported([job(2, 61, 2, nice=70), job(3, 65, 2), *others]) == nice


def test_a_value_that_another_job_has_does_not_count_if_two_of_them_fit():
    """70 with rank 2 and 570 with rank 3 are the same priority."""
    values = [(7, 0), (8, 70), (9, 570), (10, 0), (11, 0)]
    others = [job(number, 120 + number, 3, nice=nice) for number, nice in values]
    assert imported([job(1, 61, 2), job(2, 65, 2, nice=70), *others]) == {8: 70, 9: 570}


def test_jobs_that_came_before_a_late_computation_tell_nothing_of_the_new_rank():
    """Slurm computed the second turn four seconds late. Jobs 3 and 4 have the rank of the first."""
    jobs = [job(1, 61, 2), job(2, 62, 2), job(3, 121, 2), job(4, 122, 2, nice=70)]
    later = [job(5, 125, 4), job(6, 126, 4, nice=90), job(7, 127, 4)]
    assert imported([*jobs, *later]) == {6: 90}


def test_all_tasks_of_an_array_have_the_nice_value_of_its_own_record():
    """The last task keeps the record that Slurm made at the submission. Others get theirs when they start, with an age."""
    tasks = [job(3, 62, 2, nice=40, shown="2_1"), job(2, 62, 2, nice=70, shown="2_2")]
    assert imported([job(1, 61, 2), *tasks, job(4, 63, 2)]) == {2: 70, 3: 70}
    assert imported([job(1, 61, 2), tasks[0], job(4, 63, 2)]) == {}


def test_a_job_alone_of_its_size_may_have_a_nice_value():
    """Most sizes are rare, and one job without a rank does not show that the formula is wrong."""
    assert imported([job(1, 61, 2), job(2, 62, 2, nice=70, nodes=9), job(3, 63, 2)]) == {2: 70}


def test_a_rank_holds_until_the_next_turn_if_that_has_it_too():
    """Between job 2 and job 4 there is one computation of priorities, after job 3 or before it. Job 2 of the first half of a turn
    may have come before another one."""
    later = [job(4, 125, 2), job(5, 126, 2)]
    assert imported([job(1, 91, 2), job(2, 95, 2), job(3, 110, 2, nice=70), *later]) == {3: 70}
    assert imported([job(1, 61, 2), job(2, 65, 2), job(3, 110, 2, nice=70), *later]) == {}


@pytest.mark.parametrize(
    "config",
    [
        without("associations"),
        without("partitions", []),
        without("priority", CONFIG["priority"] | {"weight_fair_share": 8}),  # ranks are two points apart
        without(
            "qos",
            [
                {"name": "normal", "priority": 0},
                {"name": "short", "priority": 90},
                {"name": "gone", "priority": 100},
            ],
        ),
    ],
)
def test_where_the_formula_does_not_hold_only_jobs_that_ask_for_the_same_are_compared(config):
    jobs = [job(1, 61, 2, qos="short"), job(2, 62, 2, nice=70, nodes=7), job(3, 63, 2, qos="short")]
    assert imported(jobs, config) == {}
    assert imported([*jobs, job(4, 64, 2, qos="short", nice=30)], config) == {4: 30}


@pytest.mark.parametrize(("others", "nice"), [(0, {}), (1, {}), (2, {4: 73})])
def test_a_size_is_compared_only_if_ranks_explain_most_jobs_of_it(others, nice):
    """Otherwise what is missing may be due to the size. So it is with partitions and QOS."""
    odd = [job(2, 62, 2, nodes=9, nice=33), job(4, 64, 2, nodes=9, nice=73)]
    plain = [job(number, 60 + number, 2) for number in (1, 5, 6, 7, 8)]
    same = [job(10 + number, 70 + number, 2, nodes=9) for number in range(others + 1)]
    found = imported([*odd, *plain, *same])
    assert {number: found[number] for number in found if number == 4} == nice


@settings(deadline=None)
@given(some.integers(0, 2**32), some.sets(some.integers(1, 1200), min_size=1, max_size=4))
def test_a_nice_value_is_found_exactly_or_not_at_all(seed, values):
    """Ranks change at computations that come up to 20 s late, and jobs ask for anything. No two nice values, nor one and none, are a
    whole number of ranks apart. Only the lowest priority is skipped, which gives a bound."""
    apart = {abs(a - b) % STEP for a in values | {0} for b in values if a != b}
    assume(all(2 <= each <= STEP - 2 for each in apart))
    true, jobs = drawn(random.Random(seed), sorted(values))
    found = {number: nice for number, nice in imported(jobs).items() if jobs[number].priority != "1"}
    assert found == {number: true[number] for number in found}


def drawn(draw, values):
    """The nice values of jobs by number, and the jobs."""
    turns = 8
    late = draw.choice((0.0, 3.0, 20.0))
    computed = [60 * turn + draw.uniform(0, late) for turn in range(turns)]
    ranks = {whose: [draw.randint(1, 4) for _ in computed] for whose in USERS}
    for of_user in ranks.values():
        for turn in range(1, turns):
            of_user[turn] = of_user[turn - 1] if draw.random() < 0.5 else of_user[turn]
    seconds = sorted(draw.uniform(computed[0], 60 * turns) for _ in range(draw.choice((40, 150))))
    true, jobs = [], []
    for number, second in enumerate(seconds):
        whose = draw.choice(USERS)
        rank = ranks[whose][sum(time <= second for time in computed) - 1]
        true.append(draw.choice(values) if draw.random() < 0.2 else 0)
        asks = (
            draw.choice((1, 1, 2, 7)),
            draw.choice(("batch", "batch", "debug")),
            draw.choice(("normal", "short")),
        )
        jobs.append(job(number, second, rank, true[-1], *asks, whose=whose))
    return true, jobs
