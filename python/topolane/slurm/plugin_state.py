"""Reads the files in Slurm's StateSaveLocation in which the topology plugin publishes its state.

`topolane_counters` has the events since slurmctld started, `topolane_jobs` the jobs from the plugin's view,
`topolane_links` the links that jobs own. slurmctld's user writes these files; their content is checked before
use.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from topolane import parsing, texts, untrusted
from topolane._engine import InputError, Machine
from topolane.cluster import decided
from topolane.cluster.allocation import Allocation
from topolane.cluster.decided import Decided
from topolane.slurm.plugin_conf import PluginConf, PolicyRule

COUNTERS, JOBS, LINKS = "topolane_counters", "topolane_jobs", "topolane_links"

MOST_COUNTERS = 64 << 10
"""The most bytes of the file of counters."""
MOST_JOBS = 64 << 20
"""The most bytes of the file of jobs: room for 512 refused jobs with long lists of nodes, and for records of all running jobs."""
MOST_LINKS = 32 << 20
MOST_NODES = 1 << 24
MOST_NUMBER = (1 << 64) - 1
SUM_OF_NOTHING = 14695981039346656037
LONGEST_WORD = 64
LONGEST_SENTENCE = 1000

RUNNING = ("job", "policy", "link_use", "share")
WAITING = ("job", "policy", "share", "time", "kind", "wanted", "offered")
"""The words of a job's line in files of version 1, which earlier releases wrote."""

CHECKSUMS = {"conf-checksum": "conf", "engine-checksum": "engine", "plugin-checksum": "plugin"}
"""Lines with checksums, and their files: topolane.conf, the engine, the plugin itself."""

UNDER = re.compile(r"under_([0-9]{1,20})_nanoseconds")
WORD = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_WORD - 1}}}")

STOCK = {
    "stock": "the job's rule is stock",
    "stock_inactive": "the plugin was not active",
    "stock_failed": "the engine failed",
    "stock_slow": "the engine took too long",
    "stock_unknown": "nodes that the machine file does not name",
    "stock_oversubscribed": "the job may share cores",
}
"""The counters of calls that stock Slurm decided, with the reasons."""
ENDS = ("placed", "kept_off", "in_area", "refused", "held", *STOCK)
"""The counters for how calls ended."""

FAULTS = {
    "inactive": "the plugin was not active",
    "failed": "the engine failed",
    "slow": "the engine took too long",
}
"""Reasons why the engine could not answer a call, by the plugin's name for each."""
OTHERS = {
    "unknown": STOCK["stock_unknown"],
    "oversubscribed": STOCK["stock_oversubscribed"],
}
"""Reasons why the engine was not asked."""

Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True)
class Recent:
    """The latest calls (the plugin keeps 16) for jobs that have a policy or must avoid isolated jobs."""

    calls: int
    decided: int
    """The number of calls that the engine decided."""
    why: dict[str, int]
    """The number of other calls by reason: `FAULTS` and `OTHERS`."""
    without_answer: int
    """The length of the newest unbroken series of calls that the engine could not answer."""

    @property
    def decides(self) -> bool:
        """Whether the engine decides: it could answer the last call and more than half of all, or there was
        no call.
        """
        faults = sum(self.why[name] for name in FAULTS)
        if not self.calls:
            return True
        return not self.without_answer and 2 * faults < self.calls and self.decided > 0

    @property
    def reasons(self) -> str:
        """Why the engine did not decide, with the number of calls for each reason."""
        words = FAULTS | OTHERS
        return "; ".join(f"{count} {words[name]}" for name, count in self.why.items() if count)


@dataclasses.dataclass(frozen=True)
class Counters:
    """The events since slurmctld loaded the plugin. Times are in seconds since 1970."""

    values: dict[str, int]
    """Counters by the plugin's names (native/slurm/plugin/report.h)."""
    under: tuple[tuple[int, int], ...]
    """A histogram of call durations: (upper limit in nanoseconds, number of calls below it and not below the
    previous limit). The last entry includes all longer calls.
    """

    def __getitem__(self, name: str) -> int:
        return self.values.get(name, 0)

    @property
    def active(self) -> bool | None:
        """Whether the plugin decides; None if the file does not say."""
        return None if "active" not in self.values else self.values["active"] == 1

    @property
    def started(self) -> float | None:
        """When slurmctld loaded the plugin."""
        return float(self.values["started"]) if "started" in self.values else None

    @property
    def booted(self) -> int | None:
        """When that slurmctld started, as it says itself; None if the file does not say, as those of an earlier release."""
        return self.values.get("booted")

    @property
    def written(self) -> float | None:
        """When the plugin wrote the file."""
        return float(self.values["written"]) if "written" in self.values else None

    @property
    def stock(self) -> int:
        """The number of calls that stock Slurm decided."""
        return sum(self[name] for name in STOCK)

    @property
    def recent(self) -> Recent:
        """The latest calls. An older plugin does not count these; for it, all calls since it was loaded."""
        reasons = (*FAULTS, *OTHERS)
        if "recent_calls" in self.values:
            why = {name: self[f"recent_{name}"] for name in reasons}
            return Recent(self["recent_calls"], self["recent_decided"], why, self["recent_without_answer"])
        why = {name: self[f"stock_{name}"] for name in reasons}
        decided = sum(self[name] for name in ENDS if name not in STOCK)
        return Recent(decided + sum(why.values()), decided, why, 0)

    def quantile(self, share: float) -> int | None:
        """An upper bound, in nanoseconds, on the duration of this share of the calls; None without calls."""
        calls, seen = sum(count for _, count in self.under), 0
        for limit, count in self.under[:-1]:
            seen += count
            if calls and seen >= share * calls:
                return min(limit, self["longest_nanoseconds"])
        return max(self["longest_nanoseconds"], self.under[-1][0]) if calls else None


@dataclasses.dataclass(frozen=True)
class PluginJobs:
    """The jobs from the plugin's view, by Slurm's numbers. An array's waiting tasks have the number of the
    array.
    """

    time: float
    """When the file was written, in seconds since 1970."""
    why: str | None
    """Why the plugin is not active; None if it is."""
    machine: str | None
    """The path of the machine file."""
    nodes: int
    """The number of nodes of the machine."""
    assumed: tuple[str, ...]
    """Sentences on what was assumed about the machine."""
    running: dict[int, Decided]
    """The jobs that hold nodes."""
    waiting: dict[int, Decided]
    """The jobs whose last answer was a refusal."""
    machine_sum: int | None = None
    """The checksum of the machine file; None if the file does not say."""
    links_out: int | None = None
    """The number of links that are out of service or reserved; None if the file does not say."""
    unnamed: int = 0
    """The number of Slurm's nodes that the machine file does not name."""
    such_as: str | None = None
    """One of them; None if there are none."""
    host: str | None = None
    """The host of slurmctld; None if the file does not say."""
    checksums: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """zlib's crc32 of the files that slurmctld uses; see `CHECKSUMS`."""
    conf: PluginConf | None = None
    """What the plugin read in topolane.conf; None if the file does not say."""
    problems: tuple[str, ...] = ()
    """Sentences on records that are not used."""


@dataclasses.dataclass(frozen=True)
class OwnedLinks:
    """The links that jobs own. Jobs that got an answer and still wait may be included."""

    machine_sum: int
    """The checksum of the machine file that numbers these links."""
    jobs: dict[int, Allocation]


@dataclasses.dataclass(frozen=True)
class PluginState:
    """The content of the files. A file that is missing or unusable is None, and a problem says why."""

    directory: Path
    counters: Counters | None
    jobs: PluginJobs | None
    links: OwnedLinks | None
    problems: tuple[str, ...]
    """Sentences on files that are not used."""


def read(directory: str | Path) -> PluginState:
    """Reads the files. A missing or damaged file gives a problem and does not affect the others."""
    folder, problems = Path(directory), []

    def taken(name: str, most: int, parse: Callable[[str, str], Made], optional: bool = False) -> Made | None:
        path = folder / name
        try:
            return parse(_text(path, most), str(path))
        except texts.NoFileError:
            if not optional:
                problems.append(
                    f"{path} does not exist: slurmctld has not asked the plugin for nodes yet, or its state is elsewhere."
                )
        except InputError as error:
            hint = ": only root and the user of slurmctld may read it" if "denied" in str(error) else ""
            problems.append(f"{texts.sentence(str(error))}{hint}.")
        return None

    counters = taken(COUNTERS, MOST_COUNTERS, parse_counters)
    jobs = taken(JOBS, MOST_JOBS, parse_jobs)
    # Without policies that give links, this file does not exist.
    links = taken(LINKS, MOST_LINKS, parse_links, optional=True)
    problems += jobs.problems if jobs else ()
    return PluginState(folder, counters, jobs, links, tuple(problems))


def read_jobs(directory: Path) -> PluginJobs:
    """The jobs alone. Raises InputError."""
    path = directory / JOBS
    return parse_jobs(_text(path, MOST_JOBS), str(path))


def _text(path: Path, most: int) -> str:
    """The text of a file. Names in topolane.conf, which topolane_jobs repeats, may be of any bytes."""
    return texts.read_bytes(path, most).decode(errors="replace")


def parse_counters(text: str, source: str) -> Counters:
    """The counters in the text of a file. Raises InputError."""
    values: dict[str, int] = {}
    under: dict[int, int] = {}
    for line, words in _lines(text):
        if len(words) != 2:
            raise _bad(source, line, " ".join(words), "a name and a number")
        name, number = words[0], _whole(words[1], source, line)
        if found := UNDER.fullmatch(name):
            under[int(found[1])] = number
        elif WORD.fullmatch(name):
            values[name] = number
        else:
            raise _bad(source, line, name, "the name of a counter")
    if "calls" not in values:
        raise InputError(f"{source}: the counter `calls` is missing, so the file is not whole")
    return Counters(values, tuple(sorted(under.items())))


def parse_jobs(text: str, source: str) -> PluginJobs:
    """The jobs in the text of a file. Raises InputError."""
    rows = _lines(text)
    line, head = next(rows, (1, []))
    if head[:1] != ["topolane-jobs"] or head[1:2] not in (["1"], ["2"]) or len(head) < 3:
        raise _bad(source, line, " ".join(head), "`topolane-jobs 2` and a time")
    time = float(_whole(head[2], source, line))
    why, machine, nodes, machine_sum, links_out, host = None, None, 0, None, None, None
    unnamed, such_as = 0, None
    call_time, engine, rules = None, None, list[PolicyRule]()
    checksums: dict[str, int] = {}
    assumed: list[str] = []
    running: dict[int, Decided] = {}
    waiting: dict[int, Decided] = {}
    wrong: list[str] = []
    for line, words in rows:
        kind, rest = words[0], " ".join(words[1:])
        if kind == "why":
            why = rest[:LONGEST_SENTENCE]
        elif kind == "assumed":
            assumed.append(rest[:LONGEST_SENTENCE])
        elif kind == "machine":
            if len(words) < 3:
                raise _bad(source, line, rest, "a machine file and a number of nodes")
            nodes = _whole(words[-1], source, line, MOST_NODES)
            machine = " ".join(words[1:-1])
        elif kind == "host":
            host = rest[:LONGEST_SENTENCE]
        elif kind == "machine-sum":
            machine_sum = _hexadecimal(rest, 16, source, line)
        elif kind in CHECKSUMS:
            checksums[CHECKSUMS[kind]] = _hexadecimal(rest, 8, source, line)
        elif kind == "call-time":
            call_time = _whole(rest, source, line) / 1e9
        elif kind == "engine":
            engine = Path(rest)
        elif kind == "rule":
            rules.append(_rule(words, source, line))
        elif kind == "out":
            links_out = _whole(rest, source, line)
        elif kind == "unnamed":
            if len(words) != 3:
                raise _bad(source, line, rest, "a number of nodes and one of them")
            unnamed, such_as = _whole(words[1], source, line, MOST_NODES), words[2][:LONGEST_WORD]
        elif kind.startswith("{") or kind in ("running", "waiting"):
            try:
                said = _record(words)
                job = untrusted.whole(said.get("job"), "job", 0, MOST_NUMBER)
                row = decided.of(said, nodes)
            except ValueError as error:
                wrong.append(f"line {line} ({error})")
            else:
                (waiting if row.refused else running)[job] = row
        elif not WORD.fullmatch(kind):
            raise _bad(source, line, kind, "a record, `machine`, `out`, `assumed` or `why`")
    problems: list[str] = []
    untrusted.add(problems, f"{source}: a job's record cannot be read and does not count", wrong)
    return PluginJobs(
        *(time, why, machine, nodes, tuple(assumed), running, waiting),
        *(machine_sum, links_out, unnamed, such_as, host, checksums),
        None if call_time is None else PluginConf(tuple(rules), call_time, engine),
        tuple(problems),
    )


def _rule(words: list[str], source: str, line: int) -> PolicyRule:
    if len(words) < 4 or not WORD.fullmatch(words[2]):
        raise _bad(source, line, " ".join(words), "`rule LINE POLICY SHARE KEY=NAMES`")
    names = {
        key: frozenset(value.lower().split(","))
        for key, _, value in (word.partition("=") for word in words[4:])
    }
    return PolicyRule(
        *(_whole(words[1], source, line), words[2], _share(words[3], source, line)),
        *(names.get(key) for key in ("Partition", "QOS", "Account")),
    )


def _record(words: list[str]) -> Mapping[str, Any]:
    """The record in a job's line, with the keys of docs/reference/outputs.md. Raises ValueError."""
    if words[0] not in ("running", "waiting"):
        return untrusted.table(" ".join(words), MOST_JOBS)
    keys = RUNNING if words[0] == "running" else WAITING
    said: dict[str, Any] = dict(zip(keys, words[1:]))
    for key in {"job", "share", "time", "wanted"} & said.keys():
        with contextlib.suppress(ValueError):  # what is no number is refused later
            said[key] = float(said[key]) if key == "share" else int(said[key][:LONGEST_WORD])
    if words[0] == "waiting":
        said |= {"refusal": dict(said), "offered": str(said.get("offered", "")).removeprefix("-")}
    return said


def parse_links(text: str, source: str) -> OwnedLinks:
    """The owned links in the text of a file. Raises InputError."""
    rows = _lines(whole(text, source))
    line, head = next(rows, (1, []))
    if head[:2] != ["topolane-links", "1"] or len(head) != 4 or not re.fullmatch("[0-9a-f]{16}", head[2]):
        raise _bad(source, line, " ".join(head), "`topolane-links 1`, a sum and a number of jobs")
    found = {}
    for line, words in rows:
        numbers = [_whole(word, source, line) for word in (words[0], *words[2:])]
        count = numbers[1] if len(numbers) > 1 else 0
        if len(numbers) < count + 3 or len(numbers) != count + 3 + numbers[count + 2]:
            raise _bad(source, line, " ".join(words), "a job, its share, its nodes and its links")
        found[numbers[0]] = Allocation(
            frozenset(numbers[2 : count + 2]), tuple(numbers[count + 3 :]), _share(words[1], source, line)
        )
    if len(found) != _whole(head[3], source, 1):
        raise InputError(f"{source}: it has {len(found)} jobs, and its first line says {head[3]}")
    return OwnedLinks(int(head[2], 16), found)


def whole(text: str, source: str) -> str:
    """The text before the sum at its end. Raises InputError if the sum does not fit."""
    body, mark, tail = text.rpartition("sum ")
    if not mark or f"{sum_of(body.encode()):016x}" != tail.strip():
        raise InputError(f"{source}: its checksum does not fit, so the file is not whole")
    return body


def sum_of(content: bytes | bytearray, total: int = SUM_OF_NOTHING) -> int:
    """The plugin's checksum of some bytes (FNV-1a), continued from `total`, the checksum of the bytes before
    them.
    """
    for byte in content:
        total = (total ^ byte) * 1099511628211 & MOST_NUMBER
    return total


def owned_by(links: OwnedLinks | None, machine: Machine, machine_sum: int) -> dict[int, Allocation]:
    """The links of each job. Raises InputError if they are numbered by another machine file."""
    if links is None:
        return {}
    if links.machine_sum != machine_sum:
        raise InputError(f"{LINKS} is of another machine file: its numbers of links say nothing here")
    for job, own in links.jobs.items():
        if any(link >= machine.links for link in own.links):
            raise InputError(f"{LINKS}: job {job} owns a link that the machine does not have")
        if any(node >= machine.nodes for node in own.nodes):
            raise InputError(f"{LINKS}: job {job} holds a node that the machine does not have")
    return links.jobs


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield number, line.split(" ")


def _whole(word: str, source: str, line: int, most: int = MOST_NUMBER) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", word) or int(word) > most:
        raise _bad(source, line, word, f"a whole number up to {most}")
    return int(word)


def _hexadecimal(word: str, digits: int, source: str, line: int) -> int:
    if not re.fullmatch(f"[0-9a-f]{{{digits}}}", word):
        raise _bad(source, line, word, f"a sum of {digits} hexadecimal digits")
    return int(word, 16)


def _share(word: str, source: str, line: int) -> float:
    try:
        return untrusted.share(float(word[:LONGEST_WORD]), "share")
    except ValueError as error:
        raise InputError(f"{source} line {line}: {error}") from error


def _bad(source: str, line: int, found: str, wanted: str) -> InputError:
    return InputError(f"{source} line {line}: {parsing.shown(found)} is not {wanted}")
