"""The application that every file in ``commands`` adds a command to."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from schedgap.harness.cli.terminal import complain

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Commands(TyperGroup):
    """The commands, each of which takes the options of all; Ctrl-C ends any of them with one line."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.params = list(dict.fromkeys([*command.params, *self.params]))
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How far from optimal are deep-learning cluster schedulers? Certified gaps for published schedulers.",
)


def _load(names: list[str]) -> list[str]:
    from schedgap.instances.plugins import load_plugin

    for name in names:
        load_plugin(name)
    return names


@app.callback()
def all_commands(
    plugin: Annotated[
        list[str],
        typer.Option(
            metavar="FILE.py|MODULE",
            callback=_load,
            is_eager=True,
            expose_value=False,
            help="Load methods, papers, figures, … of your own. Repeatable.",
        ),
    ] = [],  # noqa: B006
) -> None:
    """Take what may follow any command."""
