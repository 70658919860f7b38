"""Write what is kept of a comparison: ``python sweeps/keep.py FROM TO``.

The results of heuristics that were not asked for, from which searches started, stay behind, as do tables, which follow
from the journal. ``sg.read_run`` and ``harness verify`` read what is left like any results folder.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from schedgap.harness.engine.folder import Folder, open_stored
from schedgap.harness.engine.study import sound
from schedgap.harness.studies.compare.run import STUDY


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


if __name__ == "__main__":
    keep(*map(Path, sys.argv[1:]))
