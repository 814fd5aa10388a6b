"""tools/run_tests.py: what it starts ends with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

TOOLS = Path(__file__).parents[2] / "tools"
PART = """
import sys
sys.path.insert(0, sys.argv[1])
from run_tests import Part
Part("endless", [["sh", "-c", "echo $$; exec sleep infinity"]]).run()
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing")
def test_a_part_ends_when_the_runner_is_killed() -> None:
    """Also by kill -9. Else its tests would go on and use the cores."""
    with subprocess.Popen([sys.executable, "-c", PART, TOOLS], stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        part = Path("/proc") / runner.stdout.readline().decode().strip() / "cmdline"
        assert part.exists()
        runner.kill()
        until(lambda: not part.exists(), "the part has ended")


def test_tests_may_send_ctrl_c_also_where_the_runner_ignores_it() -> None:
    """A part that was started in the background of a shell ends by SIGINT as it does in the foreground."""
    program = "import run_tests; run_tests.lint = lambda: [run_tests.Part('ends', [['sh', '-c', 'kill -INT $$']]).run()]"
    script = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); {program}; sys.exit(run_tests.main('lint'))"
    ignoring = 'trap \'\' INT; exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", ignoring, sys.executable, script], capture_output=True, text=True)
    assert "FAILED" in done.stdout, done
