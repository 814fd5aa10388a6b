"""Failures from a file, on a machine and on a part of it."""

from __future__ import annotations

import pytest
import topolane
from topolane import failures

UNIT = "nvl72(units=1)"


def test_failures_of_skipped_nodes_do_not_count(tmp_path):
    """A part of a machine knows the nodes of the whole, also if it is a part of a part. The summary counts what is skipped."""
    (tmp_path / "jobs.csv").write_text("id,submit,run,nodes\n7,0,7200,1\n")
    file = tmp_path / "failures.csv"
    file.write_text("node,from,until\ngb3,0,9000\ngb1,5400,9000\ngb3,9500,9600\n")
    part = topolane.machine(UNIT, nodes="gb[1-4]").only([0, 1])
    workload = topolane.workload(tmp_path / "jobs.csv", part.nodes)
    summary = topolane.simulate(workload, part, failures=str(file)).summary
    assert (summary["failures_left_out"], summary["failures"]["interruptions"]) == (2, 1)
    assert [failure.node for failure in failures.read(file, part)] == [0]
    whole = topolane.simulate(workload, topolane.machine(UNIT), failures=str(file)).summary
    assert "failures_left_out" not in whole
    file.write_text("node,from,until\nlogin1,0,9000\n")
    with pytest.raises(topolane.InputError, match="failures.csv:2: .* has no node 'login1'"):
        topolane.simulate(workload, part, failures=str(file))
