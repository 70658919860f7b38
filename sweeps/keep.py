"""Write what is kept of a comparison: ``python sweeps/keep.py FROM TO``.

The results of heuristics that were not asked for, from which searches started, stay behind, as do tables, which follow
from the journal. ``sg.read_run`` and ``harness verify`` read what is left like any results folder. If TO ends in .csv,
only the columns of rows that statistics use are kept; if in .json, rows with their times, and the machine.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from schedgap.harness.engine.folder import Folder, open_stored
from schedgap.harness.engine.study import sound
from schedgap.harness.studies.compare.kept import kept
from schedgap.harness.studies.compare.run import STUDY, read_run


def whole(source: Path, damaged: list[str]) -> None:
    """Exit if results are damaged."""
    if damaged:
        sys.exit(f"{source}: damaged, nothing was written: {damaged[0]}")


def keep(source: Path, target: Path) -> None:
    """Write the results that were asked for to the folder `target`, which is replaced."""
    stored = open_stored(source, STUDY.kind)
    asked = [one for one in sound(STUDY, stored) if not one.helps]
    whole(source, stored.meta.pop("damaged"))
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
    """Write the rows of a run to a file: as CSV, with these columns, or as JSON, with times and the machine."""
    run = read_run(source)
    whole(source, run.meta["damaged"])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(kept(run) if target.suffix == ".json" else run.table[[*COLUMNS]].to_csv(index=False))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    (keep_rows if target.suffix in (".csv", ".json") else keep)(source, target)
