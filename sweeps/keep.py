"""Write what is kept of a comparison: ``python sweeps/keep.py FROM TO``.

The results of heuristics that were not asked for, from which searches started, stay behind, as do tables, which follow
from the journal. ``sg.read_run`` and ``harness verify`` read what is left like any results folder. If TO ends in .csv,
only the columns of rows that statistics use are kept.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from schedgap.harness.engine.folder import Folder, open_stored
from schedgap.harness.engine.study import sound
from schedgap.harness.studies.compare.run import STUDY, read_run


def keep(source: Path, target: Path) -> None:
    """Write the results that were asked for to the folder `target`, which is replaced."""
    stored = open_stored(source, STUDY.kind)
    asked = [one for one in sound(STUDY, stored) if not one.helps]
    if damaged := stored.meta.pop("damaged"):
        sys.exit(f"{source}: damaged, nothing was written: {damaged[0]}")
    shutil.rmtree(target, ignore_errors=True)
    folder = Folder(target, stored.instances.values())
    for result in asked:
        folder.add(result)
    folder.finish({**stored.meta, "plan": [one.key for one in asked]}, {})


COLUMNS = (
    *("instance", "fingerprint", "paper", "method", "problem", "kind", "sense", "status", "verified"),
    *("objective", "best_bound", "gap", "ratio", "ratio_is_upper"),
)
"""Columns of rows that statistics use, but for times, which differ from run to run."""


def keep_rows(source: Path, target: Path) -> None:
    """Write the rows of a run, with these columns, as CSV."""
    read_run(source).table[[*COLUMNS]].to_csv(target, index=False)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    (keep_rows if target.suffix == ".csv" else keep)(source, target)
