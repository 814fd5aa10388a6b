"""Checks on every host, before a restart, that Slurm's daemons there can load the topology plugin.

slurmctld ends if its topology plugin cannot be loaded. So each host loads the plugin in a process of its own
(host_check.py), and the hosts of slurmctld open configuration, engine and machine file as slurmctld will.
"""

from __future__ import annotations

import base64
import dataclasses
import re
import shlex
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from topolane import texts
from topolane.cluster.clients.scontrol import configuration, scontrol
from topolane.slurm import conf_file, controllers

SCRIPT = Path(__file__).parent / "host_check.py"
WAYS = {
    "ssh": "ssh -o BatchMode=yes -o ConnectTimeout=10 -- {host}",
    "pdsh": "pdsh -N -w {host}",
    "srun": "srun --nodes=1 --ntasks=1 --immediate=60 --partition={partition} --nodelist={host} sh -c",
}
"""How a command gets to a host: words before the command, which is the last word."""
AWAY = re.compile(r"DOWN|POWERING|FUTURE|NOT_RESPONDING")
"""States of nodes that cannot be asked. CLOUD is none: such a node may be up."""
AT_ONCE = 32
SECONDS = 90
MOST_OUTPUT = 64 << 20
SAME = {
    "conf-checksum": "topolane.conf",
    "engine-checksum": "the engine",
    "plugin-checksum": "the plugin",
    "machine-sum": "the machine file",
}
"""Facts that must be the same on all hosts of slurmctld, because any of them may take over."""


@dataclasses.dataclass(frozen=True)
class Host:
    name: str
    role: str
    """controller or node"""
    is_here: bool = False
    partition: str = ""
    """A partition of the node; empty for hosts that run no jobs, which srun does not reach."""


@dataclasses.dataclass
class Answer:
    """What a host said."""

    host: Host
    facts: dict[str, str]
    nodes: list[str]
    """The nodes that its machine file names."""
    wrong: list[str]


@dataclasses.dataclass(frozen=True)
class Checked:
    """The outcome on all hosts."""

    releases: tuple[str, ...]
    """The releases of Slurm for which the plugins were built."""
    fit: int
    """The number of hosts that can load it."""
    wrong: list[str]
    """A sentence for each fault, with its hosts."""
    notes: list[str]


def hosts(others: Sequence[str], way: str) -> tuple[list[Host], list[str]]:
    """The hosts of slurmctld, then those of the nodes, then others by name, each once; and the names of nodes that
    cannot be asked. Raises InputError if slurmctld does not answer.
    """
    here = _short(socket.gethostname())
    found = {
        name: Host(name, "controller", _short(name) == here) for name in controllers.hosts(configuration())
    }
    away = []
    for line in scontrol("-o", "show", "nodes").splitlines():
        # The first value counts: comments and reasons are at the end, and may hold anything.
        said = dict(reversed(re.findall(r"(\w+)=(\S*)", line)))
        name = said.get("NodeName", "")
        host = name if way == "srun" else said.get("NodeHostName", name)
        if AWAY.search(said.get("State", "")):
            away.append(name)
        elif host:
            partition = said.get("Partitions", "").partition(",")[0]
            found.setdefault(host, Host(host, "node", _short(host) == here, partition))
    for name in others:
        found.setdefault(name, Host(name, "node", _short(name) == here))
    return list(found.values()), away


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What slurmctld will read in slurm.conf at its restart."""

    plugin_dir: str
    slurm_conf: str
    """The path of slurm.conf."""
    topology: str
    """The value of TopologyPlugin."""

    @property
    def words(self) -> list[str]:
        return [self.plugin_dir, self.slurm_conf, self.topology]


def command(host: Host, wanted: Wanted) -> str:
    """The shell command that checks a host on that host."""
    packed = base64.b64encode(zlib.compress(SCRIPT.read_bytes(), 9)).decode()
    program = f'import base64,zlib;exec(zlib.decompress(base64.b64decode("{packed}")))'
    return shlex.join(["python3", "-c", program, host.role, *wanted.words])


def check(others: Sequence[str], way: str) -> Checked:
    """Checks all hosts. Raises InputError if slurmctld does not answer."""
    wanted = _wanted()
    asked, away = hosts(others, way)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda host: _ask(host, way, wanted), asked))
    nodes = re.findall(r"^NodeName=(\S+)", scontrol("-o", "show", "nodes"), re.MULTILINE)
    return _judged(answers, nodes, away)


def _wanted() -> Wanted:
    said = configuration()
    slurm_conf = said.get("SLURM_CONF", "/etc/slurm/slurm.conf")

    def value(key: str) -> str:
        written = conf_file.value(Path(slurm_conf), key) if Path(slurm_conf).is_file() else None
        return written or said.get(key, "")

    return Wanted(value("PluginDir"), slurm_conf, value("TopologyPlugin"))


def commands(others: Sequence[str], way: str) -> list[str]:
    """The commands that `check` would run, for an administrator to run."""
    wanted = _wanted()
    return [shlex.join(_words(host, way, wanted)) for host in hosts(others, way)[0]]


def _words(host: Host, way: str, wanted: Wanted) -> list[str]:
    said = command(host, wanted)
    if host.is_here:
        return ["sh", "-c", said]
    words = WAYS["ssh" if way == "srun" and not host.partition else way].split()
    return [*(word.format(host=host.name, partition=host.partition) for word in words), said]


def _ask(host: Host, way: str, wanted: Wanted) -> Answer:
    words = _words(host, way, wanted)
    if host.is_here:
        words = [sys.executable, str(SCRIPT), host.role, *wanted.words]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    except OSError as error:
        return Answer(host, {}, [], [f"not checked: {words[0]}: {error.strerror}"])
    except subprocess.TimeoutExpired:
        return Answer(host, {}, [], [f"not checked: no answer within {SECONDS} s"])
    answer = Answer(host, {}, [], [])
    for line in done.stdout[:MOST_OUTPUT].decode("utf-8", "replace").splitlines():
        word, _, value = line.partition(" ")
        if word == "wrong":
            answer.wrong.append(texts.sentence(value))
        elif word == "node":
            answer.nodes.append(value)
        else:
            answer.facts[word] = value
    if "checked" not in answer.facts:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = texts.sentence(last[0]) if last else f"exit code {done.returncode}"
        answer.wrong.append(f"not checked: {why}")
    if "why" in answer.facts:
        answer.wrong.append(f"the plugin would not be active: {texts.sentence(answer.facts['why'])}")
    return answer


def _judged(answers: Sequence[Answer], nodes: Sequence[str], away: Sequence[str]) -> Checked:
    """Compares the answers with each other, and the machine file with Slurm's nodes."""
    wrong: dict[str, list[str]] = {}
    for answer in answers:
        for sentence in answer.wrong:
            wrong.setdefault(sentence, []).append(answer.host.name)
    masters = [answer for answer in answers if answer.host.role == "controller" and not answer.wrong]
    for other in masters[1:]:
        for fact, what in SAME.items():
            if other.facts.get(fact) != masters[0].facts.get(fact):
                sentence = f"{what} differs from that of {masters[0].host.name}: copy it"
                wrong.setdefault(sentence, []).append(other.host.name)
    notes = []
    if masters and masters[0].nodes:
        named = set(masters[0].nodes)
        unnamed = [node for node in nodes if node not in named]
        sentence = f"the machine file does not name {_listed(unnamed)}: stock Slurm chooses among them"
        if unnamed and len(unnamed) == len(nodes):
            wrong.setdefault("the machine file names none of Slurm's nodes", []).append(masters[0].host.name)
        elif unnamed:
            notes.append(sentence)
    if away:
        notes.append(f"not asked, because they are down or not there: {_listed(away)}")
    built = tuple(sorted({answer.facts["built"] for answer in answers if "built" in answer.facts}))
    faulty = {host for each in wrong.values() for host in each}
    sentences = [f"{_listed(each)}: {sentence}" for sentence, each in wrong.items()]
    return Checked(built, len(answers) - len(faulty), sentences, notes)


def _listed(names: Iterable[str]) -> str:
    """Some of the names, and the number of the others."""
    listed = list(names)
    rest = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + rest


def _short(host: str) -> str:
    return host.partition(".")[0]
