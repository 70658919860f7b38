"""``harness report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import app
from harness.cli.output import save_audit_report, save_report, save_simulation_report


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Results folder of compare, sweep, simulate or audit.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file; FOLDER/report.html by default.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(help="Results folder of an audit, whose table becomes a section of the page.")
    ] = None,
) -> None:
    """Write the self-contained HTML page of a results folder."""
    from harness.store import AUDIT, SIMULATION
    from instances.errors import UsageError

    kind = _kind(folder)
    if audit is not None and kind in (SIMULATION, AUDIT):
        raise UsageError(f"{folder}: an audit's table goes into the page of a comparison, not of a {kind}")
    if kind == SIMULATION:
        from harness.simulation.reading import read_simulation

        save_simulation_report(read_simulation(folder), output)
    elif kind == AUDIT:
        from harness.report.audit import read_audit

        save_audit_report(read_audit(folder), output or folder / "report.html")
    else:
        from harness.comparison import Comparison
        from harness.store import read_run

        save_report(Comparison(read_run(folder), folder), output, audit)


def _kind(folder: Path) -> str | None:
    """Return what a results folder says that it is of; ``None`` for a comparison, or no results folder at all."""
    try:
        kind = json.loads((folder / "run.json").read_bytes()).get("kind")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return kind if isinstance(kind, str) else None
