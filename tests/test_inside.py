"""The page on the harness's inside is true: its functions run on the way to a row, in the files that it names."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

from conftest import ROOT

from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances import load

PAGE = (ROOT / "docs" / "inside.md").read_text()
LATER = {"column"}
"""Functions that are called only when a table is printed."""


def steps() -> list[tuple[str, str]]:
    """Return (function, file) of each step in the page's table."""
    rows = re.findall(r"^\|[^|]*\| (`[^|]*`) \| `([^`|]*\.py)` \|$", PAGE, re.M)
    return [(name, file) for names, file in rows for name in re.findall(r"`([^`]+)`", names)]


def test_a_row_takes_the_way_that_the_map_shows() -> None:
    instance, passed = load("paper/oef-eq1"), dict[tuple[str, str], None]()

    def note(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event == "call" and "schedgap" in code.co_filename:
            passed[code.co_qualname, str(Path(code.co_filename).resolve())] = None

    sys.setprofile(note)
    try:
        compare_here(instance, "oef.cooperative", probes=False)
    finally:
        sys.setprofile(None)
    shown = [(name, str((ROOT / file).resolve())) for name, file in steps()]
    assert len(shown) > 15
    assert [step for step in shown if step not in passed and step[0] not in LATER] == []


def test_files_and_rooms_of_the_map_exist() -> None:
    named = re.findall(r"`((?:instances|certificates|models|heuristics|harness|tests)/[\w/.]*)`", PAGE)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
    rooms = {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")}
    assert rooms == set(re.findall(r"^\| `harness/(\w+)/` \|", PAGE, re.M))
