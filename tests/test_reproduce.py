"""Reproductions: their files run, verdicts follow from numbers, and published numbers stand beside measured ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from charts import records as records_of
from conftest import ROOT, Command
from hypothesis import given
from hypothesis import strategies as st

from schedgap import models
from schedgap.harness.check import judge
from schedgap.harness.engine.result import typed
from schedgap.harness.show.diff import diff
from schedgap.harness.show.drawing import draw_all
from schedgap.harness.show.page import to_html
from schedgap.harness.show.page.frame import published_section
from schedgap.harness.show.plots.reproduce import is_numeric
from schedgap.harness.show.plots.reproduce import records_of as drawn_of
from schedgap.harness.studies.audit.claims import CLAIMS
from schedgap.harness.studies.compare.methods import select
from schedgap.harness.studies.compare.run import compare_here
from schedgap.harness.studies.published import COMPARE
from schedgap.harness.studies.reproduce.measure import TIED, Statistic, _instead, _is, evidence, rows, shared, statistic
from schedgap.harness.studies.reproduce.row import (
    DIRECTION,
    EXCLUDED,
    IMPOSSIBLE,
    MEASURED,
    NOT,
    NOT_TESTABLE,
    ONLY,
    REPRODUCED,
    UNCLEAR,
    UNJUDGED,
    VERDICTS,
    Case,
    Evidence,
    ReproducedRow,
    Reproduction,
    decide,
    kind,
    read_rows,
    worst,
)
from schedgap.harness.studies.reproduce.run import coordinates, reproduce
from schedgap.harness.studies.reproduce.setting import Number, Order, Setting, SettingRun, about, find, known, read
from schedgap.harness.studies.resampling import interval
from schedgap.harness.studies.simulate.run import resolve
from schedgap.instances.catalogue import load, references
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.schema import Published
from schedgap.instances.views import oef

MINE = """
title = "Two policies"
place = "Fig. 0"

[[runs]]
instances = ["gen/20jobs"]
grids = [{ base = "gen/20jobs", vary = { load = [0.5, 1.5], seed = [1, 2] } }]
policies = ["hadar.srtf", "hadar.fifo"]
options = { round_s = 900.0 }
quick = { grids = [{ base = "gen/20jobs", vary = { load = [0.5, 1.5] } }] }

[[numbers]]
method = "hadar.srtf"
quantity = "ttd_ratio:hadar.fifo"
value = 9.0
at = { load = [0.5, 1.5] }
tolerance = 0.1

[[numbers]]
method = "hadar.fifo"
quantity = "ttd_h"
value = 0.5
tolerance = 0.1
unit = "h"
at = { load = 0.5 }

[[orders]]
order = ["hadar.srtf", "hadar.fifo"]
quantity = "jct_mean_h"
along = "load"

[[trends]]
method = "hadar.fifo"
quantity = "jct_mean_s"
along = "load"
shape = "falls"
only_if = [{ setting = "upside down", instead = { "hadar.fifo" = "hadar.srtf" } }]

[[drawings]]
kind = "lines"
quantity = "ttd_h"
along = "load"

[[drawings]]
kind = "bars"
quantity = "jct_mean_h"
along = "load"
across = "seed"

[[drawings]]
kind = "map"
quantity = "ttd_ratio:hadar.fifo"
along = "load"
across = "method"

[[drawings]]
kind = "cdf"
at = { load = 1.5 }
"""


def written(folder: Path, text: str = MINE) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


# verdicts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "narrower", "verdict"),
    [
        (Evidence(True), {}, REPRODUCED),
        (Evidence(True, excluded=True), {}, REPRODUCED),
        (Evidence(False), {}, NOT),
        (Evidence(False, direction=True), {}, DIRECTION),
        (Evidence(False, direction=True, excluded=True), {}, EXCLUDED),
        (Evidence(None), {}, NOT_TESTABLE),
        (Evidence(False), {"x": Evidence(False), "y": Evidence(True)}, "only if y"),
        (Evidence(None), {"x": Evidence(True)}, "only if x"),
        (Evidence(False, excluded=True), {"x": Evidence(False)}, NOT),
        (Evidence(False, direction=True, excluded=True), {"x": Evidence(False)}, DIRECTION),
        (Evidence(False, excluded=True), {"x": Evidence(False, excluded=True), "y": Evidence(None)}, EXCLUDED),
        (Evidence(True, reduced=True), {}, DIRECTION),
        (Evidence(False, reduced=True), {"x": Evidence(True, reduced=True)}, DIRECTION),
        (Evidence(None, tied=True), {}, NOT_TESTABLE),
        (Evidence(False, direction=True, unclear=True), {}, UNCLEAR),
        (Evidence(False, unclear=True), {}, NOT),
        (Evidence(False, direction=True, unclear=True, reduced=True), {"x": Evidence(True, reduced=True)}, DIRECTION),
    ],
)
def test_verdicts(stated: Evidence, narrower: dict[str, Evidence], verdict: str) -> None:
    assert decide(stated, narrower) == verdict


@pytest.mark.parametrize(
    ("stated", "others", "complete", "verdict"),
    [
        (Evidence(False, excluded=True), {}, True, IMPOSSIBLE),
        (Evidence(False, excluded=True), {}, False, EXCLUDED),
        (Evidence(False, excluded=True, reduced=True), {}, True, EXCLUDED),
        (Evidence(False, excluded=True), {"x": Evidence(False, excluded=True, reduced=True)}, True, EXCLUDED),
        (Evidence(False, excluded=True), {"x": Evidence(False)}, True, NOT),
    ],
)
def test_a_paper_is_contradicted_only_in_its_own_complete_setting(
    stated: Evidence, others: dict[str, Evidence], complete: bool, verdict: str
) -> None:
    """Our own choices, a small version, or an alternative that no bound excludes leave room for the printed number."""
    assert decide(stated, others, complete) == verdict


evidences = st.builds(
    Evidence, st.sampled_from([True, False, None]), st.booleans(), st.booleans(), reduced=st.booleans()
)


@given(evidences, st.dictionaries(st.text("abc", min_size=1), evidences, max_size=3), st.booleans())
def test_a_verdict_is_never_better_than_the_evidence(
    stated: Evidence, narrower: dict[str, Evidence], complete: bool
) -> None:
    verdict = decide(stated, narrower, complete)
    tried = [one for one in (stated, *narrower.values()) if one.agrees is not None]
    assert kind(verdict) in VERDICTS
    assert (verdict == REPRODUCED) == (stated.agrees is True and not stated.reduced)
    if kind(verdict) == ONLY:
        assert any(one.agrees and not one.reduced and verdict == f"only if {name}" for name, one in narrower.items())
    if verdict in (NOT, EXCLUDED, IMPOSSIBLE):
        assert not any(one.agrees for one in tried)
    if verdict in (EXCLUDED, IMPOSSIBLE):
        assert all(one.excluded for one in tried)
    if verdict == IMPOSSIBLE:
        assert complete
        assert not any(one.reduced for one in tried)


@given(st.lists(st.sampled_from(list(VERDICTS)), max_size=5))
def test_a_figure_is_as_good_as_its_worst_part(verdicts: list[str]) -> None:
    found = worst(verdicts)
    order = list(VERDICTS)
    judged = [one for one in verdicts if one not in UNJUDGED]
    assert found in (verdicts or [NOT_TESTABLE])
    assert (found in UNJUDGED) == (not judged)
    assert all(order.index(found) >= order.index(one) for one in judged)


def printed(value: float, quantity: str = "jct_mean_ratio:hadar.fifo", **more: object) -> Number:
    return Number.model_validate({"method": "hadar.srtf", "quantity": quantity, "value": value, **more})


@pytest.mark.parametrize(
    ("number", "found", "expected"),
    [
        (printed(1.5, tolerance=0.1), Statistic(1.45, 1.45, 1.45, 1), (True, True, False)),
        (printed(1.5), Statistic(1.4, 1.3, 1.6, 5), (True, True, False)),  # the interval holds it
        (printed(1.5), Statistic(1.4, 0.9, 1.9, 5), (False, False, False)),  # too wide to decide
        (printed(1.5), Statistic(1.2, 1.1, 1.3, 5), (False, True, False)),
        (printed(1.5), Statistic(1.1, 0.9, 1.2, 5), (False, False, False)),
        (printed(0.5), Statistic(0.9, 0.8, 0.95, 5), (False, True, False)),
        (printed(1.5), Statistic(1.1, 1.05, 1.2, 5, 1.3, "at most", "m"), (False, True, True)),
        (printed(1.5, relation="at least"), Statistic(1.6, 1.4, 1.8, 5, 1.9, "at most", "m"), (True, True, False)),
        (printed(1.5, relation="at most"), Statistic(1.6, 1.55, 1.7, 5, 1.2, "at most", "m"), (False, True, False)),
        (printed(40, "ttd_h"), Statistic(60, 60, 60, 1, 50.0, "at least", "m"), (False, False, True)),
        (printed(40, "ttd_h"), Statistic(60, 60, 60, 1, 30.0, "at least", "m"), (False, False, False)),
        (printed(0.3, "changing", tolerance=0.05), Statistic(0.27, 0.27, 0.27, 1), (True, False, False)),
    ],
)
def test_what_a_mean_says_about_a_printed_number(
    number: Number, found: Statistic, expected: tuple[bool, bool, bool]
) -> None:
    assert evidence(number, found) == Evidence(*expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12))
def test_an_interval_holds_its_mean(known: list[float]) -> None:
    low, high = interval([[value] for value in known])
    mean = sum(known) / len(known)
    slack = 1e-6 * max(1.0, *(abs(value) for value in known))
    assert min(known) - slack <= low <= mean + slack
    assert mean - slack <= high <= max(known) + slack
    assert (low == high) == (len(set(known)) == 1) or high - low < slack


def test_methods_are_compared_on_the_same_cases() -> None:
    def case(seed: int, method: str, value: float, trouble: str = "") -> Case:
        return Case("", (str(seed),), {"seed": seed}, method, {"ttd_h": value}, {}, trouble)

    apart = [case(1, "a", 1.0), case(1, "b", 2.0), case(2, "a", 9.0), case(2, "b", 1.0, "timed out"), case(3, "b", 5.0)]
    kept = shared(["a", "b", "absent"], "ttd_h", apart)
    assert [(one.key, one.method) for one in kept] == [(("1",), "a"), (("1",), "b")]
    content = {"title": "t", "place": "Fig. 0", "orders": [{"order": ["a", "b"], "quantity": "ttd_h"}]}
    runs = [{"instances": ["gen/20jobs"], "policies": ["a", "b"]}]
    (row,) = rows(Setting.model_validate_json(json.dumps({**content, "runs": runs})), apart)
    assert (row.verdict, row.cases, row.measured) == (REPRODUCED, 1, "1 < 2")


def test_a_draw_at_several_sizes_is_one_draw() -> None:
    """Seeds are what varies: the interval of a mean over sizes and seeds is that of the means of the seeds.

    Two sizes of three draws look like six observations, but a draw that is high is so at both sizes.
    """
    known = {(size, seed): 10 * size + seed for size in (1, 2) for seed in (1, 2, 3)}
    cases = [
        Case("", (f"{size} {seed}",), {"instance": f"gen/20jobs?jobs={size}&seed={seed}"}, "a", {"ttd_h": value}, {})
        for (size, seed), value in known.items()
    ]
    found = statistic("a", "ttd_h", cases)
    assert found
    assert (found.value, found.low, found.high, found.cases) == (17.0, 16.0, 18.0, 6)
    # Sizes of a single draw are all there is, and stand for themselves.
    alone = statistic("a", "ttd_h", [case for case in cases if case.at["instance"].endswith("seed=1")])
    assert alone
    assert (alone.value, alone.low, alone.high) == (16.0, 11.0, 21.0)


def test_the_smallest_and_largest_mean_of_a_map_are_over_the_draws_of_a_point() -> None:
    """A map with several draws at each point is compared by its smallest or largest mean, not by a lucky draw.

    The bound is over all points, too: the large one has the largest mean, but may end before the small one can.
    """
    known = {("small", 1): 1.0, ("small", 2): 3.0, ("large", 1): 2.0, ("large", 2): 2.5}
    least = {("small", 1): 0.5, ("small", 2): 2.5, ("large", 1): 1.0, ("large", 2): 1.0}
    cases = [
        Case(
            "",
            (load, str(seed)),
            {"instance": f"{load}?seed={seed}", "load": load, "seed": seed},
            "a",
            {"ttd_s": 3600 * value},
            {"ttd_s": (3600 * least[load, seed], "a bound")},
        )
        for (load, seed), value in known.items()
    ]
    found = [statistic("a", "ttd_h", cases, of) for of in ("smallest", "smallest mean", "largest", "largest mean")]
    assert [(one.value, one.low, one.high, one.cases, one.bound) for one in found if one] == [
        (1.0, 1.0, 1.0, 4, 0.5),
        (2.0, 1.0, 3.0, 2, 1.0),
        (3.0, 3.0, 3.0, 4, 2.5),
        (2.25, 2.0, 2.5, 2, 1.5),
    ]
    unbounded = [*cases[1:], replace(cases[0], bounds={})]
    best = statistic("a", "ttd_h", unbounded, "largest mean")
    assert best
    assert (best.value, best.bound) == (2.25, None)


# the papers' figures ------------------------------------------------------------------------------

FIGURES = {
    "hadar": [*(f"fig{n}" for n in range(1, 13)), *(f"table{n}" for n in range(1, 5))],
    "oef": [*(f"fig{n}" for n in range(1, 11)), "table1"],
    "synergy": [*(f"fig{n}" for n in range(1, 14)), *(f"table{n}" for n in range(1, 6))],
    "zhou": [*(f"fig{n}" for n in range(1, 13)), "table1"],
}
"""The figures and tables of each paper; the walk-through has none and counts as one setting."""


def test_every_figure_and_table_of_the_papers_has_a_setting() -> None:
    wanted = {f"{paper}/{name}" for paper, names in FIGURES.items() for name in names} | {"admission/walkthrough"}
    assert wanted <= set(known())
    others = [id for id in known() if id not in wanted]
    beside = ("section", "map-", "examples")
    assert all(id.startswith("clusters/") or id.partition("/")[2].startswith(beside) for id in others), others


@pytest.mark.parametrize("setting", [one for one in known().values() if one.runs], ids=lambda one: one.id)
def test_what_a_file_chooses_is_declared(setting: Setting) -> None:
    """A file that runs says what the paper leaves open, or that it leaves nothing open; alternatives name what."""
    assert bool(setting.assumptions) != setting.complete
    assert all(one.why for one in setting.assumptions)
    assert [other.setting for item in setting.items for other in item.only_if if not other.assumption] == []


def test_every_published_number_is_part_of_a_setting() -> None:
    def told(one: Published | Number) -> tuple[object, ...]:
        return one.method, one.quantity, str(one.value)

    numbers = [item for setting in known().values() for item in setting.items if isinstance(item, Number)]
    quoted = {told(one) for item in numbers for one in (item, *(_instead(item, other) for other in item.only_if))}
    printed = {told(one) for ref in references() for one in load(ref).published if one.value is not None}
    assert printed <= quoted


@pytest.mark.parametrize("figure", ["fig4", "fig5", "fig6"])
def test_two_of_oef_s_four_users_run_the_models_that_the_paper_names(figure: str) -> None:
    """OEF's user 1, who lies, runs LSTM jobs and user 4 runs VGG11, as section 6.2.1 says."""
    for ref in known()[f"oef/{figure}"].runs[0].references:
        models = [tenant.job_types[0].name for tenant in load(ref).tenants]
        assert (len(models), models[0], models[3]) == (4, "OEF LSTM", "OEF VGG")


# files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", known().values(), ids=lambda setting: setting.id)
def test_everything_compared_is_something_that_runs(setting: Setting) -> None:
    """Every method and point that a reproduction compares or draws is one that its run has."""
    for run in setting.runs:
        assert run.small().chosen
    for item in setting.items:
        alternatives = [(one.run or item.run, {**item.at, **one.at}) for one in item.only_if]
        for name, at in [(item.run, item.at), *alternatives]:
            run = setting.run_of(name)
            assert _points(run, at), (item, at)
        methods = item.order if isinstance(item, Order) else [item.method]
        assert set(methods) <= _methods(setting.run_of(item.run)), item
        for one in item.only_if:
            named = {one.instead[method] for method in methods if method in one.instead}
            assert named <= _methods(setting.run_of(one.run or item.run)), one
    for drawing in setting.drawings:
        assert _points(setting.run_of(drawing.run), drawing.at)


def _methods(run: SettingRun) -> set[str]:
    return {spec.id for spec in (resolve(run.chosen) if run.policies else select(run.chosen, run.papers))}


def _points(run: SettingRun, at: object) -> bool:
    assert isinstance(at, dict)
    names = [*run.references, *(trace.name for trace in run.traces)]
    kinds = run.options.kinds(whole=True) if run.policies else [""]
    points = [coordinates(name, kind) for name in names for kind in kinds]
    return any(all(_is(point.get(name), wanted) for name, wanted in at.items()) for point in points)


@pytest.mark.parametrize(("power", "verdict"), [(1.4, REPRODUCED), (1.6, NOT)])
def test_curves_scale_alike_if_their_exponents_are_close(power: float, verdict: str) -> None:
    """The first curve grows as n, and has a bump in between; the second grows as a power of n."""
    curves = {"a": lambda n: n + 30 * (n == 20), "b": lambda n: 7 * n**power}
    cases = [
        Case("", (str(n),), {"jobs": n}, name, {"ttd_h": float(curve(n))}, {})
        for name, curve in curves.items()
        for n in (10, 20, 40)
    ]
    trend = {"method": "a", "like": "b", "quantity": "ttd_h", "along": "jobs", "shape": "scales"}
    runs = [{"instances": ["gen/20jobs"], "policies": ["a", "b"]}]
    content = {"title": "t", "place": "Fig. 0", "trends": [trend], "runs": runs}
    (row,) = rows(Setting.model_validate_json(json.dumps(content)), cases)
    assert (row.published, row.measured) == ("scales with jobs like b", f"exponents 1.00 and {power:.2f}")
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "titel = 1\ntitle =", "titel: unknown field"),
        ('"hadar.srtf", "hadar.fifo"]\noptions', '"hadar.srtf", "hadar.fofi"]\noptions', "unknown policy 'hadar.fofi'"),
        (MINE, 'title = "t"\nplace = "Fig. 0"', "needs = '': runs, or what a test would need"),
        ("[[runs]]", 'runs = "hadar/fig99"\n[[rums]]', "runs = 'hadar/fig99': expected a figure that has runs"),
        ("[[runs]]", "[[runs]]\neach = 3", "each: unknown field"),
        ("[[runs]]", "only_if = 3\n[[runs]]", "only_if"),
        ('shape = "falls"', 'shape = "wobbles"', "trends[0].shape"),
        ('shape = "falls"', 'shape = "scales"', "like = '': the other method if shape is scales, and only then"),
        ('along = "load"\nshape', 'run = "big"\nalong = "load"\nshape', "run = big: one of the runs"),
        ("value = 9.0", "", "numbers[0].value: missing"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MINE
    with pytest.raises(UsageError) as caught:
        read(written(tmp_path, MINE.replace(old, new, 1)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_the_paper_leaves_open_is_declared(tmp_path: Path) -> None:
    """A choice for an assumption names it, and a file with assumptions is not complete."""
    declared = '[[assumptions]]\nname = "order"\nours = "as printed"\nwhy = "The text has none."\n[[runs]]'
    named = MINE.replace("{ setting", '{ assumption = "order", setting')
    with pytest.raises(UsageError, match=r"only_if\.assumption = order"):
        read(written(tmp_path, named))
    with pytest.raises(UsageError, match="complete = true: false: the paper leaves open order"):
        read(written(tmp_path, "complete = true\n" + MINE.replace("[[runs]]", declared)))
    setting = read(written(tmp_path, named.replace("[[runs]]", declared)))
    assert [str(one) for one in setting.assumptions] == ["order: as printed"]


def test_other_choices_that_change_a_verdict_are_named() -> None:
    def case(method: str, value: float) -> Case:
        return Case("", (), {}, method, {"ttd_h": value}, {})

    item = {"method": "a", "quantity": "ttd_h", "value": 1.0, "tolerance": 0.1}
    other = {"assumption": "order", "setting": "upside down", "instead": {"a": "b"}}
    same = {"assumption": "order", "setting": "sideways", "instead": {"a": "c"}}
    content = {
        "title": "t",
        "place": "Fig. 0",
        "assumptions": [{"name": "order", "ours": "as printed"}],
        "runs": [{"instances": ["gen/20jobs"], "policies": ["a", "b", "c"]}],
        "numbers": [{**item, "only_if": [other, same]}],
    }
    setting = Setting.model_validate_json(json.dumps(content))
    (row,) = rows(setting, [case("a", 1.0), case("b", 2.0), case("c", 1.05)])
    assert (row.verdict, row.flips) == (REPRODUCED, ("order, upside down: not reproduced",))
    (row,) = rows(setting, [case("a", 2.0), case("b", 1.0), case("c", 3.0)])
    assert (row.verdict, row.flips) == ("only if upside down", ("order, upside down: reproduced",))
    (row,) = rows(setting, [case("a", 1.0), case("b", 1.0), case("c", 1.0)])
    assert (row.verdict, row.note) == (NOT_TESTABLE, TIED)


def test_as_good_as_allows_equal_values() -> None:
    content = {
        "title": "t",
        "place": "Fig. 0",
        "runs": [{"instances": ["gen/20jobs"], "policies": ["a", "b", "c"]}],
        "orders": [{"order": ["a", "b"], "quantity": "ttd_h", "ties": ties} for ties in (True, False)],
    }
    setting = Setting.model_validate_json(json.dumps(content))
    cases = [Case("", (), {}, method, {"ttd_h": value}, {}) for method, value in (("a", 1.0), ("b", 1.0), ("c", 2.0))]
    assert [row.verdict for row in rows(setting, cases)] == [REPRODUCED, NOT]


@pytest.mark.parametrize(
    ("spread", "verdicts"), [(1.0, [UNCLEAR, UNCLEAR]), (0.01, [DIRECTION, DIRECTION]), (0.0, [DIRECTION, DIRECTION])]
)
def test_means_are_told_apart_only_if_their_intervals_do_not_overlap(spread: float, verdicts: list[str]) -> None:
    """A curve that rises in one of two steps, and an order that holds at two of three values, by 0.1 of 10."""
    shared_content = {"quantity": "ttd_h", "along": "load"}
    content = {
        "title": "t",
        "place": "Fig. 0",
        "runs": [{"instances": ["gen/20jobs"], "policies": ["a", "b"]}],
        "orders": [{"order": ["b", "a"], **shared_content}],
        "trends": [{"method": "a", "shape": "rises", **shared_content}],
    }
    setting = Setting.model_validate_json(json.dumps(content))
    by_load = {"1": {"a": 10.0, "b": 9.9}, "2": {"a": 10.1, "b": 10.0}, "3": {"a": 10.1, "b": 10.2}}
    cases = [
        Case("", (load, str(seed)), {"load": load}, method, {"ttd_h": value + spread * seed}, {})
        for load, methods in by_load.items()
        for method, value in methods.items()
        for seed in (-1, 0, 1)
    ]
    assert [row.verdict for row in rows(setting, cases)] == verdicts


def test_an_order_of_means_says_in_how_many_draws_it_holds() -> None:
    """An unlucky draw may decide a mean: in one of three draws a is far ahead, and in the others b is."""
    content = {
        "title": "t",
        "place": "Fig. 0",
        "runs": [{"instances": ["gen/20jobs"], "policies": ["a", "b"]}],
        "orders": [{"order": ["a", "b"], "quantity": "ttd_h", "along": "load"}],
    }
    setting = Setting.model_validate_json(json.dumps(content))
    cases = [
        Case("", (load, str(seed)), {"load": load, "seed": seed}, method, {"ttd_h": value}, {})
        for load in ("1", "2")
        for seed, (a, b) in enumerate([(1.0, 9.0), (4.0, 3.0), (4.0, 3.0)])
        for method, value in (("a", a), ("b", b))
    ]
    (row,) = rows(setting, cases)
    assert (row.verdict, row.measured) == (REPRODUCED, "at 2 of 2 values of load; in 2 of 6 cases")
    one_each = [case for case in cases if case.at["seed"] == 1]
    assert [row.measured for row in rows(setting, one_each)] == ["at 0 of 2 values of load; not at 1, 2"]


CLUSTER = """
title = "Three jobs on two GPUs"
place = "CSV"
complete = true

[[runs]]
methods = ["rigid.bound", "rigid.easy", "rigid.fcfs", "rigid.executed"]

[[runs.traces]]
format = "csv"
file = "{}"
name = "mine"
history = true
columns = {{ id = "id", submit = "submit", start = "start", end = "end", gpus = "gpus" }}

[[measured]]
each = ["easy", "fcfs", "executed"]
method = "rigid.{{}}"
quantity = "wait_h"
unit = "h"
"""


def test_a_log_of_a_cluster_is_measured_and_certified(command: Command, tmp_path: Path) -> None:
    """By hand: a job of 10 h holds one of two GPUs, a gang of two waits for it, and a short job could run beside it."""
    log = tmp_path / "log.csv"
    log.write_text(
        "id,submit,start,end,gpus\na,0,0,36000,1\nb,3600,36000,39600,2\nc,7200,39600,46800,1\n", encoding="utf-8"
    )
    path = written(tmp_path, CLUSTER.format(log))
    ran = command("reproduce", path, "--jobs", 1)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("1 figure or table: 1 measured.")
    found = read_rows(next((tmp_path / "results").iterdir()) / "figures.json")
    assert [(row.method, row.measured) for row in found.rows] == [
        ("rigid.easy", 3.0),
        ("rigid.fcfs", 6.0),
        ("rigid.executed", 6.0),
    ]
    for row in found.rows:
        assert (row.verdict, row.published) == (MEASURED, None)
        least = float(row.certified.removeprefix("≥ ").partition(" ")[0])
        assert 0 <= least <= 3  # EASY's schedule shows that no bound can be larger
    assert "published" not in ran.stdout


def test_a_log_that_is_not_here_is_skipped_with_a_reason(tmp_path: Path) -> None:
    path = written(tmp_path, CLUSTER.format(tmp_path / "absent.csv"))
    found = reproduce(str(path), jobs=1)
    assert {row.verdict for row in found.rows} == {NOT_TESTABLE}
    assert "absent.csv, which is not here" in found.settings["mine"].needs


def test_the_bound_on_a_wait_is_that_on_a_completion_less_the_durations() -> None:
    (instance,) = [load("gen/20jobs?jobs=6")]
    found = compare_here(instance, ["rigid.bound", "rigid.easy"])
    row = next(row for row in found.rows if row.method == "rigid.easy")
    (least, model), (flow, _) = row.bounds["wait_h"], row.bounds["objective"]
    assert model == "rigid.bound"
    assert least <= row.metrics["wait_h"]
    assert row.metrics["flow_h"] - row.metrics["wait_h"] == pytest.approx(flow - least)
    assert next(row for row in found.rows if row.method == "rigid.bound").bounds.keys() == {"objective"}


def test_a_claim_of_the_audit_stands_in_for_a_run() -> None:
    printed = [{"what": "Prices", "value": "1.5", "claim": "admission.slip.total"}, {"what": "Days"}]
    content = {"title": "t", "place": "part 1", "needs": "machines", "printed": printed}
    setting = Setting.model_validate_json(json.dumps(content))
    assert [row.verdict for row in rows(setting, [])] == ["audited: admission.slip.total", NOT_TESTABLE]
    linked = [one.claim for setting in known().values() for one in setting.printed if one.claim]
    assert set(linked) <= {claim.id for claim in CLAIMS}


def test_what_is_said_once_is_written_out(tmp_path: Path) -> None:
    shared = """
title = "Two seeds"
place = "Fig. 0"
only_if = [{ setting = "the other seed", run = "2" }]

[[runs]]
each = ["1", "2"]
name = "{}"
instances = ["gen/20jobs?seed={}"]
policies = ["hadar.srtf", "hadar.fifo"]

[[numbers]]
each = [{ value = 1.0, method = "hadar.fifo" }, { value = 2.0, method = "hadar.srtf", run = "2", only_if = [] }]
quantity = "ttd_h"
"""
    setting = read(written(tmp_path, shared))
    assert [(run.name, run.instances) for run in setting.runs] == [(n, (f"gen/20jobs?seed={n}",)) for n in "12"]
    assert [(one.value, one.method, one.run) for one in setting.numbers] == [
        (1.0, "hadar.fifo", ""),
        (2.0, "hadar.srtf", "2"),
    ]
    assert [[other.run for other in one.only_if] for one in setting.numbers] == [["2"], []]
    assert known()["hadar/fig3"].runs == known()["hadar/fig4"].runs


def test_the_highest_utilisation_is_compared_with_all_others() -> None:
    """YARN-CS's utilisation is compared with all others: Hadar's section IV-B calls it the highest."""
    below = {one.order[1] for one in known()["hadar/fig3"].orders if one.order[0] == "hadar.yarn_cs"}
    assert below == {"hadar.online", "hadar.gavel", "hadar.tiresias"}


def test_baselines_are_compared_with_a_rounding_that_is_not_oef_s() -> None:
    """OEF is compared with baselines without its placer, too, to which section 6.3.2 ascribes part of the gain."""
    for one in known()["oef/fig9"].numbers:
        others = {new for other in one.only_if for new in other.instead.values()}
        assert f"{one.quantity.removeprefix('jct_mean_ratio:')}?rounding=memoryless" in others


def test_reports_name_the_figures_on_their_instances() -> None:
    assert about(["gen/hadar-480?seed=3"]) == [
        "hadar/fig3",
        "hadar/fig4",
        "hadar/fig5",
        "hadar/section4",
        "hadar/section4b",
    ]
    assert about(["mine"]) == []
    instance = load("paper/oef-fig2")
    run = compare_here(instance, ["oef.cooperative"])
    (section,) = published_section(run.rows, {instance.fingerprint: instance}, COMPARE)
    assert "harness reproduce oef/fig2" in str(section)


@pytest.mark.parametrize("name", ["oef/fig99", "oeff", "hadar/", "none.toml"])
def test_names_that_are_none(name: str, command: Command) -> None:
    with pytest.raises(UsageError):
        find([name])
    ended = command("reproduce", name)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean oef/fig"):
        find(["oef/fig99"])
    assert [one.id for one in find(["oef/fig2", "oef/fig2"])] == ["oef/fig2"]
    assert {one.paper for one in find(["synergy"])} == {"synergy"}
    assert len(find(["all"])) == len(known())


# runs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    folder = tmp_path_factory.mktemp("mine")
    return reproduce([str(written(folder))], jobs=1, results=folder)


def test_a_setting_of_ones_own(mine: Reproduction, command: Command) -> None:
    folder = mine.folder
    assert folder
    words = "reproduce", folder.parent / "mine.toml", "--jobs", "1", "--format", "json", "--resume", folder
    ended = command(*words)
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)
    assert [row["verdict"] for row in rows[:3]] == [EXCLUDED, EXCLUDED, REPRODUCED]
    assert rows[0]["cases"] == 4
    assert rows[0]["low"] < rows[0]["measured"] < rows[0]["high"]
    assert rows[0]["certified"].startswith("≤ ")
    assert rows[1]["certified"].startswith("≥ ")
    assert rows[2]["published"] == "hadar.srtf before hadar.fifo"
    assert rows[2]["measured"] == "at 2 of 2 values of load; in 4 of 4 cases"
    assert rows[3]["verdict"] == NOT
    assert rows[3]["elsewhere"][0].startswith("upside down: 0.5: ")
    assert rows[3]["flips"] == []
    assert (folder / "report.html").exists()
    assert command("verify", folder).returncode == 0
    assert json.loads(command(*words, "--no-report").stdout) == rows
    shown = command("report", folder, "-o", "again.html")
    assert shown.returncode == 0, shown.stderr


def test_what_figures_are_drawn_from(mine: Reproduction) -> None:
    setting, cases = mine.settings["mine"], mine.cases["mine"]
    lines, bars, heat, cdf = (drawn_of(setting, drawing, cases) for drawing in setting.drawings)
    assert [(one["x"], one["series"]) for one in lines if "value" in one] == [
        (load, policy) for policy in ("hadar.srtf", "hadar.fifo") for load in ("0.5", "1.5")
    ]
    assert [(one["x"], one["series"], one["published"]) for one in lines if "published" in one] == [
        (0.5, "hadar.fifo", 0.5)
    ]
    assert all(min(one["bound"], one["low"]) <= one["value"] <= one["high"] for one in lines if "value" in one)
    assert {one["series"] for one in bars} == {
        f"{policy}, seed = {seed}" for policy in ("hadar.fifo", "hadar.srtf") for seed in (1, 2)
    }
    assert [(one["x"], one["y"]) for one in heat] == [("0.5", "hadar.srtf"), ("1.5", "hadar.srtf")]
    for policy in ("hadar.fifo", "hadar.srtf"):
        shares = [one["value"] for one in cdf if one["series"] == policy]
        assert shares == sorted(shares)
        assert shares[-1] == 1
    rounds = drawn_of(setting, setting.drawings[-1].model_copy(update={"quantity": "gru"}), cases)
    assert all(0 < one["x"] <= 1 and 0 < one["value"] <= 1 for one in rounds)
    assert [one["value"] for one in rounds if one["series"] == "hadar.fifo"][-1] == 1
    drawn, failures = draw_all(mine)
    assert failures == []
    assert [one.name for one in drawn] == [f"mine-shape-mine-{n}" for n in range(1, 5)]
    dashed = {each["x"]: each["bound"] for each in records_of(drawn[0]) if "of" in each}
    known = {float(one["x"]): one["bound"] for one in lines if "value" in one}
    assert dashed == pytest.approx(known, rel=1e-5)
    assert is_numeric(lines)
    assert not is_numeric([{"x": "any"}, {"x": "1"}])


EACH = """
title = "The most that a job gains"
place = "Fig. 0"

[[runs]]
instances = ["gen/20jobs"]
policies = ["hadar.srtf", "hadar.fifo"]
options = { round_s = 900.0, window = "5:10" }

[[numbers]]
method = "hadar.srtf"
quantity = "job_jct_ratio:hadar.fifo"
value = 2.0
statistic = "largest"

[[numbers]]
method = "hadar.srtf"
quantity = "jct_max_ratio:hadar.fifo"
value = 2.0
"""


def test_single_jobs_are_compared_where_a_figure_is_about_them(tmp_path: Path) -> None:
    found = reproduce([str(written(tmp_path, EACH))], jobs=1)
    ours, theirs = (case.measured["job_jct_s"] for case in found.cases["mine"])
    assert len(ours) == 10
    assert found.rows[0].measured == pytest.approx((theirs / ours).max())
    assert found.rows[1].measured == pytest.approx(theirs.max() / ours.max())


ROUNDS = """
title = "The most CPUs that jobs hold in any round"
place = "Fig. 0"

[[runs]]
instances = ["gen/synergy-32?jobs=20"]
policies = ["synergy.tune.fifo"]

[[numbers]]
method = "synergy.tune.fifo"
quantity = "round_cpu_given"
value = 0.9
statistic = "largest"
"""


def test_what_is_printed_as_up_to_is_the_largest_value_over_time(tmp_path: Path) -> None:
    found = reproduce([str(written(tmp_path, ROUNDS))], jobs=1)
    (case,) = found.cases["mine"]
    assert case.trace
    history = case.trace.value
    assert history
    assert len(case.measured["round_cpu_given"]) == history.rounds > 1
    assert found.rows[0].measured == history.cpu_utilisation.max() > history.cpu_utilisation.mean()


def test_a_small_version_has_the_same_rows(mine: Reproduction, tmp_path: Path) -> None:
    small = reproduce([str(written(tmp_path))], jobs=1, quick=True)
    assert [row.what for row in small.rows] == [row.what for row in mine.rows]
    first = small.rows[0]
    assert (first.cases, first.verdict) == (2, EXCLUDED)


def test_worked_examples_come_back() -> None:
    found = reproduce(["oef/fig2"], jobs=1)
    assert [row.verdict for row in found.rows] == [REPRODUCED, REPRODUCED]
    assert found.verdict("oef/fig2") == REPRODUCED
    assert "OEF" in to_html(found)


def test_gains_and_preferences_of_tenants_are_measured() -> None:
    """The checker measures gains and preferences of tenants: in Fig. 1, user 2 gains 17.4 %.

    In (6), u2 values its own share 3.75 and that of u1 2.25; u1 is indifferent.
    """

    def measured(example: str) -> Mapping[str, float]:
        view = oef.view(load(example))
        decision = models.get("oef.cooperative").run(view).decision
        return judge(view.instance, decision, "oef.envy_free", ()).metrics

    assert measured("paper/oef-fig1")["gain_max"] == pytest.approx(1.1736, abs=1e-4)
    assert measured("paper/oef-eq6")["preference_max"] == pytest.approx(3.75 / 2.25)


def test_what_needs_machines_or_absent_data_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDGAP_DATA", str(tmp_path))
    found = reproduce(["synergy/fig9", "hadar/table4"], jobs=1)
    assert found.ok
    assert {row.verdict for row in found.rows} == {NOT_TESTABLE}
    assert "SCHEDGAP_DATA" in found.settings["synergy/fig9"].needs
    assert "GPUs" in found.settings["hadar/table4"].needs


# the kept table -----------------------------------------------------------------------------------


def test_a_table_of_verdicts_is_compared_with_another(tmp_path: Path, command: Command) -> None:
    found = reproduce(["oef/fig2", "oef/fig6"], jobs=1, results=tmp_path)
    kept = tmp_path / "kept.json"
    rows = [row.as_dict() for row in found.rows]
    kept.write_text(json.dumps(rows))
    ended = command("diff", kept, found.folder)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    kept.write_text(json.dumps([{**rows[0], "verdict": NOT}, *rows[1:]]))
    ended = command("diff", kept, found.folder)
    assert ended.returncode == 1
    assert "oef/fig2" in ended.stdout
    seconds = {**rows[0], "what": "solve_s: trend"}
    before = Reproduction({}, [typed(ReproducedRow, {**seconds, "verdict": NOT})], {})
    assert diff(before, Reproduction({}, [typed(ReproducedRow, seconds)], {})).ok
    kept.write_text("{}3")
    assert command("diff", kept, found.folder).returncode == 2


@pytest.mark.parametrize("name", ["reproductions", "reproductions-whole"])
def test_the_kept_table_is_of_the_settings_as_they_are(name: str) -> None:
    kept = read_rows(ROOT / "results" / f"{name}.json")
    settings = [one if "whole" in name else one.small() for one in known().values()]
    wanted = [row for setting in settings for row in rows(setting, [])]
    assert [(row.figure, row.what, row.method) for row in kept.rows] == [
        (row.figure, row.what, row.method) for row in wanted
    ]
    assert not [row for row in kept.rows if row.trouble]


def test_a_run_of_some_figures_replaces_their_rows_in_the_kept_table(tmp_path: Path) -> None:
    found = reproduce(["oef/fig2"], jobs=1, results=tmp_path)
    assert found.folder
    table = tmp_path / "kept.json"
    rows = [row.as_dict() for row in read_rows(ROOT / "results/reproductions.json").rows]
    gone = {**rows[0], "figure": "oef/fig99"}
    table.write_text(json.dumps([gone, *({**row, "note": "old"} for row in rows)]))
    subprocess.run([sys.executable, ROOT / "results/keep.py", table, found.folder], check=True)
    merged = read_rows(table).rows
    assert [(row.figure, row.what) for row in merged] == [(row["figure"], row["what"]) for row in rows]
    assert all((row.note == "old") == (row.figure != "oef/fig2") for row in merged)
