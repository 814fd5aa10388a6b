"""Runs benchmarks by name: `python benches/run.py [NAME...] [OPTION...]`, or `make bench BENCH="NAME ..."`.

A name is that of a case (`slurm/scale`) or of an area (`nova`: all its cases that need not be named); without one, the area
`engine` is measured. `--list` prints the cases, `NAME --help` the options of one. The exit code is 1 if a target was missed
or a rule broken, and 2 for wrong options or a missing component.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parent
ROOT = BENCHES.parent
sys.path.insert(0, str(BENCHES))

from measure import HEADINGS, BenchError, Options, Result, Row, asked, table
from registry import CASES, PATHS, Case, Option

ERRORS = (BenchError, RuntimeError, ValueError, OSError, AssertionError, subprocess.SubprocessError)
"""Errors that end a case with one sentence and exit code 2. InputError is a ValueError."""
PEERS = ("engine/peers", "engine/mapping-peers")
OUTPUT = Path("-")


def selected(names: Sequence[str]) -> list[Case]:
    """The cases with these names or in these areas. Raises ValueError for an unknown name."""
    found: dict[str, Case] = {}
    for name in names:
        cases = [case for case in CASES if case.name == name or (case.area == name and not case.named)]
        if not cases:
            close = [case.name for case in CASES if case.area == name.partition("/")[0]]
            hint = f"name one of {', '.join(close)}" if close else "--list prints all"
            raise ValueError(f"there is no benchmark '{name}': {hint}")
        found |= {case.name: case for case in cases}
    return list(found.values())


def parser_of(cases: Sequence[Case]) -> argparse.ArgumentParser:
    """The parser for the common options and those of the cases."""
    text = f"{cases[0].name}: {cases[0].measures}\n\n{docstring(cases[0])}" if len(cases) == 1 else __doc__
    parser = argparse.ArgumentParser(
        prog="run.py",
        usage="run.py [NAME...] [OPTION...]",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="little of everything: to see that it works")
    parser.add_argument(
        "--json", type=Path, nargs="?", const=OUTPUT, metavar="FILE",
        help="write the figures to this file as well; without FILE, print them instead of tables",
    )  # fmt: skip
    parser.add_argument("--trace", type=file, metavar="FILE", help="a log of jobs, for cases that read one")
    parser.add_argument(
        "--peers", action="store_true", help=f"also {' and '.join(PEERS)}, which install others"
    )
    parser.add_argument("--list", action="store_true", help="print all cases")
    parser.add_argument(
        "--builds", action="store_true", help="print what make builds before, for the Makefile"
    )
    own = parser.add_argument_group("options of the case" if len(cases) == 1 else "options of some cases")
    groups: dict[str, Any] = {}
    for option in {option.name: option for case in cases for option in case.options}.values():
        to = own
        if option.group:
            to = groups.setdefault(option.group, None) or own.add_mutually_exclusive_group()
            groups[option.group] = to
        add(to, option)
    return parser


def add(to: Any, option: Option) -> None:
    """Adds an option to a parser. An option that is not given is missing in the result."""
    words: dict[str, Any] = {"help": option.help, "default": argparse.SUPPRESS, "required": option.required}
    if option.default is False:
        to.add_argument(f"--{option.name}", action="store_true", **words)
        return
    default = option.default
    if default not in (None, 0):
        shown = " ".join(map(str, default)) if option.many else str(default)
        words["help"] += f" [{shown}]".replace("%", "%%")
    one = default[0] if option.many and default else default
    words |= {"type": option.type or type(one), "choices": option.choices or None}
    words |= {"nargs": "+"} if option.many else {}
    metavar = (
        None if option.choices else words["type"].__name__.upper().replace("STR", "TEXT").replace("INT", "N")
    )
    to.add_argument(f"--{option.name}", metavar=metavar, **words)


def file(text: str) -> Path:
    """The path of an existing file."""
    path = Path(text).resolve()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: there is no such file")
    return path


def docstring(case: Case) -> str:
    """The docstring of a case's module, read without an import because the import needs the case's
    requirements.
    """
    import ast

    module = case.function.partition(":")[0]
    folders = [ROOT / part for part in PATHS.get(case.area, ())]
    for path in (
        folder / f"{module}{end}" for folder in (*folders, BENCHES) for end in (".py", "/__init__.py")
    ):
        if path.exists():
            return ast.get_docstring(ast.parse(path.read_text())) or ""
    return ""


def options_of(case: Case, given: argparse.Namespace) -> Options:
    """The options of a case: those given, otherwise those of --quick, otherwise the defaults."""
    values = {option.key: option.default for option in case.options}
    values |= case.quick if given.quick else {}
    values |= {key: getattr(given, key) for key in values if hasattr(given, key)}
    return Options(case=case.name, quick=given.quick, trace=given.trace, json=given.json, **values)


def missing(case: Case) -> str:
    """What the case needs and this machine lacks; empty if nothing."""
    if case.root and os.geteuid():
        return "run it as root"
    for need, how in case.needs.items():
        word, _, module = need.partition(" ")
        if not (importlib.util.find_spec(module) if module else shutil.which(word)):
            return f"{module or word} is missing: {how}"
    return ""


def measured(case: Case, options: Options) -> Result:
    """The result of a case's function. Raises one of ERRORS."""
    if why := missing(case):
        raise RuntimeError(why)
    for part in reversed(PATHS.get(case.area, ())):
        if str(ROOT / part) not in sys.path:
            sys.path.insert(0, str(ROOT / part))
    module, _, function = case.function.partition(":")
    found = getattr(importlib.import_module(module), function)(options)
    return found if isinstance(found, Result) else Result(found)


def facts_of(options: Options, result: Result) -> Any:
    """The JSON value for a case: its figures with its options, and its other facts."""
    if not result.rows and result.facts is not None:
        return result.facts
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    figures = [row.facts() for row in result.rows]
    return {"machine": machine, "options": asked(options), "figures": figures, **(result.facts or {})}


def run(cases: Sequence[Case], given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Measures cases of one process and prints their figures in one table. Returns the exit code and the
    facts of each case.
    """
    rows: list[Row] = []
    notes: dict[str, None] = {}
    facts: dict[str, Any] = {}
    codes = {0}
    for case in cases:
        if len(cases) > 1:
            print(f"measuring {case.name}", file=sys.stderr)
        options = options_of(case, given)
        try:
            result = measured(case, options)
        except ERRORS as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            codes.add(2)
            continue
        rows += result.rows
        notes |= dict.fromkeys(result.notes)
        facts[case.name] = facts_of(options, result)
        codes.add(int(result.failed or any(row.verdict == "MISSED" for row in result.rows)))
    if rows:
        print(table([HEADINGS, *(row.cells() for row in rows)]))
    for note in notes:
        print(note)
    return 1 if 1 in codes else max(codes), facts


def run_apart(groups: Sequence[list[Case]], given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Like `run`, with a separate process for each group."""
    facts: dict[str, Any] = {}
    codes = {0}
    for cases in groups:
        known = {"quick", "trace", *(option.key for case in cases for option in case.options)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "facts.json"
            words = [*(case.name for case in cases), "--json", str(path)]
            for key, value in vars(given).items():
                if key in known and value not in (None, False):
                    values = value if isinstance(value, list) else [] if value is True else [value]
                    words += [f"--{key.replace('_', '-')}", *map(str, values)]
            sys.stdout.flush()
            codes.add(subprocess.run([sys.executable, __file__, *words], stdout=sys.stdout).returncode)
            if path.exists():
                found = json.loads(path.read_text())
                facts |= {cases[0].name: found} if len(cases) == 1 else found
    return 1 if 1 in codes else max(codes), facts


def print_list(cases: Sequence[Case], as_json: bool) -> None:
    """Prints the cases: names, what they measure, and what they need."""
    needs = {case.name: [*(["root"] if case.root else []), *case.needs] for case in cases}
    if as_json:
        rows = [
            {"name": case.name, "measures": case.measures, "named": case.named, "needs": needs[case.name]}
            | {"builds": case.builds, "options": [option.name for option in case.options]}
            for case in cases
        ]
        print(json.dumps(rows, indent=2))
        return
    print(
        table(
            [
                ["case", "measures", "needs"],
                *([case.name, case.measures, ", ".join(needs[case.name])] for case in cases),
            ]
        )
    )
    print(f"Only if named: {', '.join(case.name for case in cases if case.named)}")


def main(words: Sequence[str]) -> int:
    """Runs the named cases. Returns the exit code."""
    names = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    if "--builds" in words and {"--list", "--help", "-h"} & set(words):
        return 0
    try:
        cases = selected(names or ["engine"])
    except ValueError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    parser = parser_of(cases)
    given = parser.parse_args(words[len(names) :])
    if given.list:
        print_list(cases if names else CASES, given.json is not None)
        return 0
    if given.peers:
        cases = selected([*(case.name for case in cases), *PEERS])
    if given.builds:
        print(*dict.fromkeys(target for case in cases for target in case.builds))
        return 0
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.process, []).append(case)
    output = contextlib.redirect_stdout(sys.stderr) if given.json == OUTPUT else contextlib.nullcontext()
    with output:
        code, facts = run(cases, given) if len(groups) == 1 else run_apart(list(groups.values()), given)
        waiting = [
            case.name
            for case in CASES
            if case.named and case.area in (names or ["engine"]) and case not in cases
        ]
        if waiting:
            print(f"Not measured, because not named: {', '.join(waiting)}")
    if given.json and facts:
        text = (
            json.dumps(next(iter(facts.values())) if len(cases) == 1 else facts, indent=2, default=str) + "\n"
        )
        print(text, end="") if given.json == OUTPUT else given.json.write_text(text)
    return code


def end(*_: object) -> None:
    """Ends this program like an exception, so that its child processes end too. A second signal does not
    interrupt this.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    sys.exit(main(sys.argv[1:]))
