"""A single method that is compared alone still gets a gap: the model that bounds its problem runs as well.

That model is named, but has no row in the table.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.engine.study import Finished
from schedgap.harness.engine.task import sent
from schedgap.harness.show.page.compare import headline, lines
from schedgap.harness.studies.compare.methods import bounding
from schedgap.harness.studies.compare.run import collected, read_run, staged, unbounded
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.heuristics import HEURISTICS
from schedgap.instances import load
from schedgap.models import MODELS

EQ1 = "paper/oef-eq1"


@pytest.mark.parametrize("bound", [True, False])
def test_a_method_alone_has_a_certified_gap_unless_told_not_to(command: Command, bound: bool) -> None:
    words = [] if bound else ["--no-bound"]
    done = command(
        "compare", "--instance", EQ1, "--method", "oef.maxmin", "--no-report", "--jobs", 1, "--format", "json", *words
    )
    (row,) = json.loads(done.stdout)
    assert done.returncode == 0
    assert row["bound_from"] == ("oef.sharing_incentive" if bound else None)
    assert (row["gap"] is not None) == bound
    folder = Path(done.stderr.partition("results: ")[2].splitlines()[0])
    meta = json.loads((folder / "run.json").read_text())
    assert ("--no-bound" in meta["command"]) != bound


def test_the_gap_is_the_one_beside_the_model_itself(tmp_path: Path) -> None:
    alone = sg.compare(EQ1, ["oef.maxmin"], jobs=1, results=tmp_path)
    together = {row.method: row for row in sg.compare(EQ1, ["oef.maxmin", "oef.sharing_incentive"], jobs=1).rows}
    (row,), (bound,) = alone.rows, alone.bounds
    assert row.gap == together["oef.maxmin"].gap
    assert bound.method == "oef.sharing_incentive"
    told = r"oef\.sharing_incentive also ran, for its bound, in [\d.]+ s \(off: --no-bound\)\."
    assert re.search(rf"{told}$", headline(alone))
    assert alone.folder is not None
    again = read_run(alone.folder)
    assert (again.rows, again.bounds) == (alone.rows, alone.bounds)


def test_a_resumed_run_keeps_the_bound(tmp_path: Path) -> None:
    folder = sg.compare(EQ1, ["oef.maxmin"], jobs=1, results=tmp_path).folder
    ran: list[str] = []
    again = sg.compare(EQ1, ["oef.maxmin"], jobs=1, resume=folder, on_result=lambda one: ran.append(one.row.method))
    assert ran == []
    assert again.rows[0].bound_from == "oef.sharing_incentive"
    sg.compare(EQ1, ["oef.*"], jobs=1, resume=folder, on_result=lambda one: ran.append(one.row.method))
    assert "oef.sharing_incentive" in ran  # asked for now, so it is in the table


def test_one_bound_is_enough_for_all_seeds_and_none_runs_where_a_method_has_one() -> None:
    several = sg.compare(EQ1, ["oef.maxmin", "oef.rounding"], seeds=[0, 1], jobs=1)
    # oef.rounding is made for envy-free shares, so its loss needs the bound on these, too.
    ran = [row.method for row in several.bounds if row.status != "skipped"]
    assert ran == ["oef.efficiency", "oef.sharing_incentive", "oef.cooperative"]
    assert all(row.gap is not None for row in several.rows)
    assert sg.compare(EQ1, ["oef.maxmin", "oef.efficiency"], jobs=1).bounds == []


def test_models_of_the_problem_come_before_those_of_wider_ones() -> None:
    found = [spec.id for spec in bounding("hadar", "hadar.complete")]
    assert found[0] == "hadar.fluid.complete"
    assert found.index("hadar.p2.columns") > found.index("hadar.p1.complete")


def test_a_model_that_was_skipped_gives_way_to_the_next() -> None:
    tasks = [MethodTask(*sent(sg.load("gen/20jobs")), "hadar.srtf")]
    decided = tasks[0].blank_row(status="feasible", objective=1.0, verified=True)
    done, asked = [MethodResult(decided)], []
    while found := unbounded(tasks, done):
        asked += [task.method for task in found]
        done += [MethodResult(task.blank_row(status="skipped"), helps=True) for task in found]
    assert asked == [spec.id for spec in bounding("hadar", "hadar.utility")]
    failed = MethodResult(tasks[0].blank_row(status="error").replace(method=asked[0]), helps=True)
    assert unbounded(tasks, [done[0], failed]) == []  # it ran and found nothing; another one would take as long


def test_every_model_of_the_narrower_problem_has_its_turn() -> None:
    """A method for a narrower problem needs the bound of that one, too, which may be that of its last model."""
    task = MethodTask(*sent(sg.load("paper/oef-eq1")), "oef.rounding")
    models = [
        spec for spec in bounding("oef", HEURISTICS.get("oef.rounding").aims) if not spec.skip(spec.view(sg.load(EQ1)))
    ]
    assert len(models) > len(bounding("oef", HEURISTICS.get("oef.rounding").problem))
    decided = MethodResult(task.blank_row(status="feasible", objective=1.0, verified=True))
    done, asked = [decided], []
    _, _, *bounds = staged([task], bound=True)
    for stage in bounds:
        found = stage(done)
        asked += [one.method for one in found]
        done += [MethodResult(one.blank_row(status="skipped"), helps=True) for one in found]
    assert {spec.id for spec in models} <= {*asked}


def test_a_wrong_bound_is_shown_though_nobody_asked_for_it() -> None:
    instance = sg.load("gen/20jobs")
    task = MethodTask(b"", instance.name, instance.fingerprint, "hadar.srtf")
    decided = task.blank_row(status="feasible", objective=10.0, verified=True)
    model = replace(task, method="hadar.p2.columns", helps=True)
    for bound, shown in ((12.0, ["hadar.srtf"]), (5.0, ["hadar.p2.columns", "hadar.srtf"])):
        helped = MethodResult(model.blank_row(status="optimal", own_bound=bound), helps=True)
        found = collected(Finished({}, {instance.fingerprint: instance}, [MethodResult(decided), helped]))
        assert [row.method for row in found.rows] == shown
        assert found.ok == (bound == 12.0)


def test_nothing_is_bounded_where_nothing_was_decided() -> None:
    found = sg.compare("gen/20jobs", ["hadar.p1"], jobs=1)
    assert ([row.status for row in found.rows], found.bounds) == (["skipped"], [])


def test_every_problem_with_heuristics_has_a_model_that_bounds_it() -> None:
    missing = {spec.problem for spec in HEURISTICS if not bounding(spec.paper, spec.problem)}
    assert missing == set()
    assert all(spec.kind != "baseline" for spec in MODELS for spec in bounding(spec.paper, spec.problem))


@pytest.mark.parametrize("status", ["skipped", "error", "out of memory", "time limit without incumbent"])
def test_a_model_that_only_helps_is_not_shown_however_it_ends(status: Any) -> None:
    instance = load(EQ1)
    asked, helping = (
        MethodTask(*sent(instance), method, helps=helps)
        for method, helps in (("oef.maxmin", False), ("oef.sharing_incentive", True))
    )
    done = [asked.run(), helping.failed(status, "why")]
    found = collected(Finished({}, {instance.fingerprint: instance}, done))
    assert [row.method for row in found.rows] == ["oef.maxmin"]
    assert [row.status for row in found.bounds] == [status]
    assert "oef.sharing_incentive" not in "".join(text for text in lines(found) if status == "skipped")
