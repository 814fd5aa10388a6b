"""The tables of entry points of the topology plugin, against the source of each release of Slurm."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from live_cluster import Missing, slurm_source
from topolane.slurm import plugin_build

TABLES = sorted((plugin_build.SOURCES / "releases").glob("*.h"))
RELEASES = [path.stem.replace("_", ".") for path in TABLES]
STRICT = ("-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DHAVE_CONFIG_H")


@pytest.fixture(scope="module", params=RELEASES)
def headers(request: pytest.FixtureRequest) -> Path:
    """The configured source of a release that has a table. Skips where it cannot be had."""
    try:
        return slurm_source(request.param)
    except Missing as missing:
        pytest.skip(f"the headers of Slurm {request.param} cannot be had: {missing}")


def compiled(headers: Path, *sources: Path, first: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Compiles sources of the plugin. `first`: folders whose headers come before those of Slurm."""
    folders = [word for path in (*first, headers, headers / "slurm") for word in ("-isystem", path)]
    words = ["cc", *STRICT, "-I", plugin_build.SOURCES, *folders, *sources]
    return subprocess.run(words, capture_output=True, text=True)


def test_the_plugin_compiles_without_a_warning(headers: Path) -> None:
    """With the headers of each release."""
    done = compiled(headers, *sorted(plugin_build.SOURCES.glob("*.c")))
    assert not done.returncode and not done.stderr, done.stderr


def test_entry_points_are_those_that_slurm_looks_up(headers: Path, tmp_path: Path) -> None:
    """Each symbol that Slurm looks up is in the table, with the type with which Slurm calls it. Slurm checks no type, and
    a missing symbol ends slurmctld.
    """
    interface = (headers / "src/interfaces/topology.c").read_text()
    operations = re.search(r"typedef struct slurm_topo_ops \{.*?\} slurm_topo_ops_t;", interface, re.DOTALL)
    listed = re.search(r"static const char \*syms\[\] = \{(.*?)\};", interface, re.DOTALL)
    assert operations and listed
    symbols = re.findall(r'"(\w+)"', listed[1])
    fields = re.findall(r"^\s+(?:\w+\s+)*\w+\s*\**\s*\(\s*\*\s*(\w+)\)", operations[0], re.MULTILINE)
    assert len(fields) == len(symbols)
    functions = {symbol: field for field, symbol in zip(fields, symbols) if symbol.startswith("topology_p_")}
    source = tmp_path / "types.c"
    source.write_text(
        '#include "stock.h"\n'
        f"{operations[0]}\n"
        "#define COUNTED(type, name, parameters, arguments) +1\n"
        f'_Static_assert(0 STOCK_ENTRIES(COUNTED) == {len(functions)}, "the number that Slurm has");\n'
        "void check(slurm_topo_ops_t *ops, Stock *with);\n"
        "void check(slurm_topo_ops_t *ops, Stock *with)\n{\n"
        + "".join(f"    with->{symbol} = ops->{field};\n" for symbol, field in functions.items())
        + "}\n"
    )
    done = compiled(headers, source)
    assert not done.returncode and not done.stderr, done.stderr
    data = set(symbols) - set(functions)
    ours = (plugin_build.SOURCES / "topology_topolane.c").read_text()
    assert not {name for name in data if not re.search(rf"\b{name}\b(\[.*?\])?( =|;| __attribute__)", ours)}


def test_a_release_without_a_table_is_refused(headers: Path, tmp_path: Path) -> None:
    """With a sentence on what to do."""
    for name in ("config.h", "slurm/slurm_version.h"):
        text = (headers / name).read_text()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(re.sub(r"(SLURM_VERSION_NUMBER)\s+0x\w+", r"\1 0x170b0a", text))
    done = compiled(headers, plugin_build.SOURCES / "stock.c", first=(tmp_path, tmp_path / "slurm"))
    assert done.returncode == 1
    assert "another release needs a table of its own in native/slurm/plugin/releases" in done.stderr
