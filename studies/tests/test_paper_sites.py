"""`topolane paper sites`: its kernels send what they should, and its losses are what rules say."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import Traffic
from topolane.cli import cli
from topolane_studies import (
    PaperRow,
    rows_page,
    sites,
    sites_arrivals,
    sites_cloud,
    sites_hours,
    sites_jobs,
    sites_loss,
    sites_messages,
    sites_predict,
    sites_scatter,
    sites_smpi,
    sites_study,
)
from topolane_studies.cli.judged import rows_json
from topolane_studies.sites import SitesProgram, SmpiRun, Wan
from topolane_studies.sites_cloud import KnownProgram, Standing

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return sites_smpi.build(tmp_path_factory.mktemp("programs"))
    except sites_smpi.Missing as missing:
        pytest.skip(f"SimGrid: {missing}")


@pytest.mark.parametrize(
    ("kernel", "ranks"), [("cg", 8), ("cg", 32), ("lu", 8), ("lu", 32), ("mg", 32), ("ep", 32), ("bt", 36)]
)
def test_kernels_send_what_their_pattern_says(kernel: str, ranks: int, programs: Path) -> None:
    """What a kernel says that it sent in an iteration is the engine's pattern of that name, pair by pair; sums over
    all ranks too, where the pattern has them."""
    run = dataclasses.replace(
        sites.alone(programs, SitesProgram(kernel, ranks, "S")), iterations=(1,), counting=True
    )
    senders, receivers, sizes, messages = Traffic.pattern(f"{kernel}(class=S)", ranks).arrays()
    expected = {(int(a), int(b)): (int(m), int(n)) for a, b, n, m in zip(senders, receivers, sizes, messages)}
    assert {pair: of[:2] for pair, of in sites_smpi.sent(run).pairs.items()} == expected


def test_the_input_is_broadcast_as_npb_does(programs: Path) -> None:
    """The calls of NPB 3.3.1 before its first iteration, item by item; none is a message of an iteration."""
    for kernel, calls in {"lu": 10, "bt": 6, "mg": 7, "cg": 1, "ep": 1}.items():
        run = dataclasses.replace(
            sites.alone(programs, SitesProgram(kernel, 4, "S")), iterations=(1,), counting=True
        )
        assert sites_smpi.sent(run).broadcasts == calls


def test_turns_are_answers(programs: Path) -> None:
    """A turn is a message that came from whom one was sent to before. Between the halves of EP on four ranks a sum
    is one exchange a rank: three sums, one turn each, both ways. In LU a sweep only sends on: in an iteration the
    first rank hears from its neighbour across the cut once in the way back, and twice in the exchange of faces."""

    def turns(job: SitesProgram) -> dict[tuple[int, int], int]:
        run = dataclasses.replace(sites.alone(programs, job), iterations=(1,), counting=True)
        return {pair: of[2] for pair, of in sites_smpi.sent(run).pairs.items()}

    ep, lu = turns(SitesProgram("ep", 4, "S")), turns(SitesProgram("lu", 4, "S"))
    assert {pair: ep[pair] for pair in [(0, 2), (2, 0), (1, 3), (3, 1)]} == dict.fromkeys(
        [(0, 2), (2, 0), (1, 3), (3, 1)], 3
    )
    # Rank 0 sends the first sweep and hears the second: a turn; its faces: it sends, then hears: a turn.
    assert lu[0, 2] == 2
    # Rank 2 hears the first sweep before it has sent anything; then it hears a face after the second: a turn.
    assert lu[2, 0] == 1


def exchange(programs: Path, wan: Wan | None) -> float:
    """Seconds of 8 parts of 16 MiB, one after another, from one rank to another."""
    one = (0, 1) if wan else (0, 0)
    return sites_smpi.seconds(SmpiRun(programs, (SitesProgram("copy", 2),), one, wan, iterations=(8,)))[0]


def test_a_connection_carries_its_window_a_round_trip(programs: Path) -> None:
    """With a window of W bytes and a round trip of R seconds a connection carries W / R bytes a second, where that
    is less than the link; without a window what the link carries."""
    size = 8 * 2**24
    wan = Wan(5e-3)
    round_trip = 2 * (wan.latency + 2 * sites.HOST_LATENCY)
    assert exchange(programs, wan) == pytest.approx(size * round_trip / sites.WINDOW, rel=0.02)
    assert exchange(programs, Wan(5e-3, None)) == pytest.approx(size / sites.GIGABIT, rel=0.15)


def test_the_wan_is_shared(programs: Path) -> None:
    """Two programs that fill the WAN at the same time take twice as long as one alone, and on one site each they
    do not feel each other."""
    copy = SitesProgram("copy", 2)

    def both(sites_of: tuple[int, ...]) -> list[float]:
        run = SmpiRun(programs, (copy, copy), sites_of, Wan(1e-3, None), iterations=(8, 8))
        return sites_smpi.seconds(run)

    alone = exchange(programs, Wan(1e-3, None))
    assert both((0, 1, 0, 1)) == pytest.approx([2 * alone] * 2, rel=0.05)
    assert both((0, 0, 1, 1)) == pytest.approx([exchange(programs, None)] * 2, rel=1e-6)


def test_a_tunnel_has_one_packet_at_a_time_whichever_way(programs: Path) -> None:
    """Two programs that send large messages in opposite directions have the WAN twice, but one tunnel: together they
    get the bytes of a segment in the time of a packet. A program on one site does not use the tunnel."""
    copy, wan = SitesProgram("copy", 2), Wan(1e-3, None, tunnel=sites.Tunnel(packet=1e-4))
    rate = sites.SEGMENT / 1e-4

    def seconds(where: tuple[int, ...], *jobs: SitesProgram) -> list[float]:
        return sites_smpi.seconds(SmpiRun(programs, jobs, where, wan, iterations=(4,) * len(jobs)))

    one_way = 1.05 * 4 * 2**24 / rate  # acknowledgements of 5 %, as SMPI has them
    assert seconds((0, 1), copy) == pytest.approx([one_way], rel=0.05)
    assert seconds((0, 1, 1, 0), copy, copy) == pytest.approx([2 * one_way] * 2, rel=0.1)
    assert seconds((0, 0, 1, 1), copy, copy) == pytest.approx([4 * 2**24 / sites.GIGABIT] * 2, rel=0.05)


def test_copies_of_guests_do_not_pass_the_tunnel(programs: Path) -> None:
    """A program outside a tunnel takes as long as with none, while another one inside it takes the tunnel's time."""
    copy = SitesProgram("copy", 2)
    wan, plain = Wan(1e-3, None, tunnel=sites.Tunnel(packet=1e-4)), Wan(1e-3, None)
    inside, outside = (
        SmpiRun(programs, (copy,), (0, 1), wan, iterations=(4,), outside=of) for of in ((), (0,))
    )
    alone = sites_smpi.seconds(SmpiRun(programs, (copy,), (0, 1), plain, iterations=(4,)))
    assert sites_smpi.seconds(outside) == pytest.approx(alone)
    both = SmpiRun(programs, (copy, copy), (0, 1, 1, 0), wan, iterations=(4, 4), outside=(1,))
    assert sites_smpi.seconds(both) == pytest.approx([*sites_smpi.seconds(inside), *alone], rel=0.1)


def test_a_small_message_costs_its_packets(programs: Path) -> None:
    """LU's small messages each cost the tunnel a packet that is not full and an acknowledgement. With packets of 1 ms
    these are what LU waits for: at least 1.5 packets a message between the halves, which one process passes."""
    job = SitesProgram("lu", 4, "S")
    counts = sites_smpi.sent(dataclasses.replace(sites.alone(programs, job), counting=True)).pairs
    half = sites.halves(4)
    crossing = sum(of[0] for (a, b), of in counts.items() if half[a] != half[b])
    wan = Wan(1e-3, tunnel=sites.Tunnel(packet=1e-3))
    assert sites_smpi.seconds(sites.spread(programs, job, wan))[0] > 1.5e-3 * crossing


def test_two_sites_at_no_latency_cost_what_the_link_costs(programs: Path) -> None:
    """LU sends less across the cut than the WAN carries: at no latency its halves lose next to nothing, and more
    the longer the way is."""
    job = SitesProgram("lu", 16, "S")
    times = [
        sites_smpi.seconds(sites.spread(programs, job, Wan(latency)))[0] for latency in (0.0, 1e-3, 5e-3)
    ]
    alone = sites_smpi.seconds(sites.alone(programs, job))[0]
    assert times == sorted(times)
    assert alone <= times[0] < 1.5 * alone < times[2]


def test_places_are_those_of_the_order() -> None:
    """Equal values share the mean of their places; Spearman's coefficient is 1 for whatever grows with the other,
    Pearson's only for a straight line."""
    assert sites_scatter.ranked([3.0, 1.0, 3.0, 7.0]) == [2.5, 1.0, 2.5, 4.0]
    draw = random.Random(1)
    values = [draw.uniform(0, 5) for _ in range(20)]
    grown = [value**5 for value in values]
    assert sites_scatter.spearman(values, grown) == pytest.approx(1)
    assert sites_scatter.pearson(values, grown) < 0.95
    assert sites_scatter.pearson(values, [1 - 2 * value for value in values]) == pytest.approx(-1)


def test_latency_is_tolerable_until_two_sites_lose(programs: Path) -> None:
    """Two sites help up to the last latency before the first at which N ranks in halves take no less time than
    N / 2 on one site."""
    job = SitesProgram("lu", 16)
    taken = {sites.alone(programs, sites_loss.smaller(job)): [10.0]}
    for latency, seconds in zip(sites.LATENCIES, (11.0, 6.0, 9.9, 10.0, 9.0, 12.0)):
        taken[sites.spread(programs, job, sites.tunnelled(latency))] = [seconds]
        taken[sites.spread(programs, job, Wan(latency))] = [10.5]
    times = sites_loss.IterationTimes(taken, {}, programs)
    assert sites_loss.tolerable(times, job, sites.tunnelled) == 2e-3
    assert sites_loss.tolerable(times, job, Wan) == 0.0


def test_what_crosses_is_counted_a_second_of_one_site(programs: Path) -> None:
    """Turns are those of the rank with the most, bytes those of the busier direction, the pair the one with most
    bytes; what stays inside a half does not count."""
    job = SitesProgram("cg", 4)
    sent = {
        (0, 1): (9, 9000, 9),
        (0, 2): (1, 100, 1),
        (0, 3): (2, 50, 2),
        (2, 0): (4, 400, 4),
        (3, 1): (1, 5, 1),
    }
    times = sites_loss.IterationTimes({sites.alone(programs, job): [2.0]}, {job: sent}, programs)
    assert sites_predict.crossing(times, job) == (2.0, 202.5, 2.0, 200.0)


def program(
    kernel: str, ranks: int, *, turns: float = 0.0, sent: float = 0.0, alone: float = 100.0
) -> KnownProgram:
    return KnownProgram(SitesProgram(kernel, ranks), 1.0, alone, turns, sent, 0.0, 0.0)


def test_first_fit_takes_rack_by_rack() -> None:
    """Racks of the sites in turn, no host twice, nothing where there is too little."""
    hosts = sites_cloud.first_fit([0, 1], sites_cloud.RACK)
    assert hosts[:-2] == list(range(2, sites_cloud.RACK))
    assert [sites_cloud.site(host) for host in hosts[-2:]] == [1, 1]
    assert sites_cloud.first_fit(range(100), 5) == []


def test_a_gathered_program_moves_its_smaller_part() -> None:
    """A program of many turns with 4 of its 16 guests on another site is gathered by moving those four, by the
    paper's rule and by ours; `stay` leaves it."""
    hosts = (*range(12), *range(sites_cloud.HOSTS, sites_cloud.HOSTS + 4))
    standing = Standing(program("cg", 16, turns=100.0, sent=1e7), hosts, 3600.0)
    for policy, moves in (("stay", 0), ("inter-site-traffic", 4), ("predicted-loss", 4)):
        (then,) = sites_cloud.asked(policy, Wan(), [standing])
        assert sites_cloud.moved(hosts, then) == moves
        assert len({sites_cloud.site(host) for host in then}) == (1 if moves else 2)


def test_programs_share_what_the_wan_carries() -> None:
    """Where the WAN carries all, each is as slow as it is alone; where it does not, together they take just what it
    carries, and who sends nothing is not slowed further."""
    alone = [1 / 1.5, 1 / 1.2]
    assert sites_cloud.stretched([(0.5, 0.3), (0.2, 0.1)], 1.0) == pytest.approx(alone)
    speeds = sites_cloud.stretched([(0.5, 0.9), (0.2, 0.8), (0.1, 0.0)], 1.0)
    assert 0.9 * speeds[0] + 0.8 * speeds[1] == pytest.approx(1.0)
    assert speeds[0] < alone[0] and speeds[1] < alone[1] and speeds[2] == pytest.approx(1 / 1.1)


def test_a_tunnel_is_shared_by_both_ways_and_not_by_copies() -> None:
    """Two programs that each want 0.8 of a tunnel together get all of it; copies that take half of the WAN leave the
    tunnel alone, and the slower of the two counts."""
    tunnel = sites.Tunnel()
    wan = Wan(tunnel=tunnel)
    one = dataclasses.replace(
        program("cg", 16, turns=0.0, sent=0.3 * wan.bandwidth), tunnelled=0.8 * tunnel.rate
    )
    speeds = sites_cloud.together([(one, 0.2, 1.0)] * 2, wan)
    assert 2 * 0.8 * speeds[0] == pytest.approx(1.0) and speeds[0] == speeds[1] < 1 / 1.2
    assert sites_cloud.together([(one, 0.2, 1.0)] * 2, Wan()) == pytest.approx([1 / 1.2] * 2)
    halved = sites_cloud.together(
        [(one, 0.0, 1.0)] * 2, dataclasses.replace(wan, bandwidth=0.5 * wan.bandwidth), 0.5
    )
    assert 2 * 0.6 * halved[0] == pytest.approx(0.5)


def test_what_a_tunnel_passes_counts_both_ways_and_packets_that_are_not_full(programs: Path) -> None:
    """A large message is asked for and answered: three packets that are not full, with their acknowledgements."""
    job = SitesProgram("cg", 4)
    large, small = 10 * sites.EAGER, 100
    sent = {(0, 2): (5, 5 * large, 1), (2, 0): (7, 7 * small, 1), (0, 1): (9, 9 * large, 1)}
    times = sites_loss.IterationTimes({sites.alone(programs, job): [2.0]}, {job: sent}, programs)
    passed = 5 * (large + 3 * sites.EXTRA) + 7 * (small + sites.EXTRA)
    assert sites_predict.tunnelled(times, job) == pytest.approx(passed / 2.0)


def test_guests_see_the_tunnel_as_the_link() -> None:
    """The engine is given the latency and the bandwidth that guests measure."""
    wan = sites.tunnelled(5e-3)
    assert (
        wan.seen_latency == 5e-3 + sites.TUNNEL_LATENCY and wan.seen_bandwidth == sites.SEGMENT / sites.PACKET
    )
    assert (Wan(5e-3).seen_latency, Wan(5e-3).seen_bandwidth) == (5e-3, sites.GIGABIT)


class HalfSpeed:
    """A WAN on which all are half as fast, and a guest takes 16 s to copy."""

    def of(
        self, placed: tuple[tuple[KnownProgram, tuple[int, ...]], ...], copies: tuple[int, int]
    ) -> tuple[list[float], list[float]]:
        return [0.5 if len(set(where)) > 1 else 1.0 for _, where in placed], [2.0**24] * 2


@pytest.mark.parametrize(("policy", "ended", "moves"), [("stay", 200.0, 0), ("inter-site-traffic", 113.0, 8)])
def test_moves_pay_from_when_they_are_done(policy: str, ended: float, moves: int, programs: Path) -> None:
    """A program of 100 s in two parts at half speed: watched for 10 s and copied for 16 s it has done 13 s of work
    and runs the other 87 s at full speed: 113 s. Left alone it takes 200 s."""
    first = program("lu", 18, turns=0.0, alone=1.0)
    second = program("cg", 16, turns=50.0, sent=1e6)
    scenario = sites_jobs.JobsScenario(programs, policy, (first, second), Wan())
    played = sites_jobs.JobsGame(scenario, 1, HalfSpeed()).played()  # type: ignore[arg-type]
    assert played.ended["CG 16"] == pytest.approx(ended)
    assert played.moves == moves


@pytest.mark.parametrize("who", list(sites_arrivals.POLICIES))
def test_programs_that_come_and_go_get_hosts_of_their_own(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At no moment has a host two guests; every program ends, none sooner than on one site with no program before it;
    `as placed` moves no guest."""
    known = tuple(program(k, n, turns=50.0, sent=2e7) for k in ("cg", "lu") for n in (16, 32))
    scenario = sites_arrivals.ArrivalsScenario(who, 1, known, (0.5,) * 4, 30, Wan())
    settle = sites_hours.HourlySites.set_speeds

    def checked(cloud: sites_hours.HourlySites) -> None:
        hosts = [host for running in cloud.running for host in running.hosts]
        assert len(hosts) == len(set(hosts))
        settle(cloud)

    monkeypatch.setattr(sites_hours.HourlySites, "set_speeds", checked)
    cloud = sites_hours.HourlySites(scenario)
    outcome = cloud.played()
    assert len(cloud.ended) == 30
    assert all(end - start >= arrival.alone * (1 - 1e-9) for arrival, start, end in cloud.ended)
    assert all(start >= arrival.at for arrival, start, _ in cloud.ended)
    assert (outcome.moves == 0) == (who == "as placed")


def test_the_command_prints_the_papers_figures(programs: Path, tmp_path: Path) -> None:
    """Quickly: every loss lies between nothing and all, EP's is next to nothing, CG's is the most; what is not
    measured says why; the figure and its points are written."""
    found = CliRunner().invoke(cli, ["paper", "sites", "--quick", "--json", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    losses = {
        line["program"]: line["loss (%)"] for line in answer["tables"]["scatter"] if line["class"] == "C"
    }
    assert all(0 <= loss <= 100 for loss in losses.values())
    assert losses["EP 16"] < 1 < losses["LU 16"] < losses["CG 16"] == max(losses.values())
    decided = {line["decided by"]: line for line in answer["tables"]["arrivals"]}
    assert decided["ours"]["stretch"] < decided["as placed"]["stretch"] and decided["as placed"]["moved"] == 0
    rows = {row["what"]: row for row in answer["rows"]}
    assert rows["order of the loss, class C, 32 ranks, 5 ms"]["verdict"] == "agrees"
    overhead = rows["overhead of guest and overlay on one site"]
    assert overhead["verdict"] == "not measured: failed" and "emulated" in overhead["why"]
    # Where nothing can be simulated the same claims are missing, of the same kinds.
    missing = {row.what: (row.value, row.side) for row in sites_study.missing("no SimGrid", quick=True)}
    assert set(missing) == set(rows)
    for what, kinds in missing.items():
        assert [one is None for one in kinds] == [rows[what][kind] is None for kind in ("value", "side")]
    compare_with_pages(answer["rows"], answer["tables"]["loss"])
    assert (tmp_path / "loss-against-traffic.png").read_bytes().startswith(b"\x89PNG")
    points = (tmp_path / "points.csv").read_text().splitlines()
    assert len(points) == 1 + len(answer["tables"]["scatter"])


def compare_with_pages(rows: list[dict[str, object]], loss: list[dict[str, float]]) -> None:
    """The pages have what was run: rows, but correlations over fewer programs, and the table of speeds."""
    found = rows_page.read((DOCS / "reference" / "paper-rows.md").read_text())["sites"]
    page = {row[0]: row[1:] for row in found}
    for row in rows:
        if not str(row["what"]).startswith("loss at"):
            cells = rows_page.cells(PaperRow(**{key: of for key, of in row.items() if key != "verdict"}))
            assert page[cells[0]] == cells[1:]
    text = (DOCS / "explanation" / "sites-paper.md").read_text()
    table = text.partition("## Results")[2].partition("| | one site (s) |")[2].partition("\n\n")[0]
    lines = {
        cells[0]: cells[1:] for cells in (row.strip("| ").split(" | ") for row in table.splitlines()[2:])
    }
    columns = ("one site (s)", "0 ms tunnel", "5 ms tunnel", "5 ms", "5 ms free")
    for line in loss:
        name = str(line["class C"])
        if name in lines:  # EP has one line for all
            own = [lines[name][place] for place in (0, 1, 4, 7, 8)]
            speeds = [f"{line[column]:.1f}" for column in columns[1:]]
            assert own == [f"{line[columns[0]]:.3g}", *speeds], name


def test_without_simgrid_every_figure_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SimGrid is missing nothing is invented: each figure says which tool is not there."""
    monkeypatch.setenv("PATH", "/nowhere")
    found = CliRunner().invoke(cli, ["paper", "sites", "--json"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {row["verdict"] for row in rows} == {"not measured: failed"}
    never = len(sites_study.never_measured())
    assert sum(bool(re.search("smpicc.*libsimgrid-dev", row["why"])) for row in rows) == len(rows) - never
    assert rows == rows_json(sites_study.rows_for_summary(quick=False, workers=1))


def counted(programs: Path) -> sites_loss.IterationTimes:
    """BT sends as the paper says; LU ten times as often, and LU and CG other sizes."""
    taken, sent = {}, {}
    for kernel, seconds, messages, size in [
        ("lu", 1.0, 31_263, 210),
        ("cg", 1.0, 100, 9000),
        ("bt", 2.0, 1071, 18000),
    ]:
        job = sites_messages.job_of(kernel)
        taken[sites.alone(programs, job)] = [seconds]
        sent[job] = {(0, job.ranks - 1): (messages, messages * size, 1), (0, 1): (3716, 999, 9)}
    return sites_loss.IterationTimes(taken, sent, programs)


def test_messages_between_the_halves_are_judged(programs: Path) -> None:
    """Rates are per second of the run on one site, sizes means over both ways, shares of all sends; the order of the
    three kernels is judged by itself."""
    times = counted(programs)
    assert sites_messages.rate(times, "bt") == 535.5 and sites_messages.size(times, "cg") == 9000
    claims = {claim.what: claim for claim in sites_messages.claims(quick=True)}

    def row(what: str) -> PaperRow:
        return claims[what].row(times)

    assert (
        row("LU 32: bytes of a message across").value and not row("LU 32: mean bytes of a send across").value
    )
    assert (row("BT 36: sends across in the whole run").ours, row("BT 36: sends of the whole run").value) == (
        "53,550",
        True,
    )
    assert row("BT 36: sends across, % of all").ours == "22.4" and row("BT 36: sends across, % of all").value
    assert row("order by sends across, % of all").side is False
    assert row("order by messages/s across").paper == "lu > cg > bt"


def test_slides_say_where_two_sites_are_faster(programs: Path) -> None:
    """32 ranks at 10 ms must beat 16 on one site; 64 ranks must beat 32 at 2.5 ms and lose from 5 ms on."""
    taken = {}
    for ranks in (16, 32, 64):
        taken[sites.alone(programs, SitesProgram("lu", ranks))] = [320.0 / ranks]
    for job, latencies, _ in sites_loss.SLIDES:
        for latency in latencies:
            taken[sites.spread(programs, job, sites.tunnelled(latency))] = [9.0]
            taken[sites.spread(programs, job, sites_loss.dear(latency))] = [11.0]
    times = sites_loss.IterationTimes(taken, {}, programs)
    rows = [sites_loss.slide_claim(*slide).row(times) for slide in sites_loss.SLIDES]
    assert [row.side for row in rows] == [True, True, False]
    assert rows[1].why.endswith(": 110%")
    assert rows[2].ours == "90% of the time, 90% of the time, 90% of the time"


@pytest.mark.parametrize(("rule", "sooner"), [(90.0, True), (110.0, False)])
def test_the_four_must_end_sooner_by_the_papers_rule(rule: float, sooner: bool) -> None:
    """What ours does is printed and not judged."""
    found = [
        sites_jobs.JobsOutcome(policy, length, {"CG 16": total}, 0, 0.0, {}, ())
        for length in sites_jobs.LENGTHS
        for policy, total in zip(sites_jobs.POLICIES, (100.0, rule, 80.0))
    ]
    rows = [claim.row(found) for claim in sites_jobs.claims()]
    assert [row.side for row in rows] == [sooner, sooner]
    assert rows[0].why == "by our rule 80 s"
