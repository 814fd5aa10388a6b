"""A plugin that was compiled with the headers of another package of the same release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import RULES, Site, plugin_cluster
from test_other_topolane import put
from topolane.slurm import plugin_build
from waiting import until

JOB, PARTITION, NODE = (
    Path("src/common") / f"{name}.h" for name in ("job_record", "part_record", "node_conf")
)
MOVED = {
    "before fields that a new job has": (JOB, "char *mail_user;", "uint32_t array_job_id;"),
    "before the number of the job": (JOB, "char *name;", "time_t end_time;"),
    "before the nodes of the job": (JOB, "char *nodes_completing;", "uint32_t job_id;"),
    "before the names of partitions": (JOB, "char *partition;", "uint32_t node_cnt;"),
    "before the comment of Slurm": (JOB, "char *tres_bind;", "void *switch_jobinfo;"),
    "before the tasks of the job": (JOB, "char *qos_req;", "char *mem_bind;"),
    "before fields that a new partition has": (PARTITION, "char *nodes;", "uint32_t flags;"),
    "before the name of the partition": (PARTITION, "char *orig_nodes;", "uint32_t max_time;"),
    "before the name of the node": (NODE, "char *version;", "char *arch;"),
    "before the weight of the node": (NODE, "char *tres_str;", "uint16_t run_job_cnt;"),
}
"""By what the field stands in front of: the header, the field that is moved, and the field after which it is put. Sizes
of records stay as they are."""


def declared(field: str) -> str:
    """The pattern of the line that declares a field."""
    return r"\n\s*" + r"\s*".join(map(re.escape, re.findall(r"\w+|[*;]", field)))


def with_other_header(source: Path, directory: Path, header: Path, text: str) -> Path:
    """The source of a Slurm, but for one header, as in a package with a patch."""
    for path in (Path(), Path("src"), Path("src/common")):
        (directory / path).mkdir(parents=True, exist_ok=True)
        for entry in os.listdir(source / path):
            other = path / entry
            if other not in (Path("src"), Path("src/common"), header):
                (directory / other).symlink_to(source / other)
    (directory / header).write_text(text)
    return directory


def with_a_field_more(source: Path, directory: Path) -> Path:
    text = (source / JOB).read_text()
    text, changed = re.subn(f"({declared('uint64_t bit_flags;')})", r"\1 double patched;", text)
    assert changed == 1
    return with_other_header(source, directory, JOB, text)


def with_a_moved_field(source: Path, directory: Path, header: Path, field: str, after: str) -> Path:
    text = (source / header).read_text()
    start = re.search(r"\nstruct (job|node)_record \{|\ntypedef struct part_record \{", text)
    assert start
    at = start.start() if field != "char *qos_req;" else 0
    head, record = text[:at], text[at:]
    record, removed = re.subn(declared(field), "\n", record, count=1)
    record, added = re.subn(f"({declared(after)})", rf"\1 {field}", record, count=1)
    assert removed == added == 1
    return with_other_header(source, directory, header, head + record)


class Patched:
    """A cluster whose plugin is exchanged."""

    def __init__(self, site: Site, source: Path, engine: Path, folder: Path) -> None:
        self.site, self.source, self.engine, self.folder = site, source, engine, folder
        self.compiler = folder / "compiler"
        self.compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')  # faster
        self.compiler.chmod(0o755)

    def use(self, source: Path) -> None:
        """Puts the plugin in place that this source gives, under two jobs that run and one that waits."""
        shutil.rmtree(self.folder / "built", ignore_errors=True)
        plugin_build.build(source, self.engine, str(self.compiler), self.folder / "built")
        self.site.cluster.script("stop", "slurmctld")
        put(self.folder / "built", self.site.built)
        self.site.cluster.script("start", "slurmctld")

    def check_refused(self) -> None:
        """All is left to stock Slurm: jobs start and end, slurmctld lives on, and the reason is published."""
        job = self.site.start("-p", "powned", "-N2")
        assert self.site.running(), "slurmctld answers"
        until(lambda: "records differ from the headers" in str(self.site.published().why), "the reason")
        counted = self.site.counters()
        assert counted["active"] == 0 and counted["stock_inactive"] == counted["calls"] > 0
        self.site.cluster.run("scancel", job)


@pytest.fixture(scope="module")
def patched(
    source: Path, engine: Path, built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Patched]:
    plugins = tmp_path_factory.mktemp("plugins")
    put(built, plugins)
    partitions = ("--partitions", "pbatch pshared:ALL:NO powned ptree")
    directory = tmp_path_factory.mktemp("layout")
    with plugin_cluster(plugins, inside, directory, *partitions, rules=RULES) as cluster:
        site = Site(cluster, plugins)
        site.saved(site.start("-p", "pbatch", "-N3"))
        site.saved(cluster.submit("-p", "pbatch", "-N24"))
        yield Patched(site, source, engine, tmp_path_factory.mktemp("patched"))


def test_no_address_ends_the_process(source: Path, tmp_path: Path) -> None:
    """What Slurm allocated is recognised, and wild addresses, pages without memory and texts without an end are harmless: also where
    a host forbids process_vm_readv."""
    sources = (Path(__file__).parent / "proven_addresses.c", plugin_build.SOURCES / "proven.c")
    words = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-DHAVE_CONFIG_H"]
    words += ["-isystem", source, "-isystem", source / "slurm", "-I", plugin_build.SOURCES]
    # Other functions of Slurm that its headers use are never called.
    words += ["-Wl,--unresolved-symbols=ignore-all", *sources, "-ldl", "-o", tmp_path / "addresses"]
    subprocess.run([str(word) for word in words], check=True)
    done = subprocess.run([tmp_path / "addresses"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_records_of_another_size_leave_everything_to_stock(patched: Patched, tmp_path: Path) -> None:
    """Slurm loads such a plugin, because the number of the release is the same. It reads no field of a job."""
    patched.use(with_a_field_more(patched.source, tmp_path))
    patched.check_refused()


@pytest.mark.parametrize("where", MOVED)
def test_records_with_a_field_elsewhere_leave_everything_to_stock(
    patched: Patched, tmp_path: Path, where: str
) -> None:
    """The sizes of all records are as in slurmctld, but fields that the plugin reads are eight bytes off."""
    patched.use(with_a_moved_field(patched.source, tmp_path, *MOVED[where]))
    patched.check_refused()


def test_records_as_in_the_headers_are_used(patched: Patched) -> None:
    """After all these, the plugin of the right headers decides, with a job that runs and one that waits."""
    patched.use(patched.source)
    until(lambda: patched.site.counters()["active"] == 1, "the plugin is active")
    assert patched.site.published().why is None
