"""The notebook of the tutorials runs, and says what its runs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from waiting import DEADLINE

nbclient = pytest.importorskip("nbclient", reason="the Python package nbclient is missing")
nbformat = pytest.importorskip("nbformat", reason="the Python package nbformat is missing")
for needed in ("ipykernel", "duckdb", "pandas", "pyarrow"):
    pytest.importorskip(needed, reason=f"the Python package {needed} is missing")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "notebook.ipynb"


def rows(table: str) -> list[list[str]]:
    """The cells of a table of polars, without its head."""
    lines = table.partition("╞")[2].splitlines()
    return [[cell.strip() for cell in re.split("[│┆]", line)[1:-1]] for line in lines if line.startswith("│")]


def test_the_notebook_holds_no_output() -> None:
    """Outputs are not committed: they would be old with the next change."""
    for cell in nbformat.read(NOTEBOOK, 4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_the_notebook_runs(tmp_path: Path) -> None:
    """Every cell runs in order, none warns, and those that end in a value or a figure show it. What the text says of them holds:
    only first-fit lets jobs share links; and a policy that counts waits as long as another one that counts."""
    notebook = nbformat.read(NOTEBOOK, 4)
    client = nbclient.NotebookClient(
        notebook, timeout=DEADLINE, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = {}
    for index, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        assert not [one for one in cell.outputs if one.get("name") == "stderr"], cell.outputs
        shown[index] = "".join(
            str(one.get("text", "")) + str(one.get("data", {}).get("text/plain", "")) for one in cell.outputs
        )
    assert "1296 nodes, 1500 jobs" in shown[0]
    compared = {cells[0]: cells[1:] for cells in rows(shown[2])}
    assert list(compared) == ["first-fit", "isolated", "dedicated"]
    assert int(compared["first-fit"][-1]) > 0
    assert compared["isolated"][-1] == compared["dedicated"][-1] == "0"
    assert {cells[0] for cells in rows(shown[3])} == {"up to 4", "5 to 64", "more than 64"}
    figures = [
        one
        for cell in notebook.cells
        for one in cell.get("outputs", [])
        if "image/png" in one.get("data", {})
    ]
    assert len(figures) == 1
    assert float(shown[5]) == pytest.approx(float(compared["first-fit"][0]), abs=1e-6)
    counts = [int(line.split()[-1]) for line in shown[6].splitlines()[1:]]
    assert len(counts) == 5 and counts == sorted(counts, reverse=True)
