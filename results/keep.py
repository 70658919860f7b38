"""Merge the figures of a run into a kept table: ``python results/keep.py results/reproductions.json FOLDER``.

Rows of the figures that ran replace those in the table; rows of figures that exist no more are dropped.
"""

from __future__ import annotations

import sys
from pathlib import Path

from schedgap.harness.show.table import to_json
from schedgap.harness.studies.reproduce.row import read_rows
from schedgap.harness.studies.reproduce.setting import known


def keep(table: Path, folder: Path) -> None:
    """Write the rows of both, those of the run first where a figure is in both, in the order of the figures."""
    new, old = read_rows(folder / "figures.json"), read_rows(table)
    rows = [row for id in known() for row in new.of(id) or old.of(id)]
    if trouble := [row.trouble for row in rows if row.trouble]:
        sys.exit(f"{folder}: a run failed, nothing was written: {trouble[0]}")
    table.write_text(to_json(row.as_dict() for row in rows))


if __name__ == "__main__":
    keep(*map(Path, sys.argv[1:]))
