"""Ten jobs that share leaves and pods of a simulated InfiniBand subnet, and no link: the tables of `topolane routes`.

    python demo.py [STATE]

What it prints is kept in docs/routes-demo.txt. Needs ibsim, opensm and infiniband-diags (`make routes-demo` gets
them). STATE holds jobs of other placements on the same machine. Exit code 1 if a packet of a job leaves its links.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from owned_jobs import JOBS, LATER, MACHINE, STORAGE, Traced, placed_by, state, trace
from subnet import ask, missing, running, sweep, topolane
from tables_text import Text
from topolane import Machine

Jobs = Sequence[Mapping[str, Any]]

SHOWN = 8
"""Ways that ibtracert follows too, for every job."""


def main() -> int:
    """The demonstration; its exit code."""
    if reason := missing():
        raise SystemExit(f"the demonstration cannot run: {reason}")
    given = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else state(JOBS)
    with tempfile.TemporaryDirectory(prefix="routes-demo-") as folder:
        place = Path(folder)
        (place / "toy.toml").write_text(MACHINE)
        with running(place / "toy.toml", place) as environment:
            return Demo(environment, place).run(given)


class Demo:
    """A subnet and what is shown of it."""

    def __init__(self, environment: dict[str, str], place: Path) -> None:
        self.environment, self.place = environment, place
        self.tables = place / "lfts"

    def run(self, given: dict[str, Any]) -> int:
        """Shows everything; 1 if a job's traffic was not where it should be."""
        self.ftree = sweep(self.environment, "ftree").read_text()
        net = self.place / "net.ibnetdiscover"
        net.write_text(ask(self.environment, "ibnetdiscover").stdout)
        self.net, self.machine = net.read_text(), Machine.parse(net.read_text(), str(net))
        say(f"ibsim runs a subnet of {self.machine.nodes} hosts, opensm sweeps it by its fat-tree engine.")
        jobs: Jobs = given["running"]
        self.show_jobs(jobs)
        say(
            "\nThe tables of the fat-tree engine, every ordered pair of every job followed through them. The last column:"
        )
        say(
            "every node sends to the one s places on among the job's, for every s; flows on the busiest link.\n"
        )
        self.show_traced(jobs, self.ftree)
        say("\nThe tables of the jobs' links:\n")
        installed = self.install(given)
        self.check_installed(installed)
        kept = self.show_traced(jobs, installed)
        kept &= self.show_ibtracert(jobs, installed)
        if len(sys.argv) == 1:
            kept &= self.show_change(installed)
            self.show_service()
            kept &= self.show_placed()
        say("\nNo packet of a job leaves its links." if kept else "\nNOT KEPT: see above.")
        return 0 if kept else 1

    def topolane(self, given: dict[str, Any], *options: str) -> str:
        """Runs `topolane routes` on a state."""
        (self.place / "state.json").write_text(json.dumps(given))
        files = ["--machine", "net.ibnetdiscover", "--state", "state.json", "--out", "lfts"]
        say("$ topolane routes", *files, *options)
        names = {"--machine", "--state", "--out", "--previous"}
        paths = [
            str(self.place / word) if option in names else word for option, word in pairs([*files, *options])
        ]
        return topolane("routes", *paths)

    def install(self, given: dict[str, Any], *options: str) -> str:
        """Writes the tables of a state and lets opensm load them; what the switches say they have."""
        said = self.topolane(given, *options)
        say(said.splitlines()[0].replace(str(self.place) + "/", ""))
        if options:
            say(*said.splitlines()[1:2])
        say("$ opensm -o -R file -U lfts && dump_fts")
        sweep(self.environment, "file", "-U", str(self.tables))
        return ask(self.environment, "dump_fts").stdout

    def check_installed(self, installed: str) -> None:
        """Says whether the switches have what the file says."""
        wanted, found = Text("", self.tables.read_text()).port, Text("", installed).port
        differ = sum(wanted.get(entry) != found.get(entry) for entry in wanted | found)
        say(f"{len(found):,} entries read back from the switches, {differ} of them not as in the file\n")

    def show_jobs(self, jobs: Jobs) -> None:
        """Lists the jobs, and how much of leaves and pods they share."""
        leaves: dict[str, set[str]] = {}
        say(f"\n{'job':>4} {'nodes':>6} {'leaves':>7} {'pods':>5} {'links owned':>12}   hosts")
        groups = {level: self.machine.groups(level) for level in (1, 2)}
        for job in jobs:
            found = {
                level: {name for start, end, name in of if any(start <= node < end for node in job["nodes"])}
                for level, of in groups.items()
            }
            for leaf in found[1]:
                leaves.setdefault(leaf, set()).add(str(job["id"]))
            hosts = self.machine.hostlist(sorted(job["nodes"]))
            hosts = hosts if len(hosts) <= 60 else hosts[:57] + "..."
            say(
                f"{job['id']:>4} {len(job['nodes']):>6} {len(found[1]):>7} {len(found[2]):>5} "
                f"{len(job['links']):>12}   {hosts}"
            )
        shared = sum(len(jobs) > 1 for jobs in leaves.values())
        say(f"{shared} of the {len(leaves)} leaves with a job have several.")

    def show_traced(self, jobs: Jobs, tables: str) -> bool:
        """Follows every pair through tables; whether all stay on their job's links."""
        found = trace(self.machine, jobs, Text(self.net, tables))
        columns = ("pairs", "leave its links", "use another's", "links used", "flows on one")
        widths = [max(7, len(column)) for column in columns]
        say(f"{'job':>4}", *(f"{column:>{width}}" for column, width in zip(columns, widths)))
        for job, seen in [*found.items(), ("all", total(found))]:
            row = (seen.pairs, seen.outside, seen.others, len(seen.used), seen.most)
            say(f"{job:>4}", *(f"{value:>{width},}" for value, width in zip(row, widths)))
        return not any(seen.outside for seen in found.values())

    def show_ibtracert(self, jobs: Jobs, tables: str) -> bool:
        """Lets ibtracert follow some pairs of every job; whether it goes the same ways."""
        text, drawn = Text(self.net, tables), random.Random(8)
        device = {name: identity for identity, name in text.name.items()}
        same = asked = 0
        example = ""
        for job in jobs:
            for _ in range(SHOWN):
                pair = [device[self.machine.node_name(node)] for node in drawn.sample(job["nodes"], 2)]
                said = ask(self.environment, "ibtracert", *(str(text.lid[end]) for end in pair)).stdout
                steps = re.findall(r'^\[(\d+)\] -> .*"(.*)"$', said, re.MULTILINE)
                walk = text.walk(*pair)
                same += steps == [(str(port), text.name[text.far[at, port]]) for at, port in walk]
                asked += 1
                example = max(example, said, key=lambda text: text.count("\n"))
        say(f"\nibtracert follows {asked} of the pairs, {same} of them over the same ports. One of them:\n")
        say(example.rstrip())
        return same == asked

    def show_change(self, before: str) -> bool:
        """Lets a job end and another take its place; whether only their entries change."""
        say("\nJob 4 ends, and job 11 takes some of its nodes and links:\n")
        (self.place / "before").write_text(self.tables.read_text())
        later = state([LATER if job.id == 4 else job for job in JOBS])
        after = self.install(later, "--previous", "before")
        old, new = Text("", before).port, Text("", after).port
        changed = {entry for entry in old | new if old.get(entry) != new.get(entry)}
        text = Text(self.net, after)
        lid = {name: text.lid.get(device) for device, name in text.name.items()}
        own = {
            job["id"]: {lid[self.machine.node_name(node)] for node in job["nodes"]}
            for job in later["running"]
        }
        others = {job: lids for job, lids in own.items() if job != LATER.id}
        touched = sum(target in lids for _, target in changed for lids in others.values())
        say(
            f"{len(changed):,} of {len(new):,} entries in the switches differ, {touched} of them lead to a node of a"
        )
        say("job that went on running\n")
        return self.show_traced(later["running"], after) and touched == 0

    def show_service(self) -> None:
        """Counts the routes of storage over dedicated links, without and with reserved uplink slots."""
        say(f"\n{STORAGE} are storage. The jobs as before, but none owns the last uplink slot of a switch:\n")
        thin = state(JOBS, lanes=5)
        for options in ([], ["--service-uplinks", "1"]):
            said = self.topolane(thin, "--service", STORAGE, *options)
            say(next(line for line in said.splitlines() if line.startswith("of ")))

    def show_placed(self) -> bool:
        """Jobs that the policy placed, after others came and went; whether they keep to their links."""
        say("\nJobs that the policy 'dedicated' has placed among others that ended:")
        given = placed_by("dedicated", self.machine, seed=3)
        self.show_jobs(given["running"])
        say()
        self.show_traced(given["running"], self.ftree)
        say()
        installed = self.install(given)
        self.check_installed(installed)
        return self.show_traced(given["running"], installed)


def pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """Every word with the one before it."""
    return list(zip(["", *words], words))


def total(found: Mapping[int, Traced]) -> Traced:
    """The sums over all jobs."""
    of = found.values()
    sums = (sum(seen.pairs for seen in of), sum(seen.outside for seen in of), sum(seen.others for seen in of))
    return Traced(*sums, set().union(*(seen.used for seen in of)), max(seen.most for seen in of))


def say(*words: object) -> None:
    """Prints at once."""
    print(*words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
