"""The search for worst instances: how it changes instances, that its ratios are true, and that it can be replayed."""

from __future__ import annotations

import html
import json
import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgap as sg
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.page.adversary import remarks
from schedgap.harness.studies.adversary import task
from schedgap.harness.studies.adversary.families import answer
from schedgap.harness.studies.adversary.row import Adversary, Proved, Slice, Worst
from schedgap.harness.studies.adversary.run import adversary, known, resolve, seconds_of, staged
from schedgap.harness.studies.adversary.task import (
    Lab,
    SearchTask,
    ShrinkTask,
    document,
    mutated,
    numbers,
    possible,
    searchable,
    simpler,
    worst,
)
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.canonical import read
from schedgap.instances.catalogue import load, references
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.families import HARD
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.random_instances.hadar import linear
from schedgap.instances.schema import Instance

WORST = [ref for ref in references() if ref.startswith("worst/")]
FAST = "hadar.online?beam=1"


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


# what is changed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", RANDOM.ids())
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_small_instances_and_their_changes_belong_to_their_paper(paper: str, seed: int) -> None:
    random = rng(seed)
    content = document(RANDOM.get(paper).draw(random))
    assert possible(content, 20) is not None
    before = json.dumps(content)
    found = possible(mutated(content, random), 20)
    assert json.dumps(content) == before, "a change is made to a copy"
    if found is not None:
        assert found.jobs or found.tenants
        assert all(holder[key] >= 0 for holder, key in numbers([j.model_dump() for j in found.jobs]))


def test_changes_reach_arrivals_sizes_rates_weights_order_count_and_room() -> None:
    start = next(c for i in range(99) if len((c := document(RANDOM.get("hadar").draw(rng(i))))["jobs"]) == 3)
    random = rng(0)
    seen = [mutated(start, random) for _ in range(300)]
    jobs = start["jobs"]
    for field in ("submit_s", "epochs", "weight", "gpus"):
        assert any(c["jobs"][0].get(field) != jobs[0].get(field) and len(c["jobs"]) == len(jobs) for c in seen), field
    assert any(c["jobs"][0]["rates"] != jobs[0]["rates"] for c in seen)
    assert {len(c["jobs"]) - len(jobs) for c in seen} >= {-1, 0, 1}
    assert any(c["cluster"] != start["cluster"] for c in seen)
    assert any(c["horizon"] != start["horizon"] and len(c["jobs"]) == len(jobs) for c in seen)


def test_changes_shift_arrivals_together_continue_a_pattern_and_reach_curves() -> None:
    utility = {"kind": "sigmoid", "amplitude": 2.0, "steepness_per_s": 0.5, "midpoint_s": 3.0}
    jobs = [{"gpus": 1, "epochs": 2, "rates": {"a": 1.0}, "submit_s": 2.0 * i, "utility": utility} for i in range(3)]
    start = document(linear(jobs, {"a": 1}, slots=9))
    random = rng(0)
    seen = [mutated(start, random) for _ in range(400)]
    arrivals = {tuple(job["submit_s"] for job in c["jobs"]) for c in seen}
    assert {(0.0, 3.0, 5.0), (0.0, 2.0, 4.0, 6.0)} <= arrivals
    assert any(c["horizon"]["slots"] == 11 for c in seen if len(c["jobs"]) == 4), "the horizon moves along"
    assert any(job["utility"].get("steepness_per_s") == 1.0 for c in seen for job in c["jobs"])


@pytest.mark.parametrize("paper", RANDOM.ids())
def test_what_is_simpler_is_smaller_in_one_thing(paper: str) -> None:
    content = document(RANDOM.get(paper).draw(rng(5)))
    found = list(simpler(content))
    assert found
    assert all(one != content for one in found)
    sizes = [len(json.dumps(one)) for one in found]
    assert min(sizes) < len(json.dumps(content))


def test_too_many_jobs_and_impossible_instances_are_thrown_away() -> None:
    content = document(RANDOM.get("hadar").draw(rng(1)))
    assert possible(content, len(content["jobs"])) is not None
    assert possible(content, len(content["jobs"]) - 1) is None
    content["jobs"][0]["gpus"] = 0
    assert possible(content, 9) is None


# what is found --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab.of(FAST, anywhere=True)


@pytest.fixture(scope="module")
def found(lab: Lab) -> Proved:
    part = SearchTask(lab, seed=1, start=(), tries=25, seconds=60, until=math.inf, most=4).attempt()
    assert part.tried == 25
    assert 0 < part.proved <= 25
    ratios = [p.ratio for p in part.elite]
    assert ratios == sorted(ratios, reverse=True)
    assert all(1 <= r < math.inf for r in ratios)
    assert all(p.size <= 4 for p in part.elite)
    return part.elite[0]


def test_the_same_seed_finds_the_same(lab: Lab) -> None:
    one, other = (
        SearchTask(lab, seed=2, start=(), tries=6, seconds=60, until=math.inf, most=4).attempt() for _ in range(2)
    )
    assert [p.instance.fingerprint for p in one.elite] == [p.instance.fingerprint for p in other.elite]


def test_a_start_is_never_made_worse(lab: Lab, found: Proved) -> None:
    part = SearchTask(lab, seed=3, start=(found.instance,), tries=1, seconds=60, until=math.inf, most=4).attempt()
    assert part.elite[0].ratio >= found.ratio * (1 - 1e-9)


def test_shrinking_keeps_the_ratio_and_makes_nothing_larger(lab: Lab, found: Proved) -> None:
    (simple,) = ShrinkTask(lab, math.inf, math.inf, found, tries=3).attempt().elite
    assert simple.ratio >= found.ratio * 0.99
    assert simple.size <= found.size
    again = lab.prove(simple.instance)
    assert again is not None
    assert again.ratio == simple.ratio


def test_who_else_fails_is_told_of_what_is_shrunk() -> None:
    lab = Lab.of("hadar.online")
    found = lab.prove(load("family/hadar-long-first?slots=5"))
    assert found is not None
    (told,) = ShrinkTask(lab, math.inf, math.inf, found, tries=0).attempt().elite
    assert told.also["hadar.fifo"] == pytest.approx(3.2)
    assert "hadar.srtf" not in told.also
    run = Adversary({}, [Worst("hadar.online", "hadar.utility", told, None, 1, 1)])
    said = dict.fromkeys(text for _, text in remarks(run))
    assert any(text.startswith("also bad there: hadar.fifo 3.2") for text in said)
    assert "family/hadar-long-first: (L − 1)/(1 + more)" in said
    assert any(text.startswith("any online algorithm: at least (1 + √k)²") for text in said)


def test_shrinking_ends_in_time(lab: Lab, found: Proved) -> None:
    (kept,) = ShrinkTask(lab, 0.0, math.inf, found, tries=100).attempt().elite
    assert kept.instance is found.instance


def test_of_equal_ratios_the_smallest_instance_is_kept(found: Proved) -> None:
    large = Proved(RANDOM.get("hadar").draw(rng(9)), "m", found.ratio, 1.0, 2.0)
    same = sorted([large, found], key=lambda p: p.size)
    assert worst([large, found])[0].size == same[0].size
    assert len(worst([large, found])) == 1


def test_a_guarantee_that_promises_nothing_is_no_place_to_look(lab: Lab) -> None:
    strict = Lab.of(FAST)
    cases = [RANDOM.get("hadar").draw(rng(i)) for i in range(12)]
    inside = [case for case in cases if strict.prove(case)]
    for case in inside:
        proved = lab.prove(case)
        assert proved is not None
        assert proved.guarantee is None or math.isfinite(proved.guarantee_factor or math.inf)


def test_a_measured_promise_excludes_no_instance() -> None:
    found = Lab.of("synergy.tune").prove(load("family/synergy-step?times=4"))
    assert found is not None
    assert found.ratio == pytest.approx(2.5)
    assert (found.guarantee, found.guarantee_factor) == ("10 % (measured)", None)


def test_a_process_that_dies_finds_nothing_and_changes_nothing(lab: Lab, found: Proved) -> None:
    assert SearchTask(lab, 1.0, math.inf, 0, (), 1, 4).failed("error", "died").tried == 0
    assert ShrinkTask(lab, 1.0, math.inf, found).failed("error", "died").elite == (found,)


# the command ----------------------------------------------------------------------------------------------------------


def test_what_can_be_searched_has_exact_models() -> None:
    names = {spec.id for spec in searchable()}
    assert {"hadar.online", "zhou.ps.online", "zhou.ra.amaxweight", "admission.online", "oef.rounding"} <= names
    assert {"synergy.tune", "hadar.hadare"} <= names
    assert {spec.id for spec in resolve(["zhou"])} == {name for name in names if name.startswith("zhou.")}


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("hadar.onlin", UnknownNameError, "did you mean hadar.online"),
        ("hadar.fifo", UsageError, "hadar.fifo is a baseline"),
        ("rigid.executed", UsageError, "there are no small instances of rigid"),
    ],
)
def test_what_cannot_be_searched(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve([name])


@pytest.mark.parametrize(("text", "seconds"), [("300s", 300), ("5m", 300), ("5min", 300), ("1h", 3600), ("1.5", 1.5)])
def test_budgets(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "5x", "infs", "nan", "1e999", "m"])
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="a positive duration"):
        seconds_of(text)


def test_large_instances_are_compared_with_what_is_quick_and_the_best_is_named(lab: Lab) -> None:
    proved = Lab.of("hadar.online").prove(load("family/hadar-outbidding?jobs=40&slots=7"))
    assert proved is not None
    assert proved.ratio > 25
    assert proved.model != "hadar.online"
    small = lab.prove(load("family/hadar-late"))
    assert small is not None
    assert small.model in lab.models


def test_a_search_begins_with_the_families_that_are_small_enough() -> None:
    begin = {one.name for one in known("hadar.online", 20)}
    assert {"worst/hadar.hadare", "family/hadar-outbidding?jobs=20&rise=0.001"} <= begin
    assert "family/hadar-outbidding?jobs=40&rise=0.001" not in begin


def test_a_search_tries_instances_from_its_first_evaluation_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is evaluated to choose a model, and of several models the first with a decision is enough."""
    compared: list[tuple[str, ...]] = []

    def counting(instance: Instance, methods: Sequence[str], **options: Any) -> Any:
        compared.append(tuple(methods))
        return compare_here(instance, methods, **options)

    monkeypatch.setattr(task, "compare_here", counting)
    lab = Lab.of("hadar.online", anywhere=True)
    assert len(lab.models) > 2
    assert not compared
    part = SearchTask(lab, 60.0, math.inf, 0, (load("family/hadar-late"),), tries=3, most=4).attempt()
    assert part.tried == 3
    assert 1 <= len(compared) <= 4
    assert set(compared) == {("hadar.online", "hadar.p1")}
    compared.clear()
    again = SearchTask(lab, 60.0, math.inf, 1, (), tries=1, most=4, elite=part.elite).attempt()
    assert len(compared) <= 1, "what earlier slices proved is not proved again"
    assert again.elite[0].ratio >= part.elite[0].ratio


def test_instances_to_begin_with_that_one_slice_did_not_reach_are_left_to_the_next(lab: Lab) -> None:
    stages = staged([lab], 100.0, None, 4, 0, 1, time.time())
    (first,) = stages[0]([])
    assert isinstance(first, SearchTask)
    names = tuple(one.name for one in first.start)
    assert names == tuple(one.name for one in known(FAST, 4))
    assert len(names) > 3
    (second,) = stages[1]([replace(first, until=0.0).attempt()])
    assert isinstance(second, SearchTask)
    assert tuple(one.name for one in second.start) == names[1:]
    (third,) = stages[2]([Slice(FAST, begun=names)])
    assert isinstance(third, SearchTask)
    assert third.start == ()


def test_no_task_goes_on_after_the_end_of_the_budget(lab: Lab, found: Proved) -> None:
    over = time.time() - 1
    part = SearchTask(lab, 60.0, over, 0, (found.instance, found.instance), 10**9, 4).attempt()
    assert (part.tried, [one.ratio for one in part.elite]) == (0, [found.ratio])
    assert ShrinkTask(lab, 60.0, over, found).attempt().elite[0].instance is found.instance


def test_what_is_saved_can_be_replayed(tmp_path: Path) -> None:
    labels: list[str] = []
    run = adversary(
        [FAST],
        tries=8,
        jobs=1,
        seed=4,
        anywhere=True,
        results=tmp_path,
        on_result=lambda part: labels.append(part.label),
    )
    (one,) = run.rows
    assert [label.partition(":")[0] for label in labels] == [FAST] * len(labels)
    assert one.found is not None
    assert run.folder is not None
    (entry,) = json.loads((run.folder / "adversary.json").read_text())
    assert entry["ratio"] == one.found.ratio
    saved = read(run.folder / "worst" / f"{FAST}.json")
    rows = sg.compare(saved, [FAST, one.found.model], jobs=1).rows
    (row,) = (r for r in rows if r.method == FAST)
    assert row.ratio_at_least == pytest.approx(one.found.ratio)
    page = html.unescape(sg.to_html(run))
    assert "is furthest from optimal, by a factor of at least" in page
    assert shlex.join(["--method", FAST, "--method", one.found.model]) in page
    assert all(entry["exact_agrees"] for r in rows for entry in r.published)
    ran: list[str] = []
    again = adversary(
        [FAST], tries=8, jobs=1, seed=4, anywhere=True, resume=run.folder, on_result=lambda part: ran.append(part.label)
    )
    assert again.rows == run.rows
    assert not ran, "a resumed search goes on where it was"


def test_the_command_refuses_in_one_line(command: Command) -> None:
    for words in (["--budget", "x"], ["--most-jobs", "0"]):
        assert command("adversary", "--heuristic", FAST, *words).returncode == 2


# the worst ones that come with the package ----------------------------------------------------------------------------


@pytest.mark.parametrize("ref", WORST)
def test_worst_instances_are_as_bad_as_they_say(ref: str) -> None:
    """Some come from a search, which published both objectives, and the others from a family, which has an answer."""
    instance = load(ref)
    methods = [entry.method for entry in instance.published]
    heuristic = methods[0]
    # Settings stand in a file's name as a word: zhou.ps.amincost.printed is zhou.ps.amincost?printed=true.
    assert ref.removeprefix("worst/").removesuffix(".nothing") == heuristic.removesuffix("=true").replace("?", ".")
    rows = {row.method: row for row in compare_here(instance, methods, limits=Limits(all_sizes=True)).rows}
    row = rows[heuristic]
    assert row.verified
    assert row.refuted is None
    assert all(entry["exact_agrees"] for r in rows.values() for entry in r.published)
    family = HARD.get(instance.source.removeprefix("family/")) if instance.source.startswith("family/") else None
    best = answer(family, instance, row.problem) if family else row.best_objective
    said, _, why = instance.title.rpartition("ratio at least ")[2].partition("; ")
    assert row.replace(best_objective=best).ratio_at_least == pytest.approx(float(said), rel=1e-5)
    assert why
