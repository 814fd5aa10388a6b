"""The scheduler that a live driver owns is the simulator's: same events, same decisions."""

import pytest
import topolane


@pytest.fixture
def machine() -> topolane.Machine:
    return topolane.machine("fat-tree(radix=4)")  # 16 nodes: 4 pods of 2 leaves of 2


def given_by(decisions):
    """The identity and the nodes of each."""
    return [(one.id, one.nodes) for one in decisions]


@pytest.mark.parametrize("policy", ["first-fit", "slurm-tree", "isolated"])
@pytest.mark.parametrize("queue", ["fcfs", "easy", "conservative"])
def test_driven_by_hand_it_decides_as_the_simulator_does(machine, tmp_path, policy, queue):
    """The jobs of a log, submitted and ended as in the log, start when and where a simulated run starts them."""
    log = tmp_path / "log.csv"
    rows = [(n, 10 * n, 100 + 37 * n % 90, 1 + 5 * n % 9) for n in range(1, 60)]
    log.write_text(
        "id,submit,run,walltime,nodes\n"
        + "".join(f"{n},{submit},{run},{run + n % 40},{nodes}\n" for n, submit, run, nodes in rows)
    )
    workload = topolane.workload(log, machine.nodes)
    run = topolane.simulate(workload, machine, policy=policy, queue=queue)
    expected = {
        row["job_id"]: (row["starting_time"], row["allocated_resources"]) for row in run.jobs.to_dicts()
    }
    scheduler = topolane.Scheduler(machine, policy, queue)
    jobs = {n: (submit, run, run + n % 40, nodes) for n, submit, run, nodes in rows}
    ends: dict[int, float] = {}
    started: dict[int, tuple[float, set[int]]] = {}
    arrivals = sorted(jobs, key=lambda n: (jobs[n][0], n))
    while arrivals or ends:
        now = min([jobs[n][0] for n in arrivals[:1]] + list(ends.values()))
        for n in [n for n, end in ends.items() if end <= now]:
            del ends[n]
            assert scheduler.complete(n)
        while arrivals and jobs[arrivals[0]][0] <= now:
            n = arrivals.pop(0)
            assert scheduler.submit(n, jobs[n][3], jobs[n][2]) is None
        for given in scheduler.start(now):
            n = given.id
            started[n] = (now, set(given.nodes))
            ends[n] = now + jobs[n][1]
    assert len(started) == len(rows)
    for n, (start, nodes) in started.items():
        ranges = [part.partition("-") for part in expected[n][1].split()]
        wanted = {node for low, _, high in ranges for node in range(int(low), int(high or low) + 1)}
        assert (start, nodes) == (expected[n][0], wanted)


def test_what_runs_is_taken_over_and_what_ends_is_given_back(machine):
    """A driver that comes back adopts running jobs; their nodes are free again when they end."""
    scheduler = topolane.Scheduler(machine, "first-fit", "easy")
    scheduler.adopt(7, list(range(16)), start=0.0, walltime=100.0)
    assert scheduler.submit(8, 4, 50.0) is None
    assert scheduler.start(10.0) == []
    assert (scheduler.waiting, scheduler.reservation) == ([8], (8, 100.0))
    refusal = scheduler.explain(8)
    assert (refusal.name, refusal.why) == ("not-now", "does not fit now: 4 wanted, 0 to be had")
    assert scheduler.complete(7) and not scheduler.complete(7)
    assert given_by(scheduler.start(60.0)) == [(8, [0, 1, 2, 3])]
    ((given, start, end),) = scheduler.running
    assert (given.id, start, end, given.nodes) == (8, 60.0, 110.0, [0, 1, 2, 3])


def test_priorities_walltimes_drained_nodes_and_begin_times_count(machine):
    """The higher priority goes first, a drained node gets nothing, a job waits for its begin time."""
    scheduler = topolane.Scheduler(machine, "first-fit", "easy")
    scheduler.set_in_service(0, False)
    assert scheduler.submit(1, 15, 60.0) is None
    assert scheduler.submit(2, 15, 60.0, priority=5.0) is None
    assert scheduler.submit(3, 1, 60.0, begin=500.0, priority=9.0) is None
    assert given_by(scheduler.start(0.0)) == [(2, list(range(1, 16)))]
    assert scheduler.next_begin(0.0) == 500.0
    assert scheduler.set_walltime(2, 600.0) and scheduler.running[0][2] == 600.0
    scheduler.start(1.0)
    assert scheduler.reservation == (1, 600.0)
    assert scheduler.cancel(1) and not scheduler.cancel(1)


def test_what_cannot_be_asked_for_is_named(machine):
    """Too wide for ever is an answer; nodes that are not there are an error."""
    scheduler = topolane.Scheduler(machine, "first-fit", "easy")
    assert str(scheduler.submit(1, 17, 60.0)) == "never fits: 17 wanted, 16 in all"
    with pytest.raises(topolane.InputError, match="node 16 is not among the 16"):
        scheduler.submit(2, 1, 60.0, eligible=[16])
    with pytest.raises(topolane.InputError, match='unknown queue "x"'):
        topolane.Scheduler(machine, "first-fit", "x")
    with pytest.raises(KeyError):
        scheduler.explain(99)


def test_links_go_out_of_service_and_come_back(machine):
    """The answer names the jobs that may use a cable that goes out; no new job comes onto it; a node without one gets nothing."""
    scheduler = topolane.Scheduler(machine, "dedicated", "easy")
    assert scheduler.submit(1, 3, 50.0) is None
    (given,) = scheduler.start(0.0)
    assert given.nodes == [0, 1, 2]
    own, *_ = given.links
    (whole,) = machine.cables_named(["pod1-s0"])
    assert scheduler.set_links_in_service([own, *whole], False) == [1]
    assert scheduler.users_of(whole) == [] and scheduler.links_out == sorted([own, *whole])
    assert scheduler.submit(2, 4, 50.0) is None
    (other,) = scheduler.start(1.0)
    assert not set(other.nodes) & set(range(4, 8)), "the leaves of pod 1 have one uplink left for two nodes"
    assert scheduler.running[0][0].nodes == [0, 1, 2] and own in scheduler.running[0][0].links
    assert scheduler.set_links_in_service([own, *whole], True) == [] and scheduler.links_out == []
    assert scheduler.set_links_in_service([15], False) == []
    assert scheduler.submit(3, 16, 1.0) is None
    assert scheduler.complete(1) and scheduler.complete(2) and scheduler.start(2.0) == []
    with pytest.raises(topolane.InputError, match="there is no cable 9999 of a tree"):
        scheduler.set_links_in_service([9999], False)
    with pytest.raises(topolane.InputError, match="there is no cable 9999 of a tree"):
        scheduler.users_of([9999])
