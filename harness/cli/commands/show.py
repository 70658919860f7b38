"""``harness show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.terminal import stdout


@app.command()
def show(
    instance: Annotated[str, typer.Argument(help="gen/…, paper/…, worst/…, or a path.")],
    picture: Annotated[Path | None, typer.Option(help="Also draw the instance to this .png or .svg file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the instance itself as canonical JSON.")] = False,
) -> None:
    """Show an instance in words and a picture."""
    from schedgap.harness.page.instance import draw_instance, words
    from schedgap.instances import load
    from schedgap.instances.canonical import to_json

    loaded = load(instance)
    if picture:
        draw_instance(loaded, picture)
    if json:
        sys.stdout.write(to_json(loaded))
    else:
        stdout().print(words(loaded))
