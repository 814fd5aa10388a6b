"""Options that say where a job may run. Of the nodes only what the options promise is seen."""

from __future__ import annotations

from observed import Observed

from .registry import scenario


@scenario
def switches(slurm: Observed) -> None:
    """`--switches`, with and without a time limit"""
    slurm.runs("one", "-N4", "--switches=1", "--exclusive")
    slurm.see("leaves", slurm.leaves("one"))
    slurm.ends("one")
    slurm.submit("wide", "-N5", "--switches=1@0", "--exclusive")
    slurm.reaches("wide", "RUNNING")
    slurm.ends("wide")
    slurm.runs("pair", "-N6", "--switches=2", "--exclusive")
    slurm.see("leaves", slurm.leaves("pair"))


@scenario
def switches_give_up(slurm: Observed) -> None:
    """`--switches=1@TIME`: the job waits so long for one switch, then takes what there is"""
    for first in (1, 5, 9, 13):
        slurm.runs(f"half{first}", f"--nodelist=node[{first}-{first + 1}]", "--exclusive")
    slurm.submit("four", "-N4", "--switches=1@00:00:04", "--exclusive")
    slurm.reaches("four", "PENDING", "Resources")
    slurm.reaches("four", "RUNNING")
    slurm.see("more than one leaf", slurm.leaves("four") > 1)


@scenario
def partitions(slurm: Observed) -> None:
    """`-p a,b`: the first partition with room"""
    slurm.runs("full", "-N8", "--exclusive", "--partition=left")
    facts = slurm.runs("either", "-N2", "--partition=left,right")
    slurm.see("partition", facts["Partition"])
    slurm.runs("rest", "-N6", "--exclusive", "--partition=left,right")
    slurm.waits("neither", "Resources", "-N3", "--exclusive", "--partition=left,right")
    slurm.ends("full")
    slurm.reaches("neither", "RUNNING")
    slurm.submit("wrong", "-N9", "--partition=left,right")


@scenario
def named_nodes(slurm: Observed) -> None:
    """`-w` with all and with some of the nodes"""
    slurm.runs("exact", "--nodelist=node[3,6]")
    slurm.see("nodes", slurm.hosts("exact"))
    slurm.ends("exact")
    slurm.runs("more", "-N3", "--nodelist=node10", "--exclusive")
    slurm.see("named", 10 in slurm.hosts("more"))
    slurm.waits("taken", "Resources", "-N2", "--nodelist=node10", "--exclusive")
    slurm.runs("few", "-N1", "--nodelist=node[1-2]")
    slurm.submit("wrong", "--nodelist=node99")


@scenario
def excluded_nodes(slurm: Observed) -> None:
    """`-x`"""
    slurm.runs("last", "-N4", "--exclude=node[1-11]", "--exclusive")
    slurm.see("none excluded", min(slurm.hosts("last")) > 11)
    slurm.waits("two", "Resources", "-N2", "--exclude=node[1-11]", "--exclusive")
    slurm.submit("none", "-N6", "--exclude=node[1-11]")


@scenario
def features(slurm: Observed) -> None:
    """`-C`: and, or, counts, and a feature that no node has"""
    for name, options in {
        "one": ("-N3", "--constraint=ib"),
        "and": ("-N3", "--constraint=ib&fat"),
        "or": ("-N4", "--constraint=ib|eth"),
        "same": ("-N4", "--constraint=[ib|eth]"),
    }.items():
        slurm.runs(name, *options, "--exclusive")
        slurm.ends(name)
    slurm.runs("counts", "-N4", "--constraint=[ib*2&eth*2]", "--exclusive")
    slurm.see("of each", sorted(host > 8 for host in slurm.hosts("counts")))
    slurm.submit("wrong", "-N1", "--constraint=gold")
    slurm.submit("many", "-N5", "--constraint=ib&fat")


@scenario
def preferred_features(slurm: Observed) -> None:
    """`--prefer`"""
    slurm.runs("fat", "-N2", "--prefer=fat", "--exclusive")
    slurm.see("all fat", all(host in {*range(5, 9), *range(13, 17)} for host in slurm.hosts("fat")))
    slurm.submit("gold", "-N2", "--prefer=gold", "--exclusive")


@scenario
def weights(slurm: Observed) -> None:
    """Weights of nodes: the lightest nodes first"""
    slurm.node("node[1-4]", "Weight=40")
    slurm.node("node[5-8]", "Weight=30")
    slurm.node("node[9-12]", "Weight=20")
    slurm.node("node[13-16]", "Weight=10")
    try:
        for number in range(4):
            slurm.runs(f"four{number}", "-N4", "--exclusive")
            slurm.see("leaf", (slurm.hosts(f"four{number}")[0] - 1) // 4)
        slurm.ends(*(f"four{number}" for number in range(4)))
        slurm.runs("one", "-n1")
        slurm.see("lightest", slurm.hosts("one")[0] > 12)
    finally:
        slurm.node("node[1-16]", "Weight=1")


@scenario
def contiguous(slurm: Observed) -> None:
    """`--contiguous`"""
    slurm.runs("three", "-N3", "--contiguous", "--exclusive")
    hosts = slurm.hosts("three")
    slurm.see("contiguous", hosts[-1] - hosts[0] == 2)
    slurm.ends("three")
    slurm.runs("middle", "--nodelist=node8", "--exclusive")
    slurm.waits("nine", "Resources", "-N9", "--contiguous", "--exclusive")


@scenario
def ranges(slurm: Observed) -> None:
    """Ranges of nodes, `--mincpus`, `--spread-job`, `--use-min-nodes`"""
    slurm.runs("range", "-N2-4", "--exclusive")
    slurm.ends("range")
    slurm.runs("minimum", "-N2-4", "--use-min-nodes", "--exclusive")
    slurm.ends("minimum")
    slurm.runs("cores", "-N2", "--mincpus=12")
    slurm.ends("cores")
    slurm.runs("spread", "-n8", "--spread-job")
    slurm.ends("spread")
    slurm.runs("tasks", "-n40", "--ntasks-per-node=10")
    slurm.ends("tasks")
    slurm.runs("threads", "-n6", "-c5")
    slurm.submit("many", "-n257")
    slurm.submit("large", "-n1", "-c17")
