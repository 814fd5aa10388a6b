"""`--segment` and its options on a real Slurm (25.11 and later), and the segments that switch/nvidia_imex gets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import links_in_tree as tree
import pytest
from live_cluster import RELEASE, Inside
from plugin_site import MACHINE, Site, plugin_cluster, plugin_conf
from waiting import until

if tuple(map(int, RELEASE.split("."))) < (25, 11):
    pytest.skip(f"Slurm {RELEASE} has no options of segments", allow_module_level=True)

LEAF = 6
BLOCKS = (
    "".join(f"BlockName=b{n} Nodes=node[{6 * n - 5}-{6 * n}]\n" for n in range(1, 5)) + "BlockSizes=6,12,24\n"
)
RULES = """\
Partition=pblock Policy=slurm-block
Partition=psegments Policy=segments
Partition=pisolated Policy=segments-isolated
"""
CHANNELS = "--network=unique-channel-per-segment"


@pytest.fixture(scope="module", params=["block", "tree"])
def site(
    request: pytest.FixtureRequest, built: object, inside: Inside, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Leaves of the machine file are blocks of topology/block, or leaves of topology/tree."""
    files = {"topolane.conf": plugin_conf(built, "machine.toml", RULES, Stock=request.param)}
    if request.param == "block":
        files["topology.conf"] = BLOCKS
    conf = ("SwitchType=switch/nvidia_imex", "DebugFlags=NO_CONF_HASH,Switch", "SlurmctldDebug=verbose")
    options = ("--leaf", LEAF, "--pod", 2, "--partitions", "pblock psegments pisolated pstock")
    directory = tmp_path_factory.mktemp(request.param)
    given = {"machine": MACHINE, "rules": RULES, "conf": conf, "conf_files": files}
    with plugin_cluster(built, inside, directory, *options, **given) as cluster:
        yield Site(cluster, built)


@pytest.fixture
def blocks(site: Site) -> Site:
    if not has_blocks(site):
        pytest.skip("topology/tree has no blocks")
    return site


def has_blocks(site: Site) -> bool:
    return "BlockName" in (site.cluster.directory / "topology.conf").read_text()


def block(node: str) -> int:
    return (int(node.removeprefix("node")) - 1) // LEAF


def segments(site: Site, job: int) -> list[set[str]]:
    """The nodes of each channel that switch/nvidia_imex gave to a job; empty for a channel of the whole job."""
    line = re.compile(rf"allocating channel \d+ to JobId={job} with node_list (\S+)$", re.MULTILINE)
    return [set() if hosts == "(null)" else tree.expanded(hosts) for hosts in line.findall(site.log())]


def chosen(site: Site, *words: object) -> set[str]:
    """The nodes that a job gets in the present state. It is gone again then."""
    job = site.start(*words)
    nodes = site.nodes(job)
    end(site, job)
    return nodes


def end(site: Site, *jobs: int) -> None:
    """Cancels jobs and waits until Slurm has their nodes back."""
    site.cluster.run("scancel", *jobs)
    listed = ",".join(map(str, jobs))
    until(lambda: not site.tried("squeue", "-h", "-j", listed).stdout, f"the end of {listed}")


def take(site: Site, *hosts: str) -> list[int]:
    """Jobs of stock Slurm on these nodes, of one block each."""
    return [site.start("-p", "pstock", "-w", each, "-N", len(tree.expanded(each))) for each in hosts]


@pytest.mark.parametrize("partition", ["pblock", "psegments", "pisolated"])
def test_each_segment_has_a_channel(site: Site, partition: str) -> None:
    """Its nodes are those of one block, and together they are the job's, after the plugin has asked stock Slurm several
    times: while the job waits, 12 nodes are idle, and only two of its three segments fit."""
    site.wait_idle()
    first = site.start("-p", partition, "-N6", "--segment=3", "-w", "node[1-6]", CHANNELS)
    blockers = take(site, "node7", "node13", "node[19-22]")
    waits = site.cluster.submit("-p", partition, "-N9", "--segment=3", CHANNELS, script="sleep 600")
    until(lambda: waits in site.published().waiting, "the refusal")
    end(site, *blockers)
    until(lambda: bool(site.nodes(waits)), "the start of the job that waits")
    for job, count in ((first, 2), (waits, 3)):
        found = segments(site, job)
        assert len(found) == count and all(len(nodes) == 3 for nodes in found), found
        assert all(len({block(node) for node in nodes}) == 1 for nodes in found), found
        assert set().union(*found) == site.nodes(job)


def test_a_job_without_the_option_has_one_channel(site: Site) -> None:
    """For all its nodes."""
    site.wait_idle()
    job = site.start("-p", "psegments", "-N6", "--segment=3")
    assert segments(site, job) == [set()]


ASKS = (
    ("-N4", "--segment=2", "--spread-segments"),
    ("-N6", "--segment=2", "--spread-segments"),
    ("-N9", "--segment=3", "--consolidate-segments"),
    ("-N4", "--segment=2", "--consolidate-segments", "--spread-segments"),
    ("-N8", "--segment=4"),
)


def test_slurm_block_chooses_as_stock_slurm(blocks: Site) -> None:
    """The policy gives the nodes that stock topology/block gives in the same state, whatever the job says of its segments."""
    blocks.wait_idle()
    take(blocks, "node[1-3]", "node[7-9]", "node13")
    for words in ASKS:
        assert chosen(blocks, "-p", "pblock", *words) == chosen(blocks, "-p", "pstock", *words), words


def test_isolated_segments_that_are_spread(blocks: Site) -> None:
    """Each is in a block of its own, and the job crosses no leaf that another isolated job crosses."""
    blocks.wait_idle()
    other = blocks.start("-p", "pisolated", "-N8", "--segment=4", "--spread-segments")
    job = blocks.start("-p", "pisolated", "-N4", "--segment=2", "--spread-segments")
    places = [{block(node) for node in blocks.nodes(each)} for each in (other, job)]
    assert [len(each) for each in places] == [2, 2] and not places[0] & places[1]


def test_segments_that_cannot_be_spread(site: Site) -> None:
    """Without topology/block nothing spreads segments: the job is refused when it is submitted. That they lie close to each
    other is no problem."""
    if has_blocks(site):
        pytest.skip("topology/block spreads segments")
    site.wait_idle()
    words = ("sbatch", "-p", "psegments", "-N4", "--segment=2", "-o", "/dev/null", "--wrap", "true")
    refused = site.tried(*words, "--spread-segments")
    assert refused.returncode and "topology configuration" in refused.stderr, refused.stderr
    job = site.start("-p", "psegments", "-N4", "--segment=2", "--consolidate-segments")
    assert len({block(node) for node in site.nodes(job)}) == 1
