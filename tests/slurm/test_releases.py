"""The entry points and tables of the topology plugin, against the source of each release of Slurm."""

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


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The symbols of the library that Slurm loads."""
    library = tmp_path_factory.mktemp("shim") / plugin_build.PLUGIN
    words = [*plugin_build.OPTIONS, *STRICT[2:5], *plugin_build.PLUGIN_SOURCES, "-ldl", "-o", library]
    subprocess.run(["cc", *words], check=True)
    said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    return {line.split()[-1] for line in said.stdout.splitlines()}


def test_entry_points_are_those_that_slurm_looks_up(
    headers: Path, exported: set[str], tmp_path: Path
) -> None:
    """Each symbol that Slurm looks up is there, because a missing one ends slurmctld. The library passes on at most six arguments,
    each an integer or a pointer. The types of the functions whose arguments it uses are those with which Slurm calls them.
    """
    interface = (headers / "src/interfaces/topology.c").read_text()
    operations = re.search(r"typedef struct slurm_topo_ops \{(.*?)\} slurm_topo_ops_t;", interface, re.DOTALL)
    listed = re.search(r"static const char \*syms\[\] = \{(.*?)\};", interface, re.DOTALL)
    assert operations and listed
    symbols = re.findall(r'"(\w+)"', listed[1])
    assert set(symbols) <= exported
    functions = re.findall(r"(\w[\w\s*]*)\(\s*\*\s*(\w+)\)\s*\(([^)]*)\);", operations[1])
    data = {"plugin_id", "plugin_type", "supports_exclusive_topo"}
    assert len(functions) == len(set(symbols) - data)
    for result, name, arguments in functions:
        assert arguments.count(",") < 6, name
        for type_of in (result, *arguments.split(",")):
            is_plain = re.search(
                r"\*|\b(void|int|bool|u?int\d+_t|topology_\w*type_t|topology_data_t)\b", type_of
            )
            assert is_plain and not re.search("float|double", type_of), (name, type_of)
    types = {field: f"{result.strip()} (*)({arguments})" for result, field, arguments in functions}
    own = {"eval_nodes": "int (*)(topology_eval_t *)", "eval_node": "int (*)(topology_eval_t *, int)"}
    own["allow_one_node"] = "bool (*)(void *)"
    own["get_rank"] = "int (*)(bitstr_t *, uint32_t **, uint32_t *, void *)"
    own["jobinfo_free"] = "void (*)(void *)"
    own["jobinfo_get"] = "int (*)(topology_jobinfo_type_t, void *, void *)"
    checks = [
        f"_Static_assert(__builtin_types_compatible_p({types[field]}, {ours}), {field!r});".replace("'", '"')
        for field, ours in own.items()
        if field in types
    ]
    build = types["build_config"]
    with_context = "void" not in build.partition(")(")[2]
    assert with_context == (number_of(headers) >= 25 << 16 | 5 << 8)
    source = tmp_path / "types.c"
    source.write_text('#include "release.h"\n' + "\n".join(checks) + "\n")
    done = compiled(headers, source)
    assert not done.returncode and not done.stderr, done.stderr


def number_of(headers: Path) -> int:
    major, minor, micro = map(int, plugin_build.release_of(headers).split("."))
    return major << 16 | minor << 8 | micro


def test_a_release_without_a_table_is_refused(headers: Path, tmp_path: Path) -> None:
    """With a sentence on what to do."""
    for name in ("config.h", "slurm/slurm_version.h"):
        text = (headers / name).read_text()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(re.sub(r"(SLURM_VERSION_NUMBER)\s+0x\w+", r"\1 0x170b0a", text))
    done = compiled(headers, plugin_build.SOURCES / "stock.c", first=(tmp_path, tmp_path / "slurm"))
    assert done.returncode == 1
    assert "another release needs a table of its own in native/slurm/plugin/releases" in done.stderr
