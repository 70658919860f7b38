"""What pages print of comparisons is what the runs that are kept with them say.

Numbers of ``docs/results.md``, and of the pages that repeat some of them, are those of ``results/reference``. Gaps
after a minute are those of ``results/reference/minute.csv``.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

import schedgap as sg
from schedgap.harness.show.page.columns import COMPARE
from schedgap.harness.show.page.compare import blocks
from schedgap.harness.show.table import Line
from schedgap.harness.studies.reproduce.row import read_rows

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("results", "numbers", "trust", "figures")}
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGES["results"], re.MULTILINE | re.DOTALL)
TABLES = [block for block in BLOCKS if re.search("^ method", block, re.MULTILINE)]
METHOD = re.compile(r"^ (\w+\.[\w.]+\S*)  +(.*)$")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

TOLERANCE = 0.01
"""Relative difference within which numbers agree: searches that a time limit ends differ each time."""

FACTOR = 1.5
"""Factor within which a gap after a minute is in its printed range: that of the page's text."""

SEARCHES = (
    *("admission.columns", "admission.columns.from_arrival"),
    *("hadar.p2.columns", "hadar.p2.columns.complete", "hadar.forked.columns"),
    *("zhou.ps.columns", "zhou.ra.columns", "zhou.ps.columns.maxweight", "zhou.ra.columns.maxweight"),
    "synergy.columns",
)
"""The searches in the table of gaps after a minute, in its order."""


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


def cells(title: str) -> list[list[str]]:
    """Return the cells of the Markdown table of the page whose head begins with `title`."""
    (body,) = re.findall(rf"^\| {title} .*\n\|[-:|]+\n((?:\|.*\n)+)", PAGES["results"], re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]


ROWS = [row for block in TABLES for row in printed(block)]
MINUTE = [
    (method, after, kept)
    for method, after, kept in zip(
        SEARCHES, *("; ".join(row[i] for row in cells("problem")).split("; ") for i in (1, 2)), strict=True
    )
]


def test_there_are_rows() -> None:
    assert len(ROWS) > 20


@pytest.fixture(scope="module")
def kept() -> Any:
    return sg.read_run(ROOT / "results" / "reference")


def row_of(kept: Any, method: str, instance: str = "gen/200jobs") -> Any:
    (row,) = (row for row in kept.rows if row.method == method and row.instance == instance)
    return row


@pytest.mark.parametrize(("method", "cells"), ROWS, ids=[method for method, _ in ROWS])
def test_a_row_of_the_page_is_that_of_the_run(method: str, cells: dict[str, str], kept: Any) -> None:
    row = row_of(kept, method)
    columns = {column.header: column for column in COMPARE}
    for header, cell in cells.items():
        shown = columns[header].text(row)
        if (value := number(cell)) is None:
            assert cell == shown
        else:
            assert value == pytest.approx(number(shown), rel=TOLERANCE, abs=1.0 if "%" in cell else 1e-9), header


@pytest.mark.parametrize(("method", "after", "searched"), MINUTE, ids=[method for method, *_ in MINUTE])
def test_gaps_after_a_minute_are_those_of_the_runs(method: str, after: str, searched: str, kept: Any) -> None:
    assert searched == sg.at_most(row_of(kept, method).gap).removeprefix("at most ")
    with open(ROOT / "results" / "reference" / "minute.csv", newline="") as file:
        (gap,) = (float(row["gap"]) for row in csv.DictReader(file) if row["method"] == method)
    least, most = (float(text) / 100 for text in NUMBER.findall(after))
    assert least / FACTOR <= gap <= most * FACTOR
    assert f"a factor of {FACTOR:g}" in " ".join(PAGES["results"].split())


def test_the_worked_example_is_that_of_the_run(kept: Any) -> None:
    rows = dict(cells("schedule"))
    for schedule, method in (("the algorithm as stated", "admission.online"), ("the optimum", "admission.offline")):
        assert rows[schedule] == f"{row_of(kept, method, 'paper/walkthrough').objective:.2f}"


@pytest.fixture(scope="module")
def sentences(kept: Any) -> list[str]:
    """Return what commands say in words about ``gen/200jobs``: OEF's today, others about the kept run."""
    rows = {
        paper: [r for r in kept.rows if (r.paper, r.instance) == (paper, "gen/200jobs")] for paper in ("hadar", "zhou")
    }
    runs = [sg.Comparison(kept.meta, of_paper, kept.instances) for of_paper in rows.values()]
    lines = [block.text for run in (sg.compare("gen/200jobs", papers="oef"), *runs) for block in blocks(run)
             if isinstance(block, Line)]  # fmt: skip
    return [line.removeprefix("On gen/200jobs, ").removeprefix("prices: ").rstrip(".") for line in lines]


def without_numbers(text: str) -> str:
    return NUMBER.sub("#", " ".join(text.split()))


@pytest.mark.parametrize(
    ("page", "beginnings"),
    [
        ("results", ("of the optimum of forked", "oef.rounding is", "of the optimum of allocation", "zhou.ps.online")),
        ("numbers", ("oef.rounding is",)),
    ],
)
def test_sentences_of_the_pages_are_those_of_the_command(
    page: str, beginnings: tuple[str, ...], sentences: list[str]
) -> None:
    said = " ".join(PAGES[page].split())
    for beginning in beginnings:
        (sentence,) = [line for line in sentences if line.startswith(beginning)]
        pattern = re.escape(without_numbers(sentence)).replace(r"\#", NUMBER.pattern)
        (place,) = re.findall(f"{pattern}", said)
        shown, told = ([float(value.replace(",", "")) for value in NUMBER.findall(text)] for text in (place, sentence))
        assert shown == pytest.approx(told, rel=TOLERANCE, abs=0.05), place


def test_numbers_in_the_text_on_hadar_are_those_of_the_run(kept: Any) -> None:
    said = " ".join(PAGES["results"].split())
    copies, hadare, fluid = (row_of(kept, f"hadar.{name}") for name in ("forked.columns", "hadare", "fluid"))
    apart = sg.at_most(copies.gap).removeprefix("at most ")
    assert f"worth {copies.objective:,.0f} to {copies.best_bound:,.0f}, {apart} apart" in said
    assert f"HadarE reaches {hadare.objective:.0f}." in said
    assert f"where it matters: {fluid.own_bound:.0f} here" in said


def test_the_page_on_trust_shows_lines_of_the_run(kept: Any) -> None:
    (line,) = re.findall(r"hadar\.p2\.columns: .*objective ([\d.]+) recomputed; bound ([\d.]+) holds", PAGES["trust"])
    row = row_of(kept, "hadar.p2.columns")
    assert [float(value) for value in line] == pytest.approx([row.objective, row.own_bound], rel=TOLERANCE)
    ((bound, claim),) = re.findall(r"ilp1: .*bound ([\d.]+) holds; claimed bound ([\d.]+) has", PAGES["trust"])
    row = row_of(kept, "synergy.hetero.ilp1")
    assert (float(bound), float(claim)) == pytest.approx((row.own_bound, row.claimed_bound), rel=TOLERANCE)


def test_the_example_of_a_verdict_is_that_of_the_kept_reproduction() -> None:
    rows = {row.method: row for row in read_rows(ROOT / "results" / "reproductions-whole.json").of("synergy/fig9")}
    shown = re.findall(r"^ (synergy\.\S+) +jct_mean_h +(\d+) h +([\d.]+) +(\d+)  (\w+)", PAGES["figures"], re.MULTILINE)
    assert len(shown) == 2
    for method, published, measured, count, verdict in shown:
        row = rows[method]
        assert (row.published, row.cases) == (float(published), int(count))
        assert f"{row.measured:.5g}" == measured
        assert row.verdict.startswith(verdict)
