"""The application that every file in ``commands`` adds a command to."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from schedgap.harness.cli.terminal import complain

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Commands(TyperGroup):
    """The commands; Ctrl-C ends any of them with one line."""

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
