"""Tries Topolane on the cloud of cloud.sh, and prints what was asked for and where every VM went.

    cloud.sh run DIR python transcript.py DIR [stock] [topolane]

Exit code 1 if a rule is broken; the sentence that says which comes last.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from client import Cloud, Failure

HERE = pathlib.Path(__file__).parent
SOLVER, MESH = "solver", "mesh"
LETTERS = {SOLVER: "s", MESH: "m"}
# Hosts of others per leaf: the first leaf has 14 left, the second 17, the third 8, the fourth 18.
OTHERS = [4, 1, 10, 0]


def hops(per_leaf: list[int]) -> int:
    """Inter-switch links between the hosts of each pair of VMs, summed: none in a leaf, two between leaves."""
    return 2 * (pairs(sum(per_leaf)) - sum(pairs(n) for n in per_leaf))


def pairs(vms: int) -> int:
    return vms * (vms - 1) // 2


def rule(holds: bool, text: str) -> None:
    if not holds:
        raise Failure(f"rule broken: {text}")
    print(f"    holds: {text}")


class Sequence:
    """The same requests, whichever the scheduler."""

    def __init__(self, cloud: Cloud, scheduler: str, directory: str) -> None:
        self.cloud, self.scheduler, self.directory = cloud, scheduler, directory
        self.ours = scheduler != "stock"
        self.plan = str(pathlib.Path(directory, f"plan-{scheduler}.json"))

    def per_leaf(self, group: str) -> list[int]:
        hosts = self.cloud.where(group)
        return [sum(hosts[host] for host in leaf) for leaf in self.cloud.leaves.values()]

    def show(self, *groups: str) -> None:
        for line in self.cloud.map(LETTERS):
            print(f"    {line}")
        for group in groups:
            counts = self.per_leaf(group)
            held = ", ".join(f"{n} in {leaf}" for leaf, n in zip(self.cloud.leaves, counts) if n)
            # The paper counts switches, one more than the links between them.
            alone = pairs(sum(counts))
            print(
                f"    {group}: {held}; hops {hops(counts)}, hop-bytes {hops(counts) + alone} (least {alone})"
            )

    def distinct(self, group: str, count: int) -> None:
        hosts = self.cloud.where(group)
        rule(len(hosts) == sum(hosts.values()) == count, f"the {count} VMs of {group} are on {count} hosts")

    def start(self) -> None:
        print(f"\n=== nova-scheduler: {self.scheduler} ===\n")
        self.cloud.clear()
        command = [str(HERE / "cloud.sh"), "scheduler", self.directory, self.scheduler]
        subprocess.run(command, check=True)
        leaves = self.cloud.leaves.values()
        self.cloud.fill([host for leaf, n in zip(leaves, OTHERS) for host in leaf[:n]])
        print("VMs of others (x) hold some of the hosts (.), each a whole one.")
        self.show()

    def boot(self, name: str, group: str, count: int, suffix: str = "") -> None:
        print(
            f"\nAsked for: {count} VMs in one request, server group {name} (anti-affinity), "
            "hint topolane:placement=compact."
        )
        start = time.monotonic()
        self.cloud.boot(name + suffix, group, count, "compact")
        print(f"    active after {time.monotonic() - start:.0f} s")

    def groups(self) -> None:
        solver = self.cloud.group(SOLVER)
        self.boot(SOLVER, solver, 16)
        self.show(SOLVER)
        self.distinct(SOLVER, 16)
        if self.ours:
            rule(self.per_leaf(SOLVER) == [0, 16, 0, 0], "all 16 on the leaf that they fill best, the second")
        self.boot(SOLVER, solver, 2, "-more")
        self.show(SOLVER)
        self.distinct(SOLVER, 18)
        if self.ours:
            rule(sorted(self.per_leaf(SOLVER)) == [0, 0, 1, 17], "17 together: the leaf has room for no more")
        self.boot(MESH, self.cloud.group(MESH), 12)
        self.show(MESH)
        self.distinct(MESH, 12)
        if self.ours:
            rule(max(self.per_leaf(MESH)) == 12, "the second group on one leaf")

    def live_migration(self) -> None:
        server = min(self.cloud.servers(MESH), key=lambda s: s.compute_host)
        before, counts = server.compute_host, self.per_leaf(MESH)
        print(f"\nAsked for: live migration of {server.name}, the host left to the scheduler.")
        after = self.cloud.migrate(server)
        leaves = self.cloud.leaf_of(before), self.cloud.leaf_of(after)
        print(f"    {before} ({leaves[0]}) -> {after} ({leaves[1]})")
        self.show(MESH)
        if self.ours:
            rule(self.per_leaf(MESH) == counts, "the group stays together: it moved inside its leaf")

    def bring_together(self) -> None:
        """What the commands make of groups that are spread, by whichever scheduler."""
        if self.ours:
            print("\nThe VM of others on leaf2 ends.")
            self.cloud.delete("other-host19")
        before = self.hops()
        self.command("status")
        # What one group leaves makes room for another, which the next plan sees.
        while self.planned():
            self.command("apply", "--at-once", "4", self.plan)
            self.cloud.settled("")
        self.command("explain", SOLVER)
        self.show(*LETTERS)
        for group, count in ((SOLVER, 18), (MESH, 12)):
            self.distinct(group, count)
        after = self.hops()
        rule(after < before, f"hops of both groups together are less: {before} before, {after} after")
        if self.ours:
            rule(self.per_leaf(SOLVER) == [0, 18, 0, 0], "one migration, and the first group is on one leaf")

    def planned(self) -> bool:
        self.command("plan", "--out", self.plan)
        return bool(json.loads(pathlib.Path(self.plan).read_text())["migrations"])

    def hops(self) -> int:
        return sum(hops(self.per_leaf(group)) for group in LETTERS)

    def command(self, *words: str) -> None:
        print(f"\n$ topolane nova {' '.join(words)}".replace(f"{self.directory}/", ""), flush=True)
        done = subprocess.run(["topolane", "nova", *words], text=True, capture_output=True)
        for line in filter(str.strip, (done.stdout + done.stderr).splitlines()):
            print(f"    {line.rstrip()}")
        if done.returncode:
            raise Failure(f"topolane nova {words[0]} ended with exit code {done.returncode}")

    def bad_input(self) -> None:
        print("\nAsked for: a flavor with the extra spec topolane:placement=close.")
        code, answer = self.cloud.extra_spec("topolane:placement", "close")
        print(f"    {answer}")
        rule(code == 400 and "compact" in answer, "the API refuses it and says what there is")

    def run(self) -> None:
        self.start()
        self.groups()
        self.live_migration()
        self.bring_together()
        if self.ours:
            self.bad_input()


def main() -> int:
    directory, *schedulers = sys.argv[1:]
    try:
        cloud = Cloud(int(os.environ["LEAVES"]), int(os.environ["LEAF"]))
        cloud.make_aggregates()
        print(
            f"{len(cloud.leaves)} leaves of {os.environ['LEAF']} hosts, each a host aggregate with topolane:leaf."
        )
        print(
            "Hops: the links between switches on the way of each pair of VMs, 0 in a leaf, 2 between leaves."
        )
        print(
            "Hop-bytes: the switches on it, 1 and 3. Both summed over all pairs; the least is that of one leaf."
        )
        for scheduler in schedulers:
            Sequence(cloud, scheduler, directory).run()
    except Failure as failure:
        print(f"\n{failure}")
        return 1
    return 0


sys.exit(main())
