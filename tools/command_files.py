"""Puts the manual pages of their commands into wheels of topolane and of wings, and into the first the shell completion of all.

    python tools/command_files.py dist/topolane-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl ...

needs click-man and wheel. pip installs the files under its prefix: share/man/man1 and so on.
SOURCE_DATE_EPOCH is the date of the pages. In addition, the build directory is removed from the list of
crates in the engine.
"""

import copy
import importlib.metadata
import inspect
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import click
from click.shell_completion import get_completion_class
from click_man.core import generate_man_page
from topolane import wings
from topolane.cli import cli
from topolane.cli.explained import ExplainedCommand

ROOT = pathlib.Path(__file__).parents[1]
WHEEL = (sys.executable, "-m", "wheel")
COMPLETION = {
    "bash": "share/bash-completion/completions/topolane",
    "zsh": "share/zsh/site-functions/_topolane",
    "fish": "share/fish/vendor_completions.d/topolane.fish",
}

BLOCK = re.compile(r"\x08\n(.*?)(?=\n\.(?:PP|SH))", re.DOTALL)
"""Marks that Click leaves in the lines of its help."""
MACRO = re.compile(r"^(?=')", re.MULTILINE)
"""Places where roff would take text for a macro."""
OTHER = re.compile(r"(?<=\\fB)topolane [\w -]+(?=\(1\))")
"""The name of another page, in which click-man leaves a blank."""


def summed_up(command: click.Command) -> click.Command:
    """A copy of a command with its whole first paragraph as summary; the same for its subcommands."""
    copied = copy.copy(command)
    copied.short_help = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    if isinstance(copied, click.Group):
        copied.commands = {name: summed_up(below) for name, below in copied.commands.items()}
    return copied


def contexts(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """The context of a command and of all its subcommands."""
    context = click.Context(summed_up(command), info_name=name, parent=parent, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from contexts(found, below, context)


def manual(context: click.Context, version: str) -> str:
    """The manual page of a command, for section 1."""
    page = BLOCK.sub(r".nf\n\1\n.fi", generate_man_page(context, version=version)) + examples(context)
    page = OTHER.sub(lambda found: found[0].replace(" ", "-"), page)
    return MACRO.sub(r"\\&", page)


def examples(context: click.Context) -> str:
    """The section of a manual page with the examples of a command."""
    if not isinstance(context.command, ExplainedCommand):
        return ""
    lines = (f".TP\n{text}:\n.B {escaped(line)}\n" for text, line in context.command.lines(context))
    return f"\n.SH EXAMPLES\n{''.join(lines)}"


def escaped(line: str) -> str:
    """A line that roff sets as it is."""
    return line.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")


def distribution_of(path: str) -> str:
    """The distribution that has a command."""
    found = {
        f"{above} {name}": command.distribution
        for above, group in (("topolane paper", wings.PAPERS), ("topolane", wings.COMMANDS))
        for name, command in wings.added(group).items()
    }
    return next((dist for command, dist in found.items() if f"{path} ".startswith(f"{command} ")), "topolane")


def without_wings() -> click.Group:
    """The commands of topolane alone."""
    core = copy.copy(cli)
    core.list_commands = lambda _: sorted(core.commands)
    return core


def write(prefix: pathlib.Path, distribution: str = "topolane") -> None:
    """Writes all files of a distribution below the prefix."""
    version = importlib.metadata.version("topolane")
    pages = prefix / "share/man/man1"
    pages.mkdir(parents=True, exist_ok=True)
    is_core = distribution == "topolane"
    for context in contexts(without_wings() if is_core else cli, "topolane"):
        if distribution_of(context.command_path) == distribution:
            (pages / f"{context.command_path.replace(' ', '-')}.1").write_text(manual(context, version))
    if is_core:
        write_completion(prefix)


def write_completion(prefix: pathlib.Path) -> None:
    """Writes what the shells read. It asks the command itself, so it knows those of wings too."""
    for shell, file in COMPLETION.items():
        completion = get_completion_class(shell)
        assert completion is not None, shell
        path = prefix / file
        path.parent.mkdir(parents=True)
        path.write_text(completion(cli, {}, "topolane", "_TOPOLANE_COMPLETE").source())


def add_to(whole: pathlib.Path) -> None:
    """Unpacks the wheel, adds the files and packs it again."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([*WHEEL, "unpack", "--dest", made, whole], check=True, stdout=subprocess.DEVNULL)
        (unpacked,) = pathlib.Path(made).iterdir()
        write(unpacked / f"{unpacked.name}.data" / "data", whole.name.split("-")[0].replace("_", "-"))
        for listed in unpacked.glob("*.dist-info/sboms/*.json"):
            listed.write_text(listed.read_text().replace(f"file://{ROOT}/", "file:///topolane/"))
        subprocess.run(
            [*WHEEL, "pack", "--dest-dir", whole.parent, unpacked], check=True, stdout=subprocess.DEVNULL
        )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        add_to(pathlib.Path(argument))
