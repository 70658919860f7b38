"""The tables in ``docs/results.md`` are those of the run that is kept with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import schedgap as sg
from schedgap.harness.show.page.columns import COMPARE

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "results.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
TABLES = [block for block in BLOCKS if re.search("^ method", block, re.MULTILINE)]
METHOD = re.compile(r"^ (\w+\.[\w.]+\S*)  +(.*)$")

TOLERANCE = 0.01
"""Relative difference within which numbers agree: searches that a time limit ends differ each time."""


def number(cell: str) -> float | None:
    """Return the number in a table cell; ``None`` if there is none."""
    text = re.sub(r"[<≤%,s× ]", "", cell)
    try:
        return float(text)
    except ValueError:
        return None


def printed(block: str) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a printed table: the method, and its cells by column."""
    lines = block.splitlines()
    head = next(line.split()[1:] for line in lines if line.startswith(" method"))
    rows = [match.groups() for line in lines if (match := METHOD.match(line))]
    return [(method, dict(zip(head, re.split(r"  +", cells.strip()), strict=True))) for method, cells in rows]


ROWS = [row for block in TABLES for row in printed(block)]


def test_there_are_rows() -> None:
    assert len(ROWS) > 20


@pytest.fixture(scope="module")
def kept() -> Any:
    return sg.read_run(ROOT / "results" / "reference")


@pytest.mark.parametrize(("method", "cells"), ROWS, ids=[method for method, _ in ROWS])
def test_a_row_of_the_page_is_that_of_the_run(method: str, cells: dict[str, str], kept: Any) -> None:
    (row,) = (row for row in kept.rows if row.method == method and row.instance == "gen/200jobs")
    columns = {column.header: column for column in COMPARE}
    for header, cell in cells.items():
        shown = columns[header].text(row)
        if (value := number(cell)) is None:
            assert cell == shown
        else:
            assert value == pytest.approx(number(shown), rel=TOLERANCE, abs=1.0 if "%" in cell else 1e-9), header
