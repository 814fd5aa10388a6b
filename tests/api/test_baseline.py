"""How close a replay is to the recorded starts: the measures, what a log says besides, and the likely reasons."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from topolane import workload
from topolane.baseline import details
from topolane.baseline.details import Details
from topolane.baseline.measures import RunArrays, Waits, least_difference, spearman, within
from topolane.baseline.reasons import counted, reasons
from topolane.failures import Failure

HOUR = 3600.0


def runs(*rows: tuple[int, float, float, float, float]) -> RunArrays:
    """Runs of (id, submit, start, run, nodes)."""
    ids, *values = zip(*rows)
    return RunArrays(np.array(ids, np.int64), *(np.array(each, float) for each in values))


def test_equal_values_share_their_ranks() -> None:
    """Ranks of 1, 1, 2 are 1.5, 1.5, 3 and those of 5, 7, 6 are 1, 3, 2: covariance 0, so no correlation."""
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([5.0, 7.0, 6.0])) == pytest.approx(0)
    assert spearman(np.array([1.0, 2.0, 9.0]), np.array([10.0, 20.0, 21.0])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2.0, 9.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    assert math.isnan(spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])))


def test_utilisation_is_the_share_of_nodes_that_runs_hold_in_each_part() -> None:
    """2 of 8 nodes from 0 to 60 and 4 from 50 to 70, in parts of 30 s."""
    held = runs((1, 0, 0, 60, 2), (2, 0, 50, 20, 4)).utilisation(np.array([0.0, 30.0, 60.0, 90.0]), 8)
    assert held.tolist() == pytest.approx([2 / 8, (60 + 40) / (30 * 8), 40 / (30 * 8)])


def test_the_last_run_of_a_job_waits_since_the_first_submission() -> None:
    every = runs((7, 0, 10, 5, 2), (3, 1, 11, 5, 1), (7, 20, 30, 60, 4))
    last = every.last()
    assert [last.ids.tolist(), last.submit.tolist(), last.start.tolist()] == [[3, 7], [1, 0], [11, 30]]
    assert [last.run.tolist(), last.nodes.tolist()] == [[5, 60], [1, 4]]


def test_starts_within_a_time() -> None:
    recorded, replayed = runs((1, 0, 0, 1, 1), (2, 0, 50, 1, 1)), runs((1, 0, 20, 1, 1), (2, 0, 71, 1, 1))
    assert within(recorded, replayed, 20) == 0.5


def test_waits_are_pairs_of_recorded_and_replayed() -> None:
    waits = Waits.of("all", np.array([0.0, 10.0, 20.0]), np.array([0.0, 30.0, 60.0]))
    assert (waits.jobs, waits.mean, waits.median) == (3, (10.0, 30.0), (10.0, 30.0))
    assert waits.p95 == pytest.approx((19.0, 57.0))
    assert waits.rank == pytest.approx(1)
    assert Waits.of("all", np.array([5.0, 5.0]), np.array([1.0, 2.0])).rank is None


def test_errors_that_make_up_for_each_other_count_in_the_least_difference() -> None:
    """The means are the same, but in the first tenth the replay waits 10 s longer and in the second 10 s less."""
    recorded = np.full(100, 50.0)
    replayed = recorded + np.concatenate((np.full(10, 10.0), np.full(10, -10.0), np.zeros(80)))
    assert replayed.mean() == recorded.mean()
    assert least_difference(recorded, replayed) == pytest.approx(2)


@pytest.mark.parametrize("jobs", [1, 7, 23])
def test_the_least_difference_is_at_least_that_of_the_means(jobs: int) -> None:
    drawn = np.random.default_rng(jobs)
    recorded, replayed = drawn.exponential(100, jobs), drawn.exponential(100, jobs)
    assert least_difference(recorded, replayed) >= abs(recorded.mean() - replayed.mean()) - 1e-9


def test_each_job_far_off_has_one_reason() -> None:
    """Too early: reserved, limited, held, nodes down or unknown, in this order. Too late: reserved or unknown."""
    known = [
        Details(is_reserved=True, is_limited=True),
        Details(is_limited=True, is_held=True),
        Details(is_held=True),
        Details(),
        Details(),
        Details(is_held=True, is_limited=True),
        Details(is_reserved=True),
        Details(is_held=True),
    ]
    starts = [5 * HOUR] * 3 + [20 * HOUR, 5 * HOUR, 5 * HOUR, 5 * HOUR, 5 * HOUR]
    others = [0.0, 0.0, 0.0, 15 * HOUR, 0.0, 9 * HOUR, 9 * HOUR, 4 * HOUR]
    recorded = runs(*((id, 0, start, 60, 1) for id, start in enumerate(starts)))
    replayed = runs(*((id, 0, start, 60, 1) for id, start in enumerate(others)))
    found = reasons(recorded, replayed, known, [Failure(0, 18 * HOUR, 19 * HOUR)])
    assert found == ["reserved", "limits", "held", "nodes down", "unknown", "unknown", "reserved", ""]
    assert counted(found) == {"reserved": 2, "unknown": 2, "limits": 1, "held": 1, "nodes down": 1}


def test_details_of_swf_are_partitions(tmp_path) -> None:
    """The 16th field is the partition, with the name that the header gives it."""
    log = tmp_path / "log.swf.gz"
    record = "{} 0 0 10 1 -1 -1 1 60 -1 1 1 1 -1 -1 {} -1 -1\n"
    text = (
        "; Partition: 1 batch of all nodes\n"
        + record.format(7, 1)
        + record.format(8, 2)
        + record.format(9, -1)
    )
    log.write_bytes(gzip.compress(text.encode()))
    assert details.of(workload(log)) == {7: Details("batch"), 8: Details("2"), 9: Details("")}


def test_details_of_an_imported_workload(tmp_path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "id,submit,run,nodes,start,partition,submitted,reservation,reason\n"
        "1,40,10,1,50,batch,0,,\n"
        "2,40,10,1,50,debug,40,1,None\n"
        "3,40,10,1,50,debug,40,,QOSMaxJobsPerUserLimit\n"
        "4,40,10,1,50,debug,40,,Dependency\n"
        "5,40,10,1,50,debug,40,,JobArrayTaskLimit\n"
    )
    assert details.of(workload(log)) == {
        1: Details("batch", is_held=True),
        2: Details("debug", is_reserved=True),
        3: Details("debug", is_limited=True),
        4: Details("debug", is_held=True),
        5: Details("debug", is_limited=True),
    }


def test_details_of_what_sacct_printed(tmp_path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(
        "JobIDRaw|Partition|Submit|Eligible|Start|End|NNodes|Reservation|Reason\n"
        "5|batch|2026-10-01T08:00:00|2026-10-01T09:00:00|2026-10-01T09:00:00|2026-10-01T10:00:00|1||None\n"
        "5.batch||2026-10-01T08:00:00|Unknown|2026-10-01T09:00:00|2026-10-01T10:00:00|1||\n"
        "6|batch|2026-10-01T08:00:00|Unknown|2026-10-01T09:00:00|2026-10-01T10:00:00|1|maint|AssocGrpNodeLimit\n"
    )
    assert details.of(workload(log)) == {
        5: Details("batch", is_held=True),
        6: Details("batch", is_reserved=True, is_limited=True),
    }
