"""tools/run_tests.py: what it starts ends with it, and which of its parts have failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_enclosed import enclosed, runs
from waiting import until

TOOLS = Path(__file__).parents[2] / "tools"
PARTS = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from run_tests import Part, together
signal.signal(signal.SIGINT, signal.default_int_handler)
part = Part("endless", [["bash", "-c", f"setsid bash -c 'exec -a {sys.argv[2]} sleep 600' & exec sleep 600"]])
together(Part("in front", [["sleep", "600"]]), part) if sys.argv[3] == "behind" else part.run()
"""


@pytest.mark.parametrize("place", ["alone", "behind"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_what_a_part_started_ends_with_the_runner(end: signal.Signals, place: str, tmp_path: Path) -> None:
    """Also by kill -9, and also behind another part. Else its tests and what they build would go on and use the cores."""
    name = f"{tmp_path.name}-{os.getpid()}"
    if enclosed("readlink /proc/self/ns/net").stdout.strip() == os.readlink("/proc/self/ns/net"):
        pytest.skip("this process may make no namespaces")
    with subprocess.Popen(
        [sys.executable, "-c", PARTS, TOOLS, name, place], stderr=subprocess.DEVNULL
    ) as runner:
        until(lambda: runs(name), "the part runs")
        runner.send_signal(end)
    until(lambda: not runs(name), "all that it started has ended")


def test_tests_may_send_ctrl_c_also_where_the_runner_ignores_it() -> None:
    """A part that was started in the background of a shell ends by SIGINT as it does in the foreground."""
    program = "import run_tests; run_tests.lint = lambda: [run_tests.Part('ends', [['sh', '-c', 'kill -INT $$']]).run()]"
    script = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); {program}; sys.exit(run_tests.main('lint'))"
    ignoring = 'trap \'\' INT; exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", ignoring, sys.executable, script], capture_output=True, text=True)
    assert "FAILED" in done.stdout, done


@pytest.mark.parametrize(("tests_of_gang", "code"), [(1, 0), (0, 1)])
def test_a_part_without_tests_has_passed_if_another_has_those_of_the_suite(
    tests_of_gang: int, code: int, tmp_path: Path
) -> None:
    """All tests of gangs need all cores, so the part of those that do not is empty. A suite of which no test ran has failed."""
    case = '<testcase classname="gang.tests.test_gang_groups" name="test" time="1"/>'
    program = f"""
import sys
sys.path.insert(0, {str(TOOLS)!r})
import run_tests
from pathlib import Path
run_tests.RECORDS = Path({str(tmp_path)!r})
run_tests.live_suites.note = lambda seconds: None
def part(name, marks, *options, workers=0):
    text = {case!r} * {tests_of_gang} if "and alone" in marks else ""
    run_tests.record_of(name).write_text(f"<testsuite>{{text}}</testsuite>")
    ends = 0 if text else 5
    return run_tests.Part(name, [["sh", "-c", f"exit {{ends}}"]])
run_tests.python = part
sys.exit(run_tests.main("live", "gang"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("FAILED" in done.stdout) == bool(code)
