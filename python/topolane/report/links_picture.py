"""A picture of the loads that some jobs put on a network's links."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import polars

from topolane import files
from topolane._engine import InputError

from .data import MachinePicture

if TYPE_CHECKING:
    from topolane._engine import Machine


@dataclasses.dataclass(frozen=True)
class LoadedLinks:
    """Links with loads, in the form that the picture of a run's links takes."""

    label: str
    links: polars.DataFrame


def check_name(out: str) -> None:
    """Raises InputError if the file name ends in neither .svg nor .png."""
    if Path(out).suffix.lower() not in (".svg", ".png"):
        raise InputError(f"--picture {out}: ends in neither .svg nor .png")


def draw(machine: Machine, links: polars.DataFrame, out: str, title: str) -> None:
    """Draws the links of a machine into an .svg or .png. Raises InputError if the file cannot be written."""
    from .figures import link_heat
    from .heat import HeatScale
    from .svg import to_svg

    check_name(out)
    if machine.wiring != "tree":
        raise InputError(
            f"--picture {out}: loads are drawn on trees only, and the machine is a {machine.wiring}"
        )
    loaded = LoadedLinks(title, links)
    plot = link_heat.draw(loaded, MachinePicture.of(machine), HeatScale.of([loaded]), 1)
    plot.figure.title = f"{title}\n{plot.words}"
    if out.lower().endswith(".svg"):
        files.write(out, to_svg(plot.figure, plot.tips), "--picture")
        return
    from .png import to_png

    files.write(out, to_png(plot.figure, 160), "--picture")
