"""One table of measures: every column of a row is described once, is used, and is shown as its description says."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from typing import Any

import pytest
from conftest import ROOT
from report_runs import row

import schedgap.instances.views
from schedgap.harness.check import VERIFIERS
from schedgap.harness.show.measures import (
    CLOCKED,
    COMPARE,
    LADDER,
    LOG,
    METHODS,
    QUANTITIES,
    REPRODUCE,
    SIMULATE,
    SOLVERS,
    TABLES,
    WAITING,
    MeasureTable,
    smaller_is_better,
)
from schedgap.harness.show.page import columns, rigid
from schedgap.harness.studies.adversary.row import Adversary, Worst
from schedgap.harness.studies.audit import claims
from schedgap.harness.studies.audit.row import Audit, Finding
from schedgap.harness.studies.compare.row import MEASURED, STORED, TOGETHER, Comparison, Row
from schedgap.harness.studies.compare.summary import MethodSummary, SolverSummary
from schedgap.harness.studies.reproduce.row import ReproducedRow, Reproduction
from schedgap.harness.studies.reproduce.run import OF_HISTORY
from schedgap.harness.studies.simulate import row as simulated
from schedgap.harness.studies.simulate.row import ALIASES, BOUNDED, SENSITIVE, Simulation, SimulationRow
from schedgap.heuristics.simulator.metrics import Metrics
from schedgap.instances.registry import PAPERS

assert schedgap.instances.views
assert claims  # registered, like the papers, whichever files ran before

ONE: dict[str, Any] = {
    "compare": row("hadar.online", "f" * 64, 4.0),
    "simulate": SimulationRow("i", "f" * 64, "hadar.fifo"),
    "audit": Finding("oef.slip.coefficient", reason="it was killed"),
    "adversary": Worst("oef.rounding", "oef.allocation", None, None, 1, 1),
    "reproduce": ReproducedRow("hadar/fig4", "Fig. 4", "ttd_h"),
}
"""A row of each kind."""

FOUND = {one.kind: one for one in (Comparison, Simulation, Audit, Adversary, Reproduction)}


@pytest.mark.parametrize("kind", ONE)
def test_columns_of_files_are_those_that_the_table_describes(kind: str) -> None:
    names = list(TABLES[kind])
    assert list(FOUND[kind].fields) == names == list(ONE[kind].as_dict())
    assert type(ONE[kind]).measures is TABLES[kind]


@pytest.mark.parametrize(
    ("row", "table"),
    [(Row, COMPARE), (ReproducedRow, REPRODUCE), (MethodSummary, METHODS), (SolverSummary, SOLVERS)],
)
def test_types_of_fields_are_those_of_the_table(row: type[Any], table: MeasureTable) -> None:
    for field in fields(row):
        kind = str(field.type).removesuffix(" | None")
        kind = kind if kind in ("str", "int", "float", "bool") else "str" if kind == "Status" else "json"
        assert table[field.name].format.kind == kind, field.name
    assert set(table) - {field.name for field in fields(row)} <= {"claim"}


def test_a_row_of_a_simulation_has_a_field_or_a_number_for_each_column() -> None:
    own = {field.name for field in fields(SimulationRow)} - {"numbers", "models"}
    numbers = {name for name, one in SIMULATE.items() if one.format.numeric}
    models = {f"{prefix}_bound_from" for prefix in BOUNDED.values()}
    assert set(SIMULATE) == own | numbers | models
    assert not models & (own | numbers)
    assert set(simulated.MEASURED) == {n for n in numbers - own if SIMULATE[n].origin != "run"}
    assert set(simulated.STORED) == {n for n in SIMULATE if SIMULATE[n].origin != "run"} - {"instance"}
    of_histories = {name: one.format.kind for name, one in SIMULATE.items() if one.origin == "history"}
    assert {field.name: field.type for field in fields(Metrics)}.items() <= of_histories.items()
    assert of_histories.keys() - {field.name for field in fields(Metrics)} == {
        *("arrivals_per_h", "cpu_needed", "lp1_share", "lp1_worst"),
        *(name for name in SIMULATE if name.startswith("served_")),
    }


def test_numbers_of_a_simulation_are_attributes() -> None:
    one = ONE["simulate"].knowing(ttd_s=90.0, jct_mean_s=None)
    assert (one.ttd_s, one.jct_mean_s, one.ttd_bound_from, dict(one.numbers)) == (90.0, None, None, {"ttd_s": 90.0})
    assert one.as_dict()["ttd_s"] == 90.0
    with pytest.raises(AttributeError, match="ttd_h"):
        _ = one.ttd_h


def test_measures_are_used() -> None:
    declared = {
        name
        for spec in VERIFIERS
        for problem in (PAPERS.get(spec.id).problems if spec.id in PAPERS else ())
        for name in spec.quantities(problem.id)
    }
    measured = {*QUANTITIES, *COMPARE, *SIMULATE}
    assert declared <= measured
    assert set(QUANTITIES) <= declared | {*ALIASES, *OF_HISTORY, "longest_wait_h", "start_delay_h"}
    assert not set(QUANTITIES) & {*COMPARE, *SIMULATE}
    shown = {
        "compare": columns.COMPARE,
        "simulate": columns.SIMULATE,
        "methods": columns.SUMMARY,
        "solvers": columns.SOLVERS,
        "audit": columns.AUDIT,
        "adversary": columns.ADVERSARY,
        "reproduce": columns.REPRODUCE,
    }
    for name, table in shown.items():
        assert {column.key for column in table} <= set(TABLES[name])
    assert {*MEASURED, *STORED, *TOGETHER} <= set(COMPARE)
    assert set(simulated.MEASURED) >= SENSITIVE


def test_measures_say_what_they_are_in_a_sentence() -> None:
    for table in TABLES.values():
        for name, one in table.items():
            assert one.name == name
            assert one.header
            assert one.meaning.endswith("."), (name, one.meaning)
            assert one.meaning[0].isupper() or not one.meaning[0].isalpha() or name in ("kind", "p99_bound_ratio"), name
            assert not (one.unit and one.format.kind in ("str", "bool")), name
            assert not (one.upper and one.upper not in table), name
    macros = [one.macro for table in (COMPARE, SIMULATE) for one in table.values() if one.macro]
    assert len(set(macros)) == len(macros) == 11


def test_the_same_unit_is_named_in_headings_legends_axes_and_differences() -> None:
    ttd, median, gap = SIMULATE["ttd_s"], SIMULATE["jct_median_s"], COMPARE["gap"]
    assert (ttd.header, ttd.label, ttd.axis, ttd.data_axis) == (
        *("TTD (h)", "TTD (s)", "total time [h]", "total time [s]"),
    )
    assert ttd.explanation == ttd.meaning
    assert median.explanation == "Median completion time in hours."
    assert (gap.axis, gap.label) == ("gap to the best certified bound [%]", "gap")
    assert COMPARE["solve_s"].axis == "solve time [s]"
    assert SIMULATE["ttd_bound_s"].label == "bound on TTD (s)"


def test_estimates_are_rounded_to_their_side() -> None:
    gap, bound = COMPARE["gap"], LOG["bound"]
    for is_upper, text in ((False, "4.3 %"), (True, "4.4 %"), (None, "4.4 %")):
        side = gap.side({"ratio_is_upper": is_upper}.get)
        assert gap.text(0.043064, side) == gap.format.bare(0.043064, side) == text
    assert bound.text(1.23456, bound.side({}.get)) == "1.234"
    assert COMPARE["verified"].text(None) == "–"


@pytest.mark.parametrize(
    ("name", "less"),
    [
        *(("ttd_s", True), ("jct_long_p99_s", True), ("completion_slots", True), ("ttd_rounds", True)),
        *(("stragglers", True), ("flow_h", True), ("gru", False), ("efficiency", False), ("of_a_plugin", False)),
    ],
)
def test_smaller_times_are_better(name: str, less: bool) -> None:
    assert smaller_is_better(name, {"sense": "max"}) == less


def test_objectives_are_better_as_the_problem_says() -> None:
    assert smaller_is_better("objective", {"sense": "min"})
    assert not smaller_is_better("objective", {"sense": "max"})
    assert COMPARE["own_bound"].goal({"sense": "max"}) == "min", "a tighter bound is better"
    assert {"solve_s", "decision_mean_s"} <= CLOCKED
    assert "ttd_s" not in CLOCKED


SHOWING = (
    *("page/columns.py", "page/compare.py", "page/simulate.py", "page/rigid.py", "page/adversary.py", "page/audit.py"),
    *("page/reproduce.py", "artefact.py", "diff.py", "tidy.py", "plot.py", "plots/common.py", "plots/simulation.py"),
)
"""What shows columns of rows."""

UNIT = re.compile(r"[\[(](s|h|ms|MB|%|hours|seconds)[\])]|\bin (hours|seconds|milliseconds)\b")


@pytest.mark.parametrize("file", SHOWING)
def test_units_are_stated_in_the_table_only(file: str) -> None:
    tree = ast.parse((ROOT / "harness" / "show" / file).read_text())
    homes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docs = {id(home.body[0].value) for home in homes if isinstance(home.body[0], ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [one.value for one in constants if id(one) not in docs and UNIT.search(one.value)] == []


FORMATS = {"number", "percent", "ratio", "seconds", "limit", "rounded"}
"""Functions that write numbers."""


def test_columns_are_made_of_measures() -> None:
    """A heading, an explanation or a format of its own would be a second description."""
    for file in SHOWING:
        tree = ast.parse((ROOT / "harness" / "show" / file).read_text())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        assert sum(node.func.id == "Column" for node in calls) == (file == "page/columns.py"), file
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        taken = {alias.name for node in imports if str(node.module).endswith("show.text") for alias in node.names}
        assert file not in ("page/columns.py", "artefact.py", "tidy.py") or not taken & FORMATS
    tables = [(LADDER, rigid.LADDER_COLUMNS), (LOG, rigid.SIDE_BY_SIDE), (WAITING, rigid.GROUPS)]
    assert all([column.key for column in shown] == list(table) for table, shown in tables)


def test_the_page_on_numbers_shows_the_table() -> None:
    assert "```{include} generated/measures.md" in (ROOT / "docs" / "numbers.md").read_text()
