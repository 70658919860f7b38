"""``harness explain``."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.terminal import say


class Style(StrEnum):
    """How explanations are printed."""

    TEXT = "text"
    LATEX = "latex"
    MARKDOWN = "markdown"
    JSON = "json"


@app.command()
def explain(
    name: Annotated[
        str, typer.Argument(help="Model or heuristic, or the beginning of several ids: hadar.p1, hadar.p2, 'oef.*'.")
    ],
    instance: Annotated[
        str | None, typer.Option(help="gen/…, paper/…, or a path: where sizes are counted. Default: a small one.")
    ] = None,
    style: Annotated[Style, typer.Option("--format", help="How it is printed to standard output.")] = Style.TEXT,
    large: Annotated[bool, typer.Option("--all", help="Build models above their stated size, too.")] = False,
) -> None:
    """Explain a model: sets, data, variables, rows with the paper's equation numbers, duals, errata, sizes."""
    from schedgap.harness.explain import explain as explained

    def begins(model: str, where: str) -> None:
        if sys.stderr.isatty():
            say(f"building {model} on {where}")

    found = explained(name, instance, large=large, on_model=begins)
    sys.stdout.write(str(getattr(found, style.value)))
