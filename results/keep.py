"""Merge a run into a kept table: ``python results/keep.py results/reproductions.json FOLDER``.

Rows of the figures that ran replace those in the table; rows of figures that exist no more are dropped. The same for
what an audit found of mechanisms and their properties, whose table is :data:`FOUND`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from schedgap.harness.show.table import to_json
from schedgap.harness.studies.audit.claims.properties import FOUND, PREFIX, as_kept, read_kept
from schedgap.harness.studies.audit.row import CLAIMS
from schedgap.harness.studies.folders import reopen
from schedgap.harness.studies.reproduce.row import read_rows
from schedgap.harness.studies.reproduce.setting import known


def keep(table: Path, folder: Path) -> None:
    """Write the rows of both, those of the run first where a figure is in both, in the order of the figures."""
    new, old = read_rows(folder / "figures.json"), read_rows(table)
    rows = [row for id in known() for row in new.of(id) or old.of(id)]
    if trouble := [row.trouble for row in rows if row.trouble]:
        sys.exit(f"{folder}: a run failed, nothing was written: {trouble[0]}")
    table.write_text(to_json(row.as_dict() for row in rows))


def keep_properties(table: Path, folder: Path) -> None:
    """Write the findings of both, those of the run first where a claim is in both, in the order of the claims."""
    findings = [finding for finding in reopen(folder).rows if finding.id.startswith(PREFIX)]
    if failed := [finding.label for finding in findings if not finding.finished]:
        sys.exit(f"{folder}: a check failed, nothing was written: {failed[0]}")
    rows = read_kept(table)
    rows |= {finding.id: as_kept(finding, rows.get(finding.id)) for finding in findings}
    table.write_text(to_json(rows[claim.id] for claim in CLAIMS if claim.id in rows))


if __name__ == "__main__":
    table, folder = map(Path, sys.argv[1:])
    (keep_properties if table.name == FOUND else keep)(table, folder)
