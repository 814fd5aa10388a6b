"""The simulated hypervisor as Python sees it; what it promises is in crates/gang/tests/hypervisor*.rs."""

import numpy as np
import pytest
from topolane._engine import GangJob, InputError, gang_policies, simulate_gangs

POLICIES = [name for name, _ in gang_policies()]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_answer_fits_together(policy):
    """Iterations are counted where they end, what ran is on the timeline, and only the slice's jobs run."""
    jobs = [
        GangJob("barrier", 4, iterations=200, interval=1e-3, spin=True),
        GangJob("coevp", 4, seconds=0.5, coarse=0.002, fine=0.005, wait=0.01, arrival=0.1),
        GangJob("independent", 6, iterations=5, iteration=0.02, weight=2.0, arrival=0.05),
    ]
    outcome = simulate_gangs(jobs, 4, policy, 10.0, timeline=True)
    assert [job.iterations for job in outcome.jobs][::2] == [200, 5]
    for number, job in enumerate(outcome.jobs):
        assert all(np.all(np.diff(ends) > 0) for ends in job.ends)
        assert job.finished == max(ends[-1] for ends in job.ends)
        spells = [(start, end) for start, end, _, whose, _ in outcome.timeline if whose == number]
        assert sum(end - start for start, end in spells) == pytest.approx(job.ran)
    starts = [start for start, _, _ in outcome.slices]
    for start, end, _, number, _ in outcome.timeline:
        at = np.searchsorted(starts, (start + end) / 2) - 1
        assert number in outcome.slices[at][1] + outcome.slices[at][2]


def test_gangs_keep_barriers_that_the_credit_scheduler_breaks():
    """Two jobs of 16 threads on 16 cores that meet every 1 ms get their half as gangs, and little of it otherwise."""

    def share(policy: str) -> float:
        jobs = [GangJob("barrier", 16, seconds=100, interval=1e-3, spin=True) for _ in range(2)]
        outcome = simulate_gangs(jobs, 16, policy, 8.0)
        return min(job.iterations for job in outcome.jobs) / 4000

    assert share("gang") > 0.98
    assert share("adaptive") > 0.98
    assert share("free") < 0.5


def test_work_of_the_host_puts_iterations_out_of_step():
    """The micro-benchmark: with a little work of the host's the threads of a job end iterations further apart."""

    def apart(background: float) -> float:
        jobs = [GangJob("independent", 16, seconds=100) for _ in range(2)]
        outcome = simulate_gangs(jobs, 16, "free", 20.0, background=background)
        count = min(job.iterations for job in outcome.jobs)
        ends = np.array([thread[:count] for job in outcome.jobs[:1] for thread in job.ends])
        return float(np.mean(ends - ends.min(axis=0) > 0.1))

    assert apart(0.02) > apart(0.0) + 0.1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cores": 0}, "cores must be a number from 1 to 256, not 0"),
        ({"policy": "fair"}, 'no gang policy is called "fair"; there are batch, free, gang, adaptive'),
        ({"seconds": -1.0}, "seconds must be a number from 0.000001 to 1000000, not -1"),
        ({"slice": 0.0}, "slice must be a number from 0.000001 to 1000000, not 0"),
        ({"wake_up": float("nan")}, "wake_up must be a number from 0 to 1, not NaN"),
        ({"background": 1.0}, "background must be a number from 0 to 0.9, not 1"),
    ],
)
def test_a_bad_value_is_named(change, said):
    """What cannot be simulated is refused in one sentence."""
    given = {"cores": 2, "policy": "gang", "seconds": 1.0} | change
    with pytest.raises(InputError) as error:
        simulate_gangs([GangJob("independent", 1, seconds=1)], **given)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interval": 0.0}, "job 1: interval must be a number from 0.000001 to 1000000, not 0"),
        ({"imbalance": 2.0}, "job 1: imbalance must be a number from 0 to 1, not 2"),
        ({"threads": 0}, "job 1: threads must be at least 1, not 0"),
        ({"weight": 0.0}, "job 1: weight must be a number from 0.000001 to 1000000, not 0"),
        ({"iterations": 0, "seconds": None}, "job 1: iterations must be at least 1, not 0"),
        ({"delays": [0.0, 1.0, 1.0]}, "job 1: delays must be at most one for each thread, not 3"),
        ({"delays": [-1.0]}, "job 1: delay must be a number from 0 to 1000000, not -1"),
        ({"kind": "gang"}, 'no workload is called "gang"; there are independent, barrier, coevp'),
        ({"iterations": 1}, "a job needs one of iterations and seconds"),
    ],
)
def test_a_bad_job_is_named(change, said):
    """A job that cannot be simulated is refused with its place."""
    good = {"kind": "barrier", "threads": 2, "seconds": 1.0}
    with pytest.raises(InputError) as error:
        simulate_gangs([GangJob(**good), GangJob(**good | change)], 2, "gang", 1.0)
    assert str(error.value) == said
