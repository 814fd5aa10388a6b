"""Writes fitted parameters into a machine file and leaves the rest of the file unchanged."""

from __future__ import annotations

import math
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from topolane import _engine
from topolane.calibrate.fit import Fit
from topolane.calibrate.measurement import Measurement

DIGITS = 4
PASSES = 4
"""How often a byte passes to or from memory when it is copied between processes, according to the model
`shared-memory`: `memory-bandwidth` is the bandwidth of all copies together, times this.
"""


def parameters(fit: Fit, nics: int = 1) -> dict[str, Any]:
    """The measured keys of `[node]`: bytes per second, seconds, and the penalty's factors.

    The total of a node's `nics` interfaces is divided evenly between them.
    """
    found: dict[str, Any] = {}
    if fit.interface is not None:
        found["nic-bandwidth"] = rounded(max(fit.interface.bandwidth, fit.interface.flow) / nics)
        found["flow-bandwidth"] = rounded(fit.interface.flow)
        if any(len(rates) > 1 for rates in fit.interface.rates.values()):
            factors = {name: rounded(value) for name, value in fit.interface.factors.items()}
            found["penalty"] = {"model": fit.interface.model, **factors}
    if fit.latency is not None:
        found["latency"] = rounded(fit.latency)
    if fit.memory is not None:
        found["copy-bandwidth"] = rounded(fit.memory.one)
        if fit.memory.total is not None:
            found["memory-bandwidth"] = rounded(PASSES * fit.memory.total)
    if fit.latency_inside is not None:
        found["copy-latency"] = rounded(fit.latency_inside)
    return found


def rounded(value: float) -> float:
    """The value rounded to the significant digits of a measurement."""
    return float(f"{value:.{DIGITS}g}")


def minimal(measurement: Measurement, fit: Fit) -> str:
    """The text of a machine file with only the measured nodes, under one switch."""
    document = tomlkit.document()
    document["name"] = "calibrated"
    node = tomlkit.table()
    node["sockets"] = 1
    node["cores-per-socket"] = measurement.processes
    document["node"] = node
    site = tomlkit.table()
    site["name"] = "site"
    site["children"] = [len(measurement.nodes)]
    if fit.interface is not None:
        site["bandwidth"] = rounded(max(fit.interface.bandwidth, fit.interface.flow))
    site["nodes"] = ",".join(measurement.nodes)
    sites = tomlkit.aot()
    sites.append(site)
    document["site"] = sites
    return merged(tomlkit.dumps(document), fit)


def merged(text: str, fit: Fit) -> str:
    """The machine file `text` with the measured parameters in `[node]`. Comments and order stay."""
    document = tomlkit.parse(text)
    node = document.get("node")
    if not isinstance(node, (Table, InlineTable)):
        node = tomlkit.table()
        document["node"] = node
    for key, value in parameters(fit, int(node.get("nics", 1))).items():
        node[key] = inline(value) if isinstance(value, dict) else value
    return tomlkit.dumps(document)


def inline(values: dict[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    table.update(values)
    return table


def check(text: str, source: str) -> _engine.Machine:
    """The machine that the file describes. Raises InputError if it cannot be used."""
    return _engine.Machine.parse(text, source, "toml")


def narrow_cables(text: str, fit: Fit) -> str | None:
    """A sentence if the cables to nodes have less bandwidth in the file than measured; None if not."""
    if fit.interface is None:
        return None
    measured = fit.interface.bandwidth
    sites = tomlkit.parse(text).unwrap().get("site", [])
    for site in sites:
        given = site.get("bandwidth", 4e9)
        first = given[0] if isinstance(given, list) else given
        cables = math.prod((site.get(key) or [1])[0] for key in ("parents", "cables"))
        if first * cables < 0.99 * measured:
            return (
                f"the cables to the nodes of site {site.get('name')} carry {first * cables:.4g} bytes/s in the "
                f"machine file, but {measured:.4g} were measured over them: mend 'bandwidth' there"
            )
    return None
