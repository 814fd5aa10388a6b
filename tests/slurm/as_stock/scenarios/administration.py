"""What an administrator does to the cluster while jobs run and wait."""

from __future__ import annotations

import re

from observed import Observed

from .registry import scenario


@scenario
def reconfigured(slurm: Observed) -> None:
    """`scontrol reconfigure` while jobs run and wait"""
    slurm.runs("most", "-N12", "--exclusive")
    slurm.waits("wide", "Resources", "-N8", "--exclusive")
    slurm.ask("scontrol", "reconfigure")
    slurm.reaches("most", "RUNNING")
    slurm.reaches("wide", "PENDING", "Resources")
    slurm.ends("most")
    slurm.reaches("wide", "RUNNING")


@scenario
def drained(slurm: Observed) -> None:
    """A drained node"""
    slurm.ask("scontrol", "update", "NodeName=node7", "State=DRAIN", "Reason=test")
    slurm.idle(15)
    slurm.waits("all", "ReqNodeNotAvail", "-N16", "--exclusive")
    slurm.waits("named", "ReqNodeNotAvail", "-w", "node7")
    slurm.ends("all")
    slurm.runs("rest", "-N15", "--exclusive")
    slurm.ends("rest")
    slurm.ask("scontrol", "update", "NodeName=node7", "State=RESUME")
    slurm.reaches("named", "RUNNING")


@scenario
def failed_node(slurm: Observed) -> None:
    """A node that fails under a job: the job is requeued and starts elsewhere"""
    slurm.runs("job", "-N2", "-w", "node[3-4]", "--exclusive")
    slurm.runs("other", "-N2", "-w", "node[5-6]", "--no-requeue", "--exclusive")
    slurm.ask("scontrol", "update", f"JobId={slurm.jobs['job']}", "ReqNodeList=", name="any nodes")
    slurm.ask("scontrol", "update", "NodeName=node[4,5]", "State=DOWN", "Reason=test")
    slurm.reaches("other", "NODE_FAIL")
    slurm.reaches("job", "PENDING")


@scenario
def unnamed_node(slurm: Observed) -> None:
    """A node that topology.conf does not name"""
    slurm.topology(lambda text: text.replace("Nodes=node[13-16]", "Nodes=node[13-15]"))
    slurm.idle(16)
    slurm.submit("one", "-n1", "-w", "node16")
    slurm.runs("four", "-N4", "--exclusive")
    slurm.ends("four")
    slurm.runs("fifteen", "-N15", "--exclusive")
    slurm.ends("fifteen")
    slurm.submit("all", "-N16", "--exclusive")


@scenario
def changed_topology(slurm: Observed) -> None:
    """Leaves of topology.conf change while a job runs"""
    slurm.runs("job", "-N4", "--exclusive")

    def wider(text: str) -> str:
        text = text.replace("leaf1 Nodes=node[1-4]", "leaf1 Nodes=node[1-8]")
        return re.sub("SwitchName=leaf2 .*\n", "", text).replace("leaf[1-2]", "leaf1")

    slurm.topology(wider)
    slurm.reaches("job", "RUNNING")
    slurm.runs("next", "-N4", "--exclusive")
    slurm.ask("scontrol", "show", "topology")


@scenario
def shown_topology(slurm: Observed) -> None:
    """`scontrol show topology`: nodes and all"""
    for what in ((), ("leaf2",), ("pod1",), ("none",)):
        done = slurm.run("scontrol", "show", "topology", *what)
        slurm.see(f"topology {' '.join(what)}", [done.returncode, done.stdout, done.stderr])
    done = slurm.run("scontrol", "show", "topology", "node=node7")
    slurm.see("topology of a node", [done.returncode, done.stdout, done.stderr])


@scenario
def shown_nodes(slurm: Observed) -> None:
    """`sinfo` and `scontrol show node`"""
    slurm.runs("whole", "-w", "node3", "--exclusive")
    slurm.runs("part", "-n4", "-w", "node11", "--gres=gpu:1")
    for name, options in {
        "sinfo": ("-h", "-o", "%P %a %D %T %C %G %f"),
        "sinfo by node": ("-hN", "-o", "%N %T %C %w"),
    }.items():
        done = slurm.run("sinfo", *options)
        slurm.see(name, [done.returncode, sorted(done.stdout.splitlines()), done.stderr])
    shown = slurm.run("scontrol", "-o", "show", "node", "node11").stdout
    wanted = r"(?:NodeName|CPUAlloc|CPUEfctv|CPUTot|AvailableFeatures|Gres|State|Weight|Partitions|CfgTRES|AllocTRES)=\S*"
    slurm.see("node11", re.findall(wanted, shown))
