"""A Slurm of which everything that users and administrators see is written down, except nodes and times."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from live_cluster import Cluster
from waiting import DEADLINE, until

NODES = 16
LEAF = 4
LATEST = 45.0
"""Seconds until a state that does not come is written down as missing."""
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE"}
USERS = ("root", "daemon", "games")

GROUPS = [f"4 Feature={features}" for features in ("ib", "ib,fat", "eth", "eth,fat")]
"""Leaf by leaf. All have the same resources: what a job gets of whole nodes must not depend on which nodes it gets."""
LAYOUT = (
    *("--leaf", LEAF, "--pod", 2, "--select", "cons_tres", "--open", "yes"),
    *("--accounting", "slurmdbd", "--priority", "multifactor"),
    *("--partitions", "batch whole:ALL:EXCLUSIVE left:node[1-8] right:node[9-16] over:ALL:FORCE:2"),
    *(word for group in GROUPS for word in ("--group", f"{group} Gres=gpu:red:2,gpu:blue:2,nic:4")),
)
SETTINGS = (
    "FirstJobId=100001",
    "GresTypes=gpu,nic",
    "Licenses=solver:4",
    "AccountingStorageEnforce=associations,limits,qos",
    "AccountingStorageTRES=gres/gpu",
    "PreemptType=preempt/qos",
    "PreemptMode=REQUEUE",
    "PriorityWeightAge=0",
    "PriorityWeightQOS=1000",
    "PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE",
    "PartitionName=lost Nodes=ALL PriorityTier=1 PreemptMode=CANCEL",
    "PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF",
)
QOS = {
    "cpus": "GrpTRES=cpu=32",
    "gpus": "GrpTRES=gres/gpu=4",
    "one": "MaxJobsPerUser=1",
    "few": "MaxTRESPerJob=node=2 Flags=DenyOnLimit",
    "again": "PreemptMode=requeue",
    "never": "PreemptMode=cancel",
    "first": "Preempt=again,never Priority=100",
}


def layout(*settings: str) -> list[object]:
    """Options of cluster.sh; later settings of slurm.conf replace earlier ones."""
    return [*LAYOUT, *(word for setting in (*SETTINGS, *settings) for word in ("--conf", setting))]


class Missing(Exception):
    """What a scenario waits for did not come."""


class Observed:
    """Runs a scenario on one cluster. `seen` holds what was observed, by name, in order."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seen: list[tuple[str, Any]] = []
        self.jobs: dict[str, int] = {}
        self._files = {
            name: (cluster.directory / name).read_text() for name in ("slurm.conf", "topology.conf")
        }
        self._changed = False

    def prepare(self) -> None:
        """Accounts, users and QOS, of which accounting must know before the first job."""
        self.must("sacctmgr", "-iQ", "add", "account", "science")
        for name, limits in QOS.items():
            self.must("sacctmgr", "-iQ", "add", "qos", name, *limits.split())
        for user in USERS[1:]:
            self.must("sacctmgr", "-iQ", "add", "user", user, "account=science")
        self.must("sacctmgr", "-iQ", "modify", "account", "root,science", "set", f"qos+={','.join(QOS)}")

        def known() -> bool:
            said = self.must("scontrol", "show", "assoc_mgr", "flags=assoc,qos")
            return said.count("QOS=first(") == 1 and all(f"UserName={user}(" in said for user in USERS)

        self.until(known, "slurmctld knows the users and QOS")

    # What a scenario does.

    def see(self, what: str, value: Any) -> None:
        self.seen.append((what, value))

    def ask(self, *command: object, name: str = "") -> str:
        """Runs a command. Its exit code and what it prints, in any order of lines, are seen."""
        done = self.run(*command)
        # salloc may end before it hears that its allocation has.
        said = re.sub(
            r"\n?salloc: Job allocation <job> has been revoked.", "", self.plain(done.stderr)
        ).strip()
        self.see(
            name or " ".join(map(str, command)),
            {
                "exit code": done.returncode,
                "printed": sorted(self.plain(done.stdout).splitlines()),
                "said": said,
            },
        )
        return done.stdout

    def submit(self, name: str, *options: object, script: str = "sleep 900", user: str = "root") -> None:
        """Submits a batch job. What sbatch says is seen."""
        done = self.run(
            *("sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", f"--uid={user}"),
            *("--chdir=/", "--time=60", *options, "--wrap", script),
        )
        if done.returncode == 0:
            self.jobs[name] = int(done.stdout.split(";")[0])
        self.see(f"sbatch {name}", {"exit code": done.returncode, "said": self.plain(done.stderr)})

    def reaches(self, name: str, state: str, reason: str = "", job: str = "") -> dict[str, Any]:
        """Waits until a job has a state, and a reason if one is given; everything about the job is seen."""
        if name not in self.jobs:
            raise Missing(f"{name} was not accepted")
        which = job or str(self.jobs[name])
        facts: dict[str, Any] = {}

        def there() -> bool:
            facts.clear()
            facts.update(self.facts(which))
            return facts.get("JobState") == state and facts.get("Reason", "").startswith(reason)

        try:
            self.until(there, f"{name} is {state} {reason}".strip(), lambda: facts.get("JobState") in ENDED)
        except Missing as error:
            self.see(name, facts)
            raise Missing(f"{error}: it is {facts.get('JobState')} {facts.get('Reason')}") from None
        self.see(f"{name} {state}", facts)
        return facts

    def runs(
        self, name: str, *options: object, script: str = "sleep 900", user: str = "root"
    ) -> dict[str, Any]:
        """Submits a job that starts."""
        self.submit(name, *options, script=script, user=user)
        return self.reaches(name, "RUNNING")

    def waits(self, name: str, reason: str, *options: object, user: str = "root") -> None:
        """Submits a job that does not start, for this reason."""
        self.submit(name, *options, user=user)
        self.reaches(name, "PENDING", reason)

    def ends(self, *names: str) -> None:
        """Cancels jobs and waits until they are gone."""
        for name in names:
            self.run("scancel", self.jobs[name])
        self.until(lambda: not any(self.queued(name) for name in names), f"{names} end")

    def states(self, *names: str, what: str, until: dict[str, int]) -> None:
        """Waits until each state has its number of the jobs; the counts are seen."""
        counts: dict[str, int] = {}

        def there() -> bool:
            counts.clear()
            counts.update(Counter(self.facts(str(self.jobs[name])).get("JobState", "") for name in names))
            return counts == until

        try:
            self.until(there, what)
        finally:
            self.see(what, dict(sorted(counts.items())))

    def configure(self, **settings: str) -> None:
        """Other settings in slurm.conf until the scenario ends."""
        text = self._files["slurm.conf"]
        for key, value in settings.items():
            text = re.sub(rf"^{key}=.*\n", "", text, flags=re.MULTILINE) + f"{key}={value}\n"
        self._write("slurm.conf", text)

    def topology(self, change: Callable[[str], str]) -> None:
        """Another topology.conf until the scenario ends."""
        self._write("topology.conf", change(self._files["topology.conf"]))

    def at_once(self, *names: str) -> None:
        """Lets requeued jobs start now: Slurm makes them wait until their credentials have expired, and longer."""
        for name in names:
            if self.facts(str(self.jobs[name])).get("JobState") == "PENDING":
                self.must("scontrol", "update", f"JobId={self.jobs[name]}", "StartTime=now")

    def renew(self) -> None:
        """Lets slurmctld count again what is taken, when the scenario ends."""
        self._changed = True

    def node(self, nodes: str, *settings: str) -> None:
        self.must("scontrol", "update", f"NodeName={nodes}", *settings)

    def idle(self, count: int = NODES) -> None:
        """Waits until `count` nodes are idle."""

        def there() -> bool:
            shown = self.run("scontrol", "-o", "show", "nodes").stdout
            return len(re.findall(r" State=IDLE(?:\+PLANNED)? ", shown)) == count

        self.until(there, f"{count} nodes are idle")

    # What is known of jobs and nodes.

    def queued(self, name: str) -> bool:
        return bool(self.run("squeue", "-hj", self.jobs[name]).stdout.strip())

    def hosts(self, name: str) -> list[int]:
        """The numbers of a job's nodes: for rules about them, never to be seen as such."""
        listed = self.must("squeue", "-h", "-j", self.jobs[name], "-o", "%N").split()
        names = self.must("scontrol", "show", "hostnames", *listed).split() if listed else []
        return sorted(int(name.removeprefix("node")) for name in names)

    def leaves(self, name: str) -> int:
        return len({(host - 1) // LEAF for host in self.hosts(name)})

    def facts(self, job: str) -> dict[str, Any]:
        """What `scontrol show job` says, without nodes, times and numbers of jobs."""
        shown = self.run("scontrol", "-d", "-o", "show", "job", job).stdout
        return _facts(shown.splitlines()[0], self.plain) if shown else {}

    def plain(self, text: str) -> str:
        """A text with names instead of numbers of jobs, and without nodes and times."""
        for name, job in self.jobs.items():
            text = re.sub(rf"\b{job}\b", f"<{name}>", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "<time>", text)
        text = re.sub(r"(?i)\b(job|allocation|job_id=|JobId=|step) ?\d+", r"\1 <job>", text)
        text = re.sub(r"\bnode(\[[\d,-]+\]|\d+)(,node(\[[\d,-]+\]|\d+))*", "<nodes>", text)
        return text.replace(str(self.cluster.directory), "<directory>").strip()

    def accounted(self) -> None:
        """The rows of sacct for all jobs of the scenario, once all have ended there too, are seen."""
        if not self.jobs:
            return
        fields = (
            "JobName,State,ExitCode,DerivedExitCode,NNodes,AllocCPUS,ReqTRES,AllocTRES,Partition,QOS,Account"
        )
        fields += ",User,Flags,Restarts"
        rows: list[str] = []
        listed = ",".join(map(str, self.jobs.values()))

        def ended() -> bool:
            rows[:] = self.run("sacct", "-nPXD", "-j", listed, "-o", fields).stdout.splitlines()
            return bool(rows) and not any(re.search(r"\|(RUNNING|PENDING|SUSPENDED)\|", row) for row in rows)

        self.until(ended, "all jobs have ended in sacct")
        # Which scheduler started a job, and which signal was the last one, are matters of time.
        cleaned = (re.sub(r"(Sched(Main|Backfill|Submit)|StartRec[a-z]+),?", "", row) for row in rows)
        self.see("sacct", sorted(self.plain(re.sub(r"\|0:(9|15)\|", "|signal|", row)) for row in cleaned))

    def clear(self) -> None:
        """Ends all jobs, takes back all that a scenario changed, and waits for idle nodes."""
        # First those that wait, or one of them would start when others end.
        for options in (("--state=PENDING",), ()):
            for user in USERS:
                self.run("scancel", "-Q", f"--user={user}", *options)
        names = re.findall(r"ReservationName=(\S+)", self.run("scontrol", "-o", "show", "res").stdout)
        for name in names:
            self.run("scontrol", "delete", f"ReservationName={name}")
        self.until(lambda: not self.run("squeue", "-h").stdout.strip(), "no job is queued", seconds=120)
        if self._changed:
            for name, text in self._files.items():
                (self.cluster.directory / name).write_text(text)
            self._reconfigure()
            self._changed = False
        every = f"node[1-{NODES}]"
        if re.search("DRAIN|DOWN", self.run("scontrol", "-o", "show", "nodes").stdout):
            self.run("scontrol", "update", f"NodeName={every}", "State=RESUME")
        self.idle()

    # How commands are run.

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in command],
            env=self.cluster.environment,
            cwd=self.cluster.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def must(self, *command: object) -> str:
        done = self.run(*command)
        if done.returncode:
            raise Missing(f"{' '.join(map(str, command))}: {self.plain(done.stderr)}")
        return done.stdout

    def until(
        self,
        holds: Callable[[], bool],
        what: str,
        never: Callable[[], bool] = lambda: False,
        seconds: float = LATEST,
    ) -> None:
        with contextlib.suppress(AssertionError):
            if until(lambda: holds() or (never() and "never"), what, deadline=seconds) != "never":
                return
        raise Missing(what)

    def _write(self, name: str, text: str) -> None:
        self._changed = True
        (self.cluster.directory / name).write_text(text)
        self._reconfigure()

    def _reconfigure(self) -> None:
        self.must("scontrol", "reconfigure")
        self.until(lambda: self.run("scontrol", "ping").returncode == 0, "slurmctld answers")


_SKIPPED = re.compile(
    r"(Job(Id|Name)|SLUID|.*Time|ArrayJobId|HetJobId|HetJobIdSet|LastSchedEval|Scheduler|AllocNode:Sid|NodeList|BatchHost"
    r"|SchedNodeList|SecsPreSuspend|Std(Err|In|Out)|Command|WorkDir|Accrue.*|UserId|GroupId|PreemptEligible.*"
    r"|ResourcesRequested|Nodes|CPU_IDs|Mem|GRES|MailType|BatchStepId|SubmitLine)"
)


def _facts(line: str, plain: Callable[[str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in re.findall(r"(?:^|\s)([A-Z][\w/:]*)=(\S*)", line):
        if not _SKIPPED.fullmatch(key):
            found[key] = plain(value) if key in ("Dependency", "Reason") else value
    shares = re.findall(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\S+) GRES=(\S*)", line)
    if shares:
        each = Counter[str]()
        for hosts, cores, memory, gres in shares:
            cleaned = re.sub(r"\(CNT:(\d+)\)", r":\1", re.sub(r"\(IDX:?[^)]*\)", "", gres))
            each[f"{_count(cores)} cores, {memory} MB, {cleaned}"] += _count(
                hosts.removeprefix("node").strip("[]")
            )
        found["nodes with"] = dict(sorted(each.items()))
    return found


def _count(ranges: str) -> int:
    """How many numbers are in `0-3,7`."""
    pairs = ([*each.split("-"), each.split("-")[0]][:2] for each in ranges.split(","))
    return sum(int(last) - int(first) + 1 for first, last in pairs)


def differences(one: Sequence[tuple[str, Any]], other: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """What was seen on the second cluster otherwise than on the first, one sentence each."""
    for index in range(max(len(one), len(other))):
        if index >= len(one) or index >= len(other):
            (what, value), where = (one[index], "first") if index < len(one) else (other[index], "second")
            yield f"{what} is seen on the {where} only: {value}"
            continue
        (what, value), (name, found) = one[index], other[index]
        if what != name:
            yield f"{what} is seen on the first, {name} on the second"
        elif isinstance(value, dict) and isinstance(found, dict):
            for key in [*value, *(key for key in found if key not in value)]:
                if value.get(key) != found.get(key):
                    yield f"{what}: {key} is {value.get(key)!r} on the first, {found.get(key)!r} on the second"
        elif isinstance(value, list) and isinstance(found, list) and value != found:
            only = (
                [each for each in value if each not in found],
                [each for each in found if each not in value],
            )
            yield f"{what} has {only[0]} on the first only, {only[1]} on the second only"
        elif value != found:
            yield f"{what} is {value!r} on the first, {found!r} on the second"
