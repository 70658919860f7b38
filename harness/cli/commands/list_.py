"""``harness list``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.options import Format, FormatOption
from schedgap.harness.cli.output import emit_lines


class Kind(StrEnum):
    """What ``harness list`` lists."""

    INSTANCES = "instances"
    MODELS = "models"
    HEURISTICS = "heuristics"
    POLICIES = "policies"
    PAPERS = "papers"
    FORMATS = "formats"
    PLUGINS = "plugins"


@app.command("list")
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """List what there is, one line each, with source."""
    from schedgap.harness.listing import listing

    columns, lines = listing(kind.value)
    emit_lines(kind.value, columns, lines, output)
