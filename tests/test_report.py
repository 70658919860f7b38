"""How a run is printed: numbers, headline, table formats, and the page, also with hostile text."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_output
from report_runs import HOSTILE, hostile_run, instance, large_run, oef_run, row, sweep_run, troubled_run
from rich.console import Console

from schedgap.harness.show import text as t
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.figure import Drawing, inline_svg
from schedgap.harness.show.page import compare, save, to_fragment, to_html
from schedgap.harness.show.page.columns import COMPARE as COLUMNS
from schedgap.harness.show.page.compare import blocks, headline
from schedgap.harness.show.page.frame import render
from schedgap.harness.show.page.instance import words
from schedgap.harness.show.table import (
    csv_cell,
    latex_text,
    markdown_text,
    to_csv,
    to_json,
    to_latex,
    to_markdown,
    visible,
)
from schedgap.harness.show.terminal import show
from schedgap.harness.studies.audit.run import audit as run_audit
from schedgap.harness.studies.compare.row import FIELDS, Comparison
from schedgap.harness.studies.folders import reopen

MARK = instance().fingerprint


def records(run: Comparison) -> list[dict[str, Any]]:
    return [row.as_dict() for row in run.rows]


def run_of(*rows: Any, **meta: Any) -> Comparison:
    return Comparison(meta=meta, rows=list(rows), instances={})


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (t.number, (None,), "–"),
        (t.number, (math.nan,), "–"),
        (t.number, (math.inf,), "∞"),
        (t.number, (-math.inf,), "−∞"),
        (t.number, (5.0,), "5"),
        (t.number, (-0.0,), "0"),
        (t.number, (54 / 13,), "4.154"),
        (t.number, (9999.6,), "10,000"),
        (t.number, (123456.7,), "123,457"),
        (t.number, (1e15,), "1e+15"),
        (t.number, (0.0001234,), "0.0001234"),
        (t.number, (1.2e-7,), "1.2e-07"),
        (t.percent, (None,), "–"),
        (t.percent, (0.0,), "0 %"),
        (t.percent, (1e-13, "at most"), "0 %"),
        (t.percent, (1e-6,), "< 0.01 %"),
        (t.percent, (0.0005,), "0.05 %"),
        (t.percent, (0.1287,), "12.9 %"),
        (t.percent, (0.12801, "at most"), "12.9 %"),
        (t.percent, (0.128, "at most"), "12.8 %"),
        (t.percent, (0.043064, "at most"), "4.4 %"),
        (t.percent, (0.043964, "at least"), "4.3 %"),
        (t.number, (335.66, 4, "at least"), "335.6"),
        (t.number, (335.64, 4, "at most"), "335.7"),
        (t.number, (12345.6, 4, "at least"), "12,345"),
        (t.number, (0.00012341, 4, "at most"), "0.0001235"),
        (t.limit, (335.66, "at least"), "≥ 335.6"),
        (t.limit, (12.84, "at most", 3), "≤ 12.9"),
        (t.at_most, (0.043064,), "at most 4.4 %"),
        (t.at_most, (1e-5,), "less than 0.01 %"),
        (t.at_least, (0.043964,), "at least 4.3 %"),
        (t.at_least, (1e-5,), "more than 0 %"),
        (t.percent, (12.345,), "1,234 %"),
        (t.percent, (math.inf,), "∞"),
        (t.ratio, (1.07, True), "≤ 1.07"),
        (t.ratio, (1.05, False), "1.05"),
        (t.ratio, (1.0, False), "1.00"),
        (t.ratio, (1.07 + 1e-15, None), "≤ 1.07"),
        (t.ratio, (1.0741, True), "≤ 1.075"),
        (t.ratio, (1.0741, False), "1.074"),
        (t.ratio, (1.0000001, True), "≤ 1.001"),
        (t.ratio, (12.34, True), "≤ 12.4"),
        (t.ratio, (None, True), "–"),
        (t.ratio, (math.inf, True), "∞"),
        (t.seconds, (None,), "–"),
        (t.seconds, (0.0,), "< 0.001 s"),
        (t.seconds, (0.0007,), "< 0.001 s"),
        (t.seconds, (0.01,), "0.01 s"),
        (t.seconds, (0.01234,), "0.012 s"),
        (t.seconds, (45.25,), "45.2 s"),
        (t.seconds, (119.96,), "2 min 00 s"),
        (t.seconds, (312.0,), "5 min 12 s"),
        (t.seconds, (7199.7,), "2 h 00 min"),
        (t.seconds, (11100.0,), "3 h 05 min"),
        (t.numbers, ([1.0, 18 / 13],), "1, 1.3846"),
        (t.numbers, (np.array([[1, 0], [0, 0.5]]),), "1, 0; 0, 0.5"),
        (t.numbers, (np.bool_(True),), "✓"),
        (t.shorten, ("abcdefghij", 5), "ab…ij"),
    ],
)
def test_formats(function: Any, arguments: tuple[Any, ...], text: str) -> None:
    assert function(*arguments) == text


@pytest.mark.parametrize(("verified", "text"), [(True, "✓"), (False, "WRONG"), (None, "–")])
def test_the_sign_of_a_check(verified: bool | None, text: str) -> None:
    column = next(column for column in COLUMNS if column.key == "verified")
    assert column.cell(row("oef.gavel", "0123", 1.0, verified=verified)).text == text


@given(st.floats(1.0, 1e6))
def test_upper_estimates_are_rounded_up(value: float) -> None:
    shown = float(t.ratio(value, True).removeprefix("≤ ").replace(",", ""))
    assert shown >= value * (1 - 1e-8)
    assert shown - value <= 0.1001


@given(st.text())
def test_clean_leaves_one_harmless_line(text: str) -> None:
    cleaned = t.clean(text, 50)
    assert len(cleaned) <= 50
    assert cleaned.isprintable() or not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", cleaned)
    assert t.clean(cleaned) == cleaned


def test_published_numbers_stand_beside_ours() -> None:
    entry = {"quantity": "objective", "value": 4.36, "exact": 4.348485, "measured": 4.348485}
    assert t.published_cells(entry | {"agrees": False, "exact_agrees": True}) == ("4.36 ≠", "4.3485", "4.3485 ✓")
    assert t.published_cells(entry | {"agrees": True, "exact": None}) == ("4.36 ✓", "4.3485", "–")
    assert t.published_cells(entry | {"agrees": True, "exact_agrees": True}) == ("4.36 ✓", "4.3485", "✓")
    unprinted = entry | {"value": None, "agrees": None, "exact_agrees": True}
    assert t.published_cells(unprinted) == ("–", "4.3485", "✓")
    assert t.published_cells(entry | {"exact": 4.4, "exact_agrees": False}) == ("4.36", "4.3485", "4.4 ≠")


# ---------------------------------------------------------------- headline

ONLINE = {"kind": "online", "paper": "hadar", "problem": "hadar.utility"}
BASE = {"kind": "baseline"}
ESTIMATE = {"ratio_is_upper": True}
BOUND = row("oef.efficiency", MARK, 5.0)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "No method was run."),
        (
            [BOUND, row("oef.gandiva_fair", MARK, 4.358, **BASE, **ESTIMATE)],
            "On paper/oef-eq1, oef.gandiva_fair is at most 12.9 % from optimal.",
        ),
        (
            [BOUND, row("oef.gandiva_fair", MARK, 4.358, **BASE)],
            "On paper/oef-eq1, oef.gandiva_fair is 12.8 % from optimal.",
        ),
        (
            [BOUND, row("oef.gavel", MARK, 5.0, **BASE)],
            "On paper/oef-eq1, oef.gavel is optimal.",
        ),
        (
            [BOUND, *(row(f"oef.{m}", MARK, v, **BASE) for m, v in (("a", 5.0), ("b", 4.0), ("c", 4.5)))],
            "On paper/oef-eq1, the best of 3 baselines, oef.a, is optimal.",
        ),
        (
            [BOUND, *(row(f"oef.{m}", MARK, v, **BASE) for m, v in zip("abcd", (3, 2, 4, 5), strict=True))],
            "On paper/oef-eq1, the best of 4 baselines, oef.d, is optimal.",
        ),
        (
            [
                row(
                    "hadar.online",
                    MARK,
                    110.0,
                    100.0,
                    sense="min",
                    gap=0.1,
                    ratio=1.1,
                    ratio_is_upper=True,
                    **ONLINE,
                )
            ],
            "On paper/oef-eq1, hadar.online is at most 10.0 % from optimal.",
        ),
        (
            [
                BOUND,
                row("oef.on", MARK, 4.5, kind="online"),
                row("oef.b", MARK, 4.9, problem="oef.envy_free", **BASE),
            ],
            "On paper/oef-eq1, oef.on is 10.0 % from optimal; baseline b 2.0 %, with envy-freeness.",
        ),
        (
            [
                BOUND,
                row("oef.a", MARK, 4.0, **BASE),
                row("oef.b", MARK, 4.5, problem="oef.envy_free", **BASE),
            ],
            "On paper/oef-eq1, oef.a is 20.0 % from optimal.",
        ),
        (
            [
                BOUND,
                row("oef.b", MARK, 4.0, problem="oef.envy_free", **BASE),
                row("oef.on", MARK, 4.5, kind="online"),
                row("oef.a", MARK, 4.9, **BASE),
                *(row(f"oef.p{i}", MARK, 4.9 - i / 10, problem=f"oef.p{i}", **BASE, **ESTIMATE) for i in range(3)),
            ],
            "On paper/oef-eq1, oef.on is 10.0 % from optimal; best baseline a 2.0 %.",
        ),
        ([BOUND], "On paper/oef-eq1, oef.efficiency finds the optimum, 5, in 0.01 s."),
        (
            [BOUND, row("oef.b", MARK, 4.0, ratio_is_upper=True)],
            "On paper/oef-eq1, oef.efficiency finds the optimum, 5, in 0.01 s.",
        ),
        (
            [row("oef.b", MARK, None, status="skipped", verified=None, reason="too large")],
            "On paper/oef-eq1, no method has a certified gap. 1 result was skipped, for reasons given below.",
        ),
    ],
)
def test_headline(rows: list[Any], text: str) -> None:
    assert headline(run_of(*rows)) == text


def test_headline_tells_trouble_first() -> None:
    text = headline(troubled_run())
    assert text.startswith(
        "1 of 8 results is WRONG: oef.rounding (capacity of GPU2: 1.2 > 1, and 1 more). "
        "1 of 8 results failed: oef.maxmin (out of memory: more than 2000 MB). On paper/oef-eq1, "
    )
    assert text.endswith("1 result was skipped, for reasons given below.")
    assert headline(run_of(BOUND, interrupted=True)).startswith("The run was stopped early, after 1 results.")


def test_headline_never_uses_what_is_not_verified() -> None:
    wrong = row("oef.a", MARK, 5.0, verified=False, kind="online", gap=0.0)
    unchecked = row("oef.b", MARK, 5.0, verified=None, kind="online", gap=0.0)
    assert "no method has a certified gap" in headline(run_of(wrong, unchecked))


def test_headline_over_several_instances_and_papers() -> None:
    run = sweep_run()
    assert re.fullmatch(
        r"Over 12 instances, hadar.online is at most [\d.]+ % \(median at most [\d.]+ % \[[\d.]+ %, [\d.]+ %\]\) "
        r"from optimal; best baseline gavel at most [\d.]+ % \(median at most [\d.]+ % \[[\d.]+ %, [\d.]+ %\]\)\.",
        headline(run),
    )
    both = run_of(BOUND, row("hadar.online", MARK, 4.0, **ONLINE))
    assert headline(both) == (
        "On paper/oef-eq1, oef.efficiency finds the optimum, 5, in 0.01 s; hadar.online is 20.0 % from optimal."
    )


# ---------------------------------------------------------------- tables


def test_why_a_published_number_differs_stands_below_the_table() -> None:
    note = "the text adds up rounded numbers"
    out = io.StringIO()
    show(Console(width=200, file=out), blocks(oef_run()))
    assert out.getvalue().endswith(f"≠ oef.gandiva_fair, objective: {note}\n")
    assert "4.3485 ✓" in out.getvalue()
    assert to_markdown(blocks(oef_run())).endswith(f"\n\n- ≠ oef.gandiva_fair, objective: {note}\n")
    run = oef_run()
    agreeing = tuple(entry | {"agrees": True} for entry in run.rows[-1].published)
    run.rows[-1] = run.rows[-1].replace(published=agreeing)
    assert note not in to_markdown(blocks(run))
    assert note in Page(to_html(run, [])).text
    run.rows.append(oef_run().rows[-1].replace(fingerprint="f", instance="paper/other"))
    assert f"≠ oef.gandiva_fair, objective on paper/other: {note}" in to_markdown(blocks(run))


def test_columns_show_fields_of_a_row_with_an_explanation() -> None:
    assert {column.key for column in COLUMNS} <= set(FIELDS)
    assert all(column.explanation.endswith(".") for column in COLUMNS)


def test_columns_without_news_are_left_out() -> None:
    keys = [column.key for column in visible(COLUMNS, oef_run().rows)]
    assert {"method", "objective", "gap", "ratio", "status", "verified"} <= set(keys)
    assert not {"instance", "paper", "problem", "sense", "seed", "guarantee", "bound_from"} & set(keys)
    assert {"instance", "guarantee"} <= {column.key for column in visible(COLUMNS, sweep_run().rows)}


def test_json_has_the_field_names_and_no_nan() -> None:
    run = oef_run()
    run.rows[0] = run.rows[0].replace(gap=math.nan, ratio=math.inf, metrics={"n": np.int64(3), "ok": np.bool_(True)})
    rows = json.loads(to_json(records(run)), parse_constant=pytest.fail)
    assert [list(entry) for entry in rows] == [[*FIELDS, "claim"]] * len(run.rows)
    assert (rows[0]["gap"], rows[0]["ratio"], rows[0]["metrics"]) == (None, None, {"n": 3, "ok": True})
    assert rows[1]["objective"] == run.rows[1].objective


def test_csv_keeps_numbers_exactly() -> None:
    run = oef_run()
    rows = list(csv.DictReader(io.StringIO(to_csv(FIELDS, records(run)))))
    assert [float(entry["objective"]) for entry in rows] == [r.objective for r in run.rows]
    assert json.loads(rows[-1]["published"])[1]["value"] == 4.36
    assert csv_cell(-1.5) == -1.5


@pytest.mark.parametrize("width", [60, 80, 140, 200])
def test_terminal_table_keeps_what_matters_at_every_width(width: int) -> None:
    console = Console(width=width, file=io.StringIO(), record=True)
    show(console, blocks(troubled_run()))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= width
    for wanted in ("gap", "objective", "verified", "WRONG") if width >= 80 else ("gap",):
        assert wanted in shown
    if width >= 80:
        assert "oef.noncooperative " in shown
    assert ("left out for lack of width" in shown) == (width < 80)


# ---------------------------------------------------------------- hostile text


def test_markdown_escapes_what_would_be_markup() -> None:
    assert markdown_text("a|b`c`*d*<i>[x](y)\\") == r"a\|b\`c\`\*d\*&lt;i&gt;\[x\](y)" + "\\\\"
    text = to_markdown(blocks(hostile_run()))
    assert "<script" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert len(set(bars)) == sum("---" in line for line in tables), "as many in every line of a table"


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1+1", "@x", "\t=x", "\x00=1", "\r=1"])
def test_csv_cells_start_no_formula(text: str) -> None:
    assert str(csv_cell(text)).startswith("'")


def test_csv_of_a_hostile_run_has_no_formula_and_no_control_characters() -> None:
    text = to_csv(FIELDS, records(hostile_run()))
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not _is_number(cell)]
    assert "\x1b" not in text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_terminal_shows_hostile_text_as_it_is() -> None:
    out = io.StringIO()
    show(Console(width=200, file=out, force_terminal=True, color_system=None), blocks(hostile_run()))
    assert "[red]x[/red]" in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


def test_json_escapes_control_and_direction_characters() -> None:
    text = to_json(records(run_of(row("oef.a", MARK, 5.0, reason="\x9b31m\u202etxt\x1b[2J"))))
    assert not re.search("[\x1b\x9b\u202e]", text)
    assert json.loads(text)[0]["reason"] == "\x9b31m\u202etxt\x1b[2J"


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """Collects the elements, ids, references and text of an HTML page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return pages by name: two with all figures, one with heat maps, two without figures (drawing is slow)."""
    maps = figures(large_run(20), "envy", "devices")
    return {
        "oef": to_html(oef_run()),
        "hostile": to_html(hostile_run()),
        "large": to_html(large_run(20), maps),
        "troubled": to_html(troubled_run(), []),
        "sweep": to_html(sweep_run(3), []),
    }


@pytest.mark.parametrize("name", ["oef", "hostile", "large", "troubled", "sweep"])
def test_page_is_self_contained(pages: dict[str, str], name: str) -> None:
    page = Page(pages[name])
    assert {"link", "iframe", "object", "embed", "form", "img", "base"}.isdisjoint(tag for tag, _ in page.tags)
    for _, attributes in page.tags:
        assert not [key for key in attributes if key.startswith("on") or key == "src"]
        assert str(attributes.get("href", "#")).startswith(("#", "data:image/png;base64,"))
    # The scripts of the charts' library may name addresses, but the page's policy forbids to load them.
    shown = re.sub("<script.*?</script>", "", pages[name], flags=re.DOTALL)
    assert not re.search(r"https?://|@import", shown)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', shown))
    assert {a or b for a, b in used} <= set(ids)


def test_page_allows_its_own_script_and_nothing_else(pages: dict[str, str]) -> None:
    for html in pages.values():
        page = Page(html)
        policies = [m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        (policy,) = policies
        assert len(scripts) == sum("type" not in attributes for attributes in page.all("script")) <= 2
        digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
        assert f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data:" in policy


def test_the_library_of_the_charts_comes_with_its_licence(pages: dict[str, str]) -> None:
    assert "Interactive Data Lab" in pages["oef"]
    assert "vegaEmbed" not in pages["troubled"].replace("vegaEmbed(live", "").replace("window.vegaEmbed)", "")


def test_charts_in_the_page_are_those_of_the_files(pages: dict[str, str]) -> None:
    (text,) = re.findall('<script type="application/json" id="charts">(.*?)</script>', pages["oef"], re.DOTALL)
    data = json.loads(text)
    found = figures(oef_run())
    assert set(data["specs"]) == {item.name for item in found}
    gap = next(item for item in found if item.name == "oef-gap")
    assert data["specs"]["oef-gap"]["datasets"] == gap.spec["datasets"]
    assert data["config"]["axis"]["labelColor"] == "var(--ink)"
    assert 'fill="var(--ink)"' in pages["oef"]
    assert "#1b1f24" not in pages["oef"].replace("--ink: #1b1f24", "")


def test_page_answers_first_and_says_how_to_reproduce(pages: dict[str, str]) -> None:
    text = Page(pages["troubled"]).text
    assert text.index("1 of 8 results is WRONG") < text.index("How to read the columns")
    for wanted in (
        "harness compare --instance paper/oef-eq1 --paper oef",
        "git checkout 0123456789abcdef",
        "pyomo",
        "time_limit_s",
        "capacity of GPU2: 1.2 > 1",
        "skipped: no tenant has several job types",
        "4.36 ≠",
        "the text adds up rounded numbers",
        "largest total efficiency within capacity (max, in slowest-GPU equivalents)",
        "≤ marks an upper estimate",
    ):
        assert wanted in text


def test_remarks_on_printed_numbers_stand_beside_them_and_under_no_failures(pages: dict[str, str]) -> None:
    sections = dict(re.findall(r'<section id="(notes|published)">(.*?)</section>', pages["troubled"], re.DOTALL))
    assert "the text adds up rounded numbers" in sections["published"]
    assert "rounded numbers" not in sections["notes"]
    assert "oef.multijob" in sections["notes"]


def test_skipped_rows_are_folded_below_the_table_of_results(pages: dict[str, str]) -> None:
    folded = re.search(r"<summary>1 skipped</summary>(.*?)</details>", pages["troubled"], re.DOTALL)
    assert folded
    assert "oef.multijob" in folded[1]
    assert "no tenant has several job types" in folded[1]
    assert "oef.multijob" not in pages["troubled"][: folded.start()].split("</header>")[1]


def test_a_paper_answers_with_one_chart_before_its_table(pages: dict[str, str]) -> None:
    page = pages["oef"]
    places = [page.index(f'id="figure-oef-{name}"') for name in ("gap", "efficiency", "time")]
    table, folded = page.index("<table", page.index("<main>")), page.index("Solve times and other figures")
    assert places[0] < table < places[1] < folded < places[2]


def test_page_shows_figures_with_caption_and_alternative_text(pages: dict[str, str]) -> None:
    page = Page(pages["oef"])
    labels = [svg["aria-label"] or "" for svg in page.all("svg")]
    assert len(labels) == len(page.all("figcaption")) == 5
    assert all(re.search(r"on paper/oef-eq1\. .*n = ", text) for text in labels)
    assert "Envy at the reported speedups" in page.text


def test_page_of_many_instances_warns_about_the_largest_ratio(pages: dict[str, str]) -> None:
    assert "only a lower bound on the competitive ratio" in Page(pages["sweep"]).text
    assert "only a lower bound" not in Page(pages["oef"]).text


def test_summary_by_method_counts_failures_and_names_estimates() -> None:
    run = sweep_run(3)
    run.rows[1] = run.rows[1].replace(status="error", verified=None, gap=None, ratio=None, objective=None)
    page = Page(to_html(run, []))
    assert re.search(r"hadar\.online utility online 2 of 3 1 failed ≤ ", re.sub(r"\s+", " ", page.text))
    assert "the mean gap is arithmetic; shifted geometric means of times count failures" in page.text


def test_limits_of_several_kinds_are_told_one_by_one() -> None:
    run = oef_run(meta=oef_run().meta | {"limits": {"quick": {"time_limit_s": 2}, "long": {"time_limit_s": 90}}})
    page = Page(to_html(run, []))
    assert "Limits: quick" in page.text
    assert "Limits: long" in page.text


PICTURE = {"data": {"values": [{}]}, "mark": "point"}


def test_papers_have_sections_of_their_own_and_links_lead_there() -> None:
    run = oef_run()
    run.rows += [row("hadar.online", MARK, 4.0, **ONLINE), row("hadar.p2.columns", MARK, 5.0, problem="hadar.utility")]
    pictures = [
        Drawing(f"{paper}-{i}", "t", f"caption {i}", PICTURE, paper, f"topic {i}")
        for i in range(5)
        for paper in ("oef", "hadar")
    ]
    page = Page(to_html(run, pictures))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert [one for one in ids if one and one.startswith("figures-")] == ["figures-oef", "figures-hadar"]
    assert [one for one in ids if one and one.startswith("results-")] == ["results-oef", "results-hadar"]
    links = {str(a["href"])[1:] for a in page.all("a")}
    assert {"results-hadar", "results-oef", "figure-hadar-4", "reproduce"} <= links
    assert links <= set(ids)
    told = re.sub(r"\s+", " ", page.text)
    assert told.index("4. topic 3") < told.index("Figure 4. caption 3") < told.index("Figure 6. caption 0")
    assert "Paper by paper" in told


def test_the_first_sentence_over_several_papers_names_an_algorithm_of_each() -> None:
    rows = [BOUND, row("oef.rounding", MARK, 4.5, kind="online"), row("hadar.online", MARK, 4.0, **(ONLINE | ESTIMATE))]
    assert compare.page(run_of(*rows)).headline == (
        "On paper/oef-eq1, oef.rounding is 10.0 % from optimal; hadar.online is at most 20.0 % from optimal."
    )
    assert compare.page(run_of(*rows[:2])).headline == headline(run_of(*rows[:2]))


def test_figures_that_could_not_be_drawn_are_named() -> None:
    run = oef_run()
    page = render(run, compare.page(run), [], ["a figure could not be drawn: <b>"])
    assert "a figure could not be drawn: &lt;b&gt;" in page


def test_page_sorts_numbers_by_value(pages: dict[str, str]) -> None:
    cells = [a for tag, a in Page(pages["oef"]).tags if tag == "td" and "gap" in (a.get("class") or "").split()]
    gaps = [float(cell["data-sort"] or "nan") for cell in cells]
    assert gaps == sorted(r.gap or 0.0 for r in oef_run().rows)


def test_hostile_text_is_only_text(pages: dict[str, str]) -> None:
    page = Page(pages["hostile"])
    assert HOSTILE[0] in page.text
    assert "\x1b" not in pages["hostile"]
    assert [script.get("type") for script in page.all("script")] == ["application/json", None, None]
    assert "alert(1)</script" not in pages["hostile"]
    assert "<script>alert" not in to_fragment(hostile_run())


def test_fragment_has_tables_and_no_script() -> None:
    page = Page(to_fragment(troubled_run()))
    assert page.all("table")
    assert not page.all("script")
    assert "1 of 8 results is WRONG" in page.text


def test_fragment_has_its_own_scroll_boxes_and_unbroken_cells() -> None:
    html = to_fragment(oef_run())
    assert html.count("<table") == html.count('<div class="scroll">') == len(Page(html).all("table"))
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    rules = [line for line in style.splitlines() if line]
    assert all(line.startswith(".schedgap ") for line in rules), "the rest of the page is not ours"
    assert any("td {" in line and "white-space: nowrap" in line for line in rules)


def test_a_fact_of_many_lines_is_shown_line_by_line() -> None:
    inst = instance().model_copy(update={"derived": tuple(f"line {i} <b>" for i in range(70))})
    run = oef_run(instances={inst.fingerprint: inst})
    html = to_html(run, [])
    assert "<dd>line 0 &lt;b&gt;<br>line 1 &lt;b&gt;<br>" in html
    assert "line 59 &lt;b&gt;<br>… and 10 more</dd>" in html
    folded = inst._repr_html_()
    assert "<details><summary>70 lines</summary>line 0 &lt;b&gt;<br>" in folded
    out = io.StringIO()
    Console(width=80, file=out).print(words(inst))
    assert re.search(r"^derived +line 0 <b> *\n +line 1 <b> *$", out.getvalue(), flags=re.M)


def test_plots_are_shown_in_a_notebook() -> None:
    comparison = oef_run()
    gaps = figures(comparison, "gap")
    bundle = gaps[0]._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["config"]["background"] == "#ffffff"
    sent = bundle | {"image/png": base64.b64encode(bundle["image/png"]).decode()}
    nbformat.validate(new_output("display_data", sent), "output", version=4)  # type: ignore[no-untyped-call]
    assert "<script" not in bundle["text/html"]
    assert bundle["image/png"].startswith(b"\x89PNG")
    page = Page(gaps._repr_html_())
    assert len(page.all("svg")) == 1
    assert "Gap to the best certified bound, in per cent of the bound" in page.text
    both = Page(gaps._repr_html_() + figures(comparison, "time")._repr_html_())
    ids = [attributes["id"] for _, attributes in both.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "Nothing to draw" in figures(comparison, "ratio")._repr_html_()


def test_results_are_shown_in_a_document_that_is_made_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison, shown = oef_run(), list[Any]()
    assert r"\toprule" in comparison._repr_latex_()
    assert "oef.cooperative" in comparison._repr_latex_()
    monkeypatch.setattr("IPython.display.display", shown.append)
    drawn = figures(comparison, "gap", "time")
    drawn._ipython_display_()
    assert shown == [*drawn]
    figures(comparison, "ratio")._ipython_display_()
    assert "Nothing to draw" in shown[-1].data


def test_latex_has_booktabs_and_sets_every_character() -> None:
    text = to_latex(blocks(oef_run()))
    assert text.count("\\begin{tabular}") == text.count("\\toprule") == text.count("\\bottomrule") > 0
    assert "oef.gandiva\\_fair" in text
    lines = to_latex(blocks(hostile_run())).splitlines()
    cells = "\n".join(line for line in lines if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[#$%_~^](?![^$]*\$)", re.sub(r"\$[^$]*\$", "", cells))
    assert not set("\u202e\x1b\x00<>") & set(re.sub(r"\$[<>]\$", "", cells))
    assert latex_text("2α ≤ ⟨λ⟩") == r"2$\alpha$ $\le$ $\langle$$\lambda$$\rangle$"
    assert latex_text("\\[1]*{50 %}~^&") == (r"\textbackslash{}{[}1]{*}\{50 \%\}\textasciitilde{}\textasciicircum{}\&")


def test_svg_loses_everything_but_the_picture() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'viewBox="0 0 1 1" onload="x()">'
        "<style>*{color:red}</style><script>x()</script><foreignObject/><!-- c -->"
        '<defs><path id="a" d="M0 0"/><clipPath id="c"/></defs>'
        '<g id="unused" onclick="x()" clip-path="url(#c)">'
        '<use xlink:href="#a"/><image xlink:href="http://e.example/x.png"/></g></svg>'
    )
    assert inline_svg(svg, "f1-", 'a "b" <c>') == (
        '<svg viewBox="0 0 1 1" role="img" aria-label="a &quot;b&quot; &lt;c&gt;">'
        '<defs><path id="f1-a" d="M0 0" /><clipPath id="f1-c" /></defs>'
        '<g clip-path="url(#f1-c)"><use href="#f1-a" /><image /></g></svg>'
    )


def test_save_writes_page_and_figures(tmp_path: Any) -> None:
    run = oef_run()
    run.decisions = {}
    save(run, tmp_path / "report.html", figures=tmp_path)
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert {p.suffix for p in (tmp_path / "figures").iterdir()} == {".svg", ".pdf"}


def test_plain_formats_and_page_import_neither_altair_nor_rich() -> None:
    code = (
        "import sys, schedgap.harness.show.table as t; from schedgap.harness.studies.compare.row import Comparison; "
        "from schedgap.harness.show.page import blocks; run = Comparison({}, [], {}); "
        "t.to_json([]), t.to_csv(run.fields, []), t.to_markdown(blocks(run));"
        "print([m for m in ('altair', 'vl_convert', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_audit_is_read_back(tmp_path: Path) -> None:
    audit = run_audit(claims=["oef.slip.coefficient"], jobs=1, results=tmp_path)
    assert audit.folder is not None
    again = reopen(audit.folder)
    assert [finding.as_dict() for finding in again.rows] == [finding.as_dict() for finding in audit.rows]
    assert to_html(again) == to_html(audit)
