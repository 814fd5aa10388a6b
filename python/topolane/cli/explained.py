"""Commands whose help ends with examples. With many options, it shows only the common ones; `--help-all` shows all, in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MANY = 15
"""The most options that `--help` lists in full."""
COMMON = "Common options"
ALL = "topolane.all_options"
"""Set in the context while `--help-all` prints."""
GROUPS = {
    "Machine": "machine machine-format nodes topology join",
    "Workload": (
        "workload trace limit days partition load loads squeeze nodes-x cores-per-node gpus-per-node "
        "shared drop-hosts default-walltime"
    ),
    "Policies and queues": (
        "policy policies queue queue-config scenario scenarios min-bandwidth within segment "
        "segments defrag shadow"
    ),
    "Network and traffic": (
        "network routing comm-fraction patterns kill-at-walltime traffic ranks ranks-per-node "
        "node-links effort"
    ),
    "Failures": "failures outages spares checkpoint",
    "What the records say": "baseline held capacity order",
    "Live systems": (
        "slurm state slurmrestd slurm-token-file kubernetes kubeconfig context config labels "
        "shadow-log interval hosts"
    ),
    "Page": "listen token-file auth-header public-name viewers speed",
    "Runs": "seed seeds jobs executor resume shard threads",
    "Output": "out report png at parquet to format json",
}
"""The options of each group by their first name: an option is in the same group in all commands."""
GROUP_OF = {f"--{name}": group for group, names in GROUPS.items() for name in names.split()}


class ExplainedCommand(click.Command):
    """A command with examples.

    examples: what an example does, and its words after the name of the command, or a line with `{}` for that name.
    common: the options that `--help` shows if there are more than `MANY`, by their first names.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Mapping[str, str] | None = None,
        common: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples or {}
        self.common = [f"--{name}" for name in common.split()]
        count = sum(isinstance(parameter, click.Option) for parameter in self.params)
        self.is_long = count > MANY
        if self.is_long:
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_show_all,
                    help=f"Show all {count} options, in groups.",
                )
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.is_long:
            super().format_options(ctx, formatter)
            return
        shows_all = ctx.meta.get(ALL, False)
        for title, options in self.groups(ctx).items():
            if title == COMMON or shows_all:
                _write(ctx, formatter, title, options)

    def groups(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options by group: the common ones and those of help come first."""
        found: dict[str, list[click.Option]] = {title: [] for title in (COMMON, *GROUPS, "Others")}
        options = {
            option.opts[0]: option for option in self.get_params(ctx) if isinstance(option, click.Option)
        }
        first = [*self.common, "--help-all", "-h", "--help"]
        for name in sorted(options, key=lambda name: first.index(name) if name in first else len(first)):
            found[COMMON if name in first else GROUP_OF.get(name, "Others")].append(options[name])
        return {title: options for title, options in found.items() if options}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if not self.examples:
            return
        with formatter.section("Examples"):
            for sentence, line in self.lines(ctx):
                formatter.write(f"{'':{formatter.current_indent}}{sentence}:\n")
                formatter.write(f"{'':{formatter.current_indent}}  {line}\n")

    def lines(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """Every example: what it does, and the whole command."""
        for sentence, words in self.examples.items():
            line = words if "{}" in words else f"{{}} {words}"
            yield sentence, line.replace("{}", ctx.command_path).rstrip()


def _write(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, options: Sequence[click.Option]
) -> None:
    with formatter.section(title):
        formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Prints the help with all options, and ends."""
    if asked and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
