"""The tree of a live cluster with its jobs, as SVG."""

from __future__ import annotations

from topolane.report.data import MachinePicture
from topolane.report.figures.fat_tree import facts, tree
from topolane.report.holders import held_by
from topolane.report.style import drawing
from topolane.report.svg import to_svg, with_tips
from topolane.report.units import plural
from topolane.slurm.links import Links
from topolane.slurm.look import Look
from topolane.slurm.usage import closed_nodes, holding
from topolane.slurm.waits import clock


def svg(look: Look) -> str:
    """The picture, drawn as in the report of a run."""
    snapshot, machine = look.snapshot, look.machine
    holders = {job: nodes for job, nodes in holding(snapshot, machine).items() if nodes}
    ranges = {job: [(node, node + 1) for node in nodes] for job, nodes in holders.items()}
    picture = MachinePicture.of(machine)
    apart = Links(machine, holders, {}, look.owned).apart
    state = held_by(ranges, picture, snapshot.time, closed_nodes(snapshot, machine), apart)
    jobs = {job: snapshot.jobs[job] for job in ranges}
    with drawing():
        drawn = tree(picture, state, {job: f"job {record.number}" for job, record in jobs.items()})
        title = f"{clock(snapshot.time, 0)}: {facts(picture, state)}"
        drawn.suptitle(title, x=0.01, ha="left", fontsize=9)
        text = to_svg(drawn)
    tips = {
        f"job-{job}": f"job {record.number} {record.name} of {record.user}: "
        f"{plural(state.size[job], 'node')}, {record.nodes}"
        for job, record in jobs.items()
    }
    return with_tips(text, tips)
