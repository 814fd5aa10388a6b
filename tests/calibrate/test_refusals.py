"""What goes wrong between a compiler, a launcher and a file: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import json

import pytest
from clusters import QDR, Calibrate, needs

HEADING = json.dumps({"calibrate": 1, "measurements": 2, "hosts": ["a", "b"]})
ROW = {
    "pattern": "pairs",
    "sharers": 1,
    "bytes": 0,
    "seconds": 1e-6,
    "low": 1e-6,
    "high": 1e-6,
    "repetitions": 5,
}
LAST = ROW | {"bytes": 65536, "seconds": 1e-4}
END = '{"end": 2}'


def text(*lines: str | dict[str, object]) -> str:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "kept.jsonl: no measurements in it"),
        ("hello\n", "kept.jsonl: no measurements in it"),
        (text(HEADING, ROW), "kept.jsonl: breaks off after 1 of 2"),
        (text(HEADING, ROW, END), "kept.jsonl: breaks off after 1 of 2"),
        (text(HEADING, ROW, LAST), "kept.jsonl: breaks off after 2 of 2"),
        (
            text(HEADING, '{"pattern": "pa'),
            'kept.jsonl: line 2 is no measurement: \'{"pattern": "pa\' (not JSON)',
        ),
        (text(ROW), "line 1 is no measurement"),
        (text(HEADING, ROW, ROW), "line 3 is no measurement"),
        (text(HEADING, ROW | {"seconds": -1}), "seconds -1 is not a time"),
        (text(HEADING, ROW | {"seconds": float("nan")}), "seconds nan is not a time"),
        (text(HEADING, ROW | {"seconds": "1"}), "seconds '1' is not a time"),
        (text(HEADING, ROW | {"bytes": 1.5}), "bytes 1.5 is not a whole number"),
        (text(HEADING, ROW | {"pattern": "ring"}), "pattern 'ring' is not known"),
        (text(HEADING, {"pattern": "pairs"}), "no seconds"),
        (text(HEADING, HEADING), "line 2 starts a second run"),
        (text(HEADING.replace(": 1,", ": 7,", 1)), "format 7 is not known"),
        (text(HEADING.replace('"b"', '"b", "b"'), ROW, LAST, END), "1 on a, 2 on b; wanted the same number"),
        (text(HEADING, ROW, LAST, END), "do not tell bandwidth from latency"),
    ],
)
def test_a_file_that_is_no_measurement(calibrate: Calibrate, given: str, says: str) -> None:
    (calibrate.directory / "kept.jsonl").write_text(given)
    assert says in calibrate.refused("--from", "kept.jsonl")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--from", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        ((), "the number of processes per node is missing"),
        (("--processes", 2, "--mpicc", "no-such-compiler"), "--mpicc no-such-compiler: cannot be started"),
        (("--processes", 2, "--mpicc", "false"), "--mpicc false: ended with exit code 1"),
        (("--processes", 2, "--mpicc", "true"), "--mpicc true: "),
        (("--processes", 2, "--mpicc", "cc -include no-such.h"), "no-such.h"),
        (("--processes", 2, "--mpicc", "'"), "No closing quotation"),
        (("--processes", 2, "--launch", "mpiexec -n 4"), "{program} is not in it"),
        (("--processes", 0), "0"),
        (("--machine", "nope"), "no machine and no file is called 'nope'"),
    ],
)
def test_what_cannot_be_started(calibrate: Calibrate, arguments: tuple[object, ...], says: str) -> None:
    assert says in calibrate.refused(*arguments)


@needs("mpicc", package="libopenmpi-dev")
@pytest.mark.parametrize(
    ("launcher", "says"),
    [
        ("no-such-launcher {program}", "--launch no-such-launcher: cannot be started"),
        ("sh -c 'echo no allocation >&2; exit 3' {program}", "sh: ended with exit code 3: no allocation"),
        ("sh -c 'kill -9 $$' {program}", "sh: ended by signal 9"),
        ("echo {program}", "no measurements in it"),
        ("echo '{\"calibrate\": ' {program}", "line 1 is no measurement"),
        (f"echo '{HEADING}' {{program}}", "is no measurement"),
        (
            f"sh -c 'echo \"$0\"' '{HEADING}' {{program}}",
            "processes were started 1 on a, 1 on b; wanted 2 on each",
        ),
    ],
)
def test_a_launcher_that_does_not_launch(calibrate: Calibrate, launcher: str, says: str) -> None:
    assert says in calibrate.refused("--processes", 2, "--launch", launcher)


@needs("smpicc", "smpirun", package="libsimgrid-dev")
def test_processes_elsewhere_than_asked_for(calibrate: Calibrate) -> None:
    launcher = QDR.write(calibrate.directory, 2, 2)
    hosts = calibrate.directory / "hosts"
    hosts.write_text("n0\nn0\nn0\nn1\n")
    asked = ("--processes", 2, "--mpicc", "smpicc", "--launch", launcher)
    assert "3 on n0, 1 on n1; wanted 2 on each of 2 nodes" in calibrate.refused(*asked)
    hosts.write_text("n0\n" * 4)
    assert "4 on n0; wanted 2 on each of 2 nodes" in calibrate.refused(*asked)
