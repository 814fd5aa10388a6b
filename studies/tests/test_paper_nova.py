"""`topolane paper nova`: its kernels send what they should, and its placements and times are what rules say."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import Traffic
from topolane.cli import cli
from topolane.compiling import Missing
from topolane_studies import nova, nova_figure, nova_smpi, nova_study, rows_page
from topolane_studies.whiskers import whiskers
from waiting import DEADLINE, until

ALONE = nova.NovaSetting("alone", others=False)
SEEDS = range(1, 21)
RANKS = nova.VMS


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return nova_smpi.build(tmp_path_factory.mktemp("programs"))
    except Missing as missing:
        pytest.skip(f"SimGrid: {missing}")


def sent(trace: Path) -> Counter[tuple[int, int, int]]:
    """Messages by (sender, receiver, bytes) of a Paje trace: the key of a link is from_to_tag_number."""
    found: Counter[tuple[int, int, int]] = Counter()
    for line in trace.read_text().splitlines():
        fields = line.split()
        if fields and fields[0] == "15":  # PajeStartLink
            sender, receiver = fields[-2].split("_")[:2]
            if sender != receiver:
                found[int(sender) - 1, int(receiver) - 1, int(fields[-1])] += 1
    return found


def iteration(
    programs: Path, tmp_path: Path, kernel: str, size: str, inside: str
) -> Counter[tuple[int, int, int]]:
    """What SimGrid saw sent in one iteration: that of two less that of one. `inside` collectives: yes or no."""
    counted = []
    for iterations in (1, 2):
        trace = tmp_path / f"trace-{iterations}"
        run = nova_smpi.KernelRun(programs, kernel, iterations, ALONE, 0, tuple(range(RANKS)), size)
        options = (f"--cfg=tracing/smpi/internals:{inside}", "--cfg=tracing/smpi/display-sizes:yes")
        nova_smpi.play(run, "-trace", "-trace-file", str(trace), *options)
        counted.append(sent(trace))
    return counted[1] - counted[0]


def matrix(messages: Counter[tuple[int, int, int]]) -> dict[tuple[int, int], tuple[float, float]]:
    """(bytes, messages) of every pair."""
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for (sender, receiver, size), count in messages.items():
        sent_bytes, number = found.get((sender, receiver), (0.0, 0.0))
        found[sender, receiver] = (sent_bytes + size * count, number + count)
    return found


@pytest.mark.parametrize(
    ("kernel", "size", "inside"),
    [("bt", "S", "no"), ("bt", "W", "no"), ("lu", "S", "no"), ("lu", "W", "no"), ("cg", "S", "no")]
    + [("cg", "W", "no"), ("mg", "S", "no"), ("mg", "W", "no"), ("ep", "S", "yes")],
)
def test_kernels_send_what_their_pattern_says(
    kernel: str, size: str, inside: str, programs: Path, tmp_path: Path
) -> None:
    """The matrix of an iteration as SimGrid counts it is the engine's pattern of that name, entry by entry."""
    senders, receivers, sizes, messages = Traffic.pattern(f"{kernel}(class={size})", RANKS).arrays()
    expected = {
        (int(a), int(b)): (float(n), float(m)) for a, b, n, m in zip(senders, receivers, sizes, messages)
    }
    assert matrix(iteration(programs, tmp_path, kernel, size, inside)) == expected


def test_sp_sends_two_layers_of_faces_and_the_rows_of_its_systems(programs: Path, tmp_path: Path) -> None:
    """Along every axis three of four cells pass on 22 numbers a point of their inner face, and 10 on the way
    back; and two layers of 5 numbers a point go through every face between two cells, both ways: summed up
    over the cube, 3 planes of 12 x 12 points along each axis (10 x 10 of them inside)."""
    found = iteration(programs, tmp_path, "sp", "S", "no")
    faces, inner, planes = 12 * 12, 10 * 10, 3 * 3
    total = sum(size * count for (_, _, size), count in found.items())
    assert total == planes * (2 * 2 * 5 * faces + 22 * inner + 10 * inner) * 8
    # 6 neighbours; 3 axes, 3 messages forwards and 3 back.
    assert Counter(sender for sender, _, _ in found.elements()) == dict.fromkeys(range(RANKS), 6 + 18)


@pytest.mark.parametrize(("kernel", "block"), [("ft", 2**18 // 256 * 16), ("is", 2**16 // 256 * 4)])
def test_transposes_send_everybody_one_block(kernel: str, block: int, programs: Path, tmp_path: Path) -> None:
    """FT and IS: in an iteration every rank sends each other its part of the points or keys in one message."""
    found = iteration(programs, tmp_path, kernel, "S", "yes")
    assert {(a, b): found[a, b, block] for a in range(RANKS) for b in range(RANKS) if a != b} == {
        (a, b): 1 for a in range(RANKS) for b in range(RANKS) if a != b
    }


def test_dt_sends_every_array_on_once(programs: Path, tmp_path: Path) -> None:
    """The largest black hole on 16 ranks has 8 sources, 2 comparators of 4 inputs and a sink: along each of its arcs
    a length and an array of 1,728 samples of 4 numbers go once."""
    arcs = [(source, 8 + source // 4) for source in range(8)] + [(8, 10), (9, 10)]
    expected = Counter({(a, b, size): 1 for a, b in arcs for size in (4, 1728 * 4 * 8)})
    assert iteration(programs, tmp_path, "dt", "S", "no") == expected


def run(programs: Path, setting: nova.NovaSetting, seed: int, hosts: tuple[int, ...]) -> float:
    return nova_smpi.seconds(nova_smpi.KernelRun(programs, "cg", 3, setting, seed, hosts))


def test_the_same_placement_takes_the_same_time(programs: Path) -> None:
    """A run is its placement, its seed and nothing else: repeated, its time comes out to the last bit."""
    hosts = nova.placements(nova.CHOSEN, 1)["stock"]
    assert run(programs, nova.CHOSEN, 1, hosts) == run(programs, nova.CHOSEN, 1, hosts)


def test_others_slow_down_who_shares_links_with_them(programs: Path) -> None:
    """On a leaf of its own a group takes as long while the others run as alone, whatever they send; spread over
    the leaves of the others it takes longer for the way, and longer still while they run."""
    own, spread = (nova.placements(nova.CHOSEN, 1)[who] for who in ("ours", "stock"))
    alone = run(programs, ALONE, 1, own)
    assert [run(programs, nova.CHOSEN, seed, own) for seed in (1, 2)] == pytest.approx([alone] * 2, rel=1e-9)
    assert alone < run(programs, ALONE, 1, spread) < run(programs, nova.CHOSEN, 1, spread)


@pytest.mark.parametrize(
    ("setting", "latencies"),
    [(nova.CHOSEN, {1e-6}), (nova.ETHERNET, {24e-6, 5e-6})],
    ids=("infiniband", "ethernet"),
)
def test_a_platform_has_the_cables_of_its_network(setting: nova.NovaSetting, latencies: set[float]) -> None:
    """Each cable has its bandwidth and latency, and others send as fast as it carries."""
    hosts, speed = nova.placements(setting, 1)["ours"], setting.network.bandwidth
    run = nova_smpi.KernelRun(Path(), "is", 1, setting, 1, hosts)
    head, *lines = nova_smpi.platform(run).splitlines()
    channels, senders = int(head.split()[2]), int(head.split()[4])
    links = {tuple(map(float, line.split())) for line in lines[:channels]}
    assert links == {(speed, latency) for latency in latencies}
    assert {float(line.split()[4]) for line in lines[-senders:]} == {speed}


@pytest.mark.parametrize("setting", [nova.CHOSEN, nova.NO_ROOM], ids=lambda setting: setting.name)
def test_hop_bytes_are_ordered(setting: nova.NovaSetting) -> None:
    """Ours has the least hop-bytes there are, the listing no fewer than ours, stock no fewer than the least;
    with room on one leaf the listing has the least as well."""
    found = nova.all_hop_bytes(setting, SEEDS)
    assert found["ours"] == found["optimum"]
    assert all(stock >= least for stock, least in zip(found["stock"], found["optimum"]))
    assert all(ours <= listing for ours, listing in zip(found["ours"], found["listing"]))
    if setting.room:
        assert found["listing"] == found["optimum"] == [120] * len(SEEDS)


@pytest.mark.parametrize("setting", [nova.CHOSEN, nova.NO_ROOM], ids=lambda setting: setting.name)
def test_placements_take_empty_hosts_and_count_their_switches(setting: nova.NovaSetting) -> None:
    """Sixteen hosts, none of them twice or of another group; hop-bytes are the switches between each two: one
    more than the engine's hops. Stock takes hosts in no order."""
    machine = setting.machine()
    for seed in SEEDS:
        held = {host for group in nova.other_groups(setting, seed) for host in group.hosts}
        for who, hosts in nova.placements(setting, seed).items():
            assert len(set(hosts)) == RANKS and not held & set(hosts)
            hops = [machine.hops(a, b) for a, b in combinations(hosts, 2)]
            assert nova.hop_bytes(nova.counts(hosts)) == sum(1 + (h or 0) for h in hops)
            assert who != "stock" or list(hosts) != sorted(hosts)


def test_without_simgrid_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tools are not there every figure that needs them is `not measured`, with what is missing;
    hop-bytes are printed all the same."""
    monkeypatch.setenv("PATH", "/nonexistent")
    done = CliRunner().invoke(cli, ["paper", "nova", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["times"] == []
    given = [row["what"] for row in answer["rows"] if row["given"]]
    assert given == ["hop-bytes of 16 VMs on one switch", "hop-bytes of 16 VMs on two switches"]
    others = [row for row in answer["rows"] if not row["given"]]
    assert {(row["verdict"], row["measured"]) for row in others} == {("not measured: failed", False)}
    whys = [row["why"] for row in others if row["what"] not in ("DC unchanged", "UA unchanged")]
    assert all("smpicc, smpirun" in why and "libsimgrid-dev" in why for why in whys)
    assert [row.what for row in nova_study.rows_for_summary(True, 1)] == [
        row["what"] for row in answer["rows"]
    ]


def test_command_prints_kernels_asked_for(programs: Path) -> None:
    """Times of the kernel asked for by every placement on both networks, and figures of BT as not measured, saying why."""
    done = CliRunner().invoke(
        cli, ["paper", "nova", "--quick", "--seeds", "2", "--kernel", "is", "--jobs", "1", "--json"]
    )
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    infiniband, ethernet = answer["times"]
    assert (infiniband["setting"], ethernet["setting"]) == ("InfiniBand", "Gigabit Ethernet")
    for times in answer["times"]:
        assert times["kernel"] == "is" and {len(of) for of in times["seconds"].values()} == {2}
    assert max(infiniband["seconds"]["stock"]) < min(ethernet["seconds"]["ours"])
    rows = {row["what"]: row for row in answer["rows"]}
    assert rows["IS unchanged: mean time (%)"]["why"].startswith("Gigabit Ethernet: ")
    bt = [row for what, row in rows.items() if what.startswith("BT")]
    assert all(not row["measured"] and row["why"] for row in bt)


def test_pages_have_what_runs_of_the_shortest_kernels_give(programs: Path) -> None:
    """Two rows of the page of all rows, with all seeds and iterations. The others are compared by test_paper_rows.py."""
    seeds = nova_study.seeds_of(False)
    planned = nova_study.plan(programs, ["is", "dt"], seeds, quick=False)
    times = nova_study.study([one for one in planned if one[0] == nova.CHOSEN], workers=1)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "paper-rows.md").read_text()
    rows = {row[0]: row for row in rows_page.read(page)["nova"]}
    found = [rows_page.cells(nova_study.unchanged_row(times, kernel, "")) for kernel in ("is", "dt")]
    assert found == [rows[row[0]] for row in found]


def test_several_processes_of_a_vm_compute_side_by_side(programs: Path) -> None:
    """Each has a core of its own: four on one host take a quarter of the time of one. Each host is in the platform once,
    so that they share its cable.
    """
    hosts = nova.placements(nova.SEVERAL, 1)["ours"]
    ranks = tuple(host for host in hosts for _ in range(4))
    one, four = (nova_smpi.KernelRun(programs, "ep", 1, nova.SEVERAL, 1, of) for of in (hosts, ranks))
    assert nova_smpi.seconds(four) == pytest.approx(nova_smpi.seconds(one) / 4, rel=0.01)
    routes = [nova_smpi.platform(each).splitlines()[0].split()[3] for each in (one, four)]
    assert routes[0] == routes[1]


def test_what_is_compared_runs_all_kernels_and_changes_bt_alone() -> None:
    """On both networks, and where it is asked whether BT gains most, all kernels run; under the other changes BT. A rank
    runs on its VM's host. --quick has no changed settings.
    """
    planned = nova_study.plan(Path(), ["bt", "cg"], range(1, 2), quick=False)
    kernels: dict[str, list[str]] = {}
    for setting, kernel, runs in planned:
        kernels.setdefault(setting.name, []).append(kernel)
        for of in runs.values():
            assert [Counter(run.hosts) for run in of] == [
                dict.fromkeys(run.hosts, setting.processes) for run in of
            ]
    both = [nova.CHOSEN, nova.ETHERNET, *nova.COMPARED]
    assert kernels == {
        **{setting.name: ["bt", "cg"] for setting in both},
        **{setting.name: ["bt"] for setting in nova.CHANGES},
    }
    quick = nova_study.plan(Path(), ["bt"], range(1, 2), quick=True)
    assert [setting for setting, _, _ in quick] == [nova.CHOSEN, nova.ETHERNET]


@pytest.mark.parametrize(("setting", "least", "most"), [(nova.CHOSEN, 0.0, 0.5), (nova.BUSY, 0.999, 0.999)])
def test_others_send_for_the_share_of_the_setting(
    setting: nova.NovaSetting, least: float, most: float
) -> None:
    duties = [group.duty for seed in SEEDS for group in nova.other_groups(setting, seed)]
    assert all(least <= duty <= most for duty in duties)


def test_figures_and_their_points_are_written(programs: Path, tmp_path: Path) -> None:
    """--out draws all kernels by stock and ours with mean, shortest and longest run of each, and hop-bytes of a split."""
    chosen = ["--quick", "--seeds", "2", "--kernel", "is", "--kernel", "dt", "--jobs", "1"]
    done = CliRunner().invoke(cli, ["paper", "nova", *chosen, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    for name in ("times.png", "splits.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    splits = (tmp_path / "out" / "splits.csv").read_text().splitlines()
    assert splits[1] == "0,120" and splits[9] == "8,248" and splits[17] == "16,120"
    header, *lines = (tmp_path / "out" / "times.csv").read_text().splitlines()
    assert header == "kernel,placed_by,mean,shortest,longest"
    assert {tuple(line.split(",")[:2]) for line in lines} == {
        (kernel, who) for kernel in ("is", "dt") for who in nova.POLICIES
    }


def test_equal_times_have_whiskers_of_no_length() -> None:
    """On a switch of its own the group takes the same time with every seed. The mean of such times may differ from them
    in the last bit; the figure is drawn all the same, and its bars and whiskers are the mean, the least and the most.
    """
    times = nova_study.KernelTimes(
        "bt", 1, nova.CHOSEN, {"stock": [0.15, 0.2, 0.1], "ours": [0.98 / 10, 0.98 / 10, 0.98 / 10]}
    )
    containers = nova_figure.times_figure([times]).axes[0].containers
    stock, ours = (each for each in containers if hasattr(each, "errorbar"))
    assert [bars.patches[0].get_height() for bars in (stock, ours)] == pytest.approx([1.0, 0.098 / 0.15])
    ends = [bars.errorbar.lines[2][0].get_segments()[0][:, 1] for bars in (stock, ours)]
    assert ends[0] == pytest.approx([0.1 / 0.15, 0.2 / 0.15]) and ends[1] == pytest.approx([0.098 / 0.15] * 2)
    below, above = whiskers([0.098] * 3)
    assert statistics.fmean([0.098] * 3) > 0.098 and 0 < below < 1e-16 and above == 0


def kernel_times(kernel: str, stock: list[float], ours: list[float]) -> nova_study.KernelTimes:
    return nova_study.KernelTimes(kernel, 1, nova.CHOSEN, {"stock": stock, "ours": ours})


def test_bt_is_judged_by_value_and_by_side() -> None:
    """A quarter of the paper's figure. BT must gain most of all kernels. What no noise can change is given."""
    bt = kernel_times("bt", [7.0, 10.0], [7.4, 7.4])
    rows = {row.what: row for row in nova_study.rows([bt, kernel_times("is", [8.0, 8.0], [4.0, 4.0])])}
    mean = rows["BT, mean time (%)"]
    assert (mean.ours, mean.value, mean.side) == ("-12.9", True, True)
    assert rows["BT, longest time (%)"].value is False and rows["BT, spread by stock (%)"].value is False
    assert rows["BT among the kernels"].side is False
    given = {what for what, row in rows.items() if row.given and "hop-bytes" not in what}
    assert given == {"BT, spread by ours (%)", "BT, spread", "BT, longest time"}
    assert not any(rows[f"{name} unchanged"].measured for name in ("DC", "UA"))


def test_other_kernels_are_unchanged_within_five_points() -> None:
    """Each is a row of its own. EP, which no placement changes, is given."""
    times = [
        kernel_times(kernel, [100.0], [ours]) for kernel, ours in (("is", 95.1), ("cg", 94.9), ("ep", 100.0))
    ]
    rows = {row.what[:2]: row for row in nova_study.rows(times) if "unchanged: mean" in row.what}
    assert (rows["IS"].value, rows["CG"].value) == (True, False)
    assert [name for name, row in rows.items() if row.given] == ["EP"]


def test_a_program_that_fails_is_one_sentence(programs: Path) -> None:
    """A run that ends with another exit code than 0 says so, and with which."""
    with pytest.raises(ChildProcessError, match="^smpirun ended with exit code 2: ") as failed:
        nova_smpi.seconds(nova_smpi.KernelRun(programs, "none", 1, ALONE, 0, tuple(range(RANKS))))
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_nothing_stays_behind_an_interrupt(ending: signal.Signals, tmp_path: Path, programs: Path) -> None:
    """If it is interrupted or asked to end under way, the command leaves no file and no process of a simulation."""
    arguments = ["paper", "nova", "--kernel", "lu", "--seeds", "2", "--jobs", "2"]
    started = subprocess.Popen(
        [sys.executable, "-c", "from topolane.cli import main; main()", *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until(lambda: simulations(tmp_path) > 0)
    started.send_signal(ending)
    assert started.wait(DEADLINE) == 128 + ending
    until(lambda: simulations(tmp_path) == 0)
    assert list(tmp_path.iterdir()) == []


def simulations(folder: Path) -> int:
    """Processes whose command line names the folder and SMPI."""
    found = 0
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            text = command.read_bytes()
            found += b"smpimain" in text and str(folder).encode() in text
    return found


def test_figures_are_of_all_seeds() -> None:
    """Mean, longest and spread ((longest - shortest) / longest), and their changes against stock."""
    times = nova_study.KernelTimes("bt", 1, nova.CHOSEN, {"stock": [6.0, 10.0], "ours": [4.0, 4.0]})
    assert (times.mean("stock"), times.most("stock"), times.spread("stock")) == (
        8.0,
        10.0,
        pytest.approx(0.4),
    )
    assert (times.change("ours"), times.change_of_most("ours"), times.spread("ours")) == (
        pytest.approx(-0.5),
        pytest.approx(-0.6),
        0.0,
    )
