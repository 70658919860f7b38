"""Searches share the time of a run: each asks for more seconds, and the one with the most promising gap gets them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.engine import pacing
from schedgap.harness.engine.pacing import GOOD, LEAST_S, MOST_S, RESERVE, Asking, Pacer
from schedgap.harness.engine.pool import Pool, Worker
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.methods import select, starts_from_decisions
from schedgap.harness.studies.compare.run import RUN_S, SEARCHES_S, plan
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances import clock, load, plugins
from schedgap.instances.errors import UsageError
from schedgap.instances.views.oef import Allocation
from schedgap.models import MODELS


def test_the_largest_gap_that_falls_goes_on() -> None:
    pacer = Pacer()
    for key, gaps in {"a": [0.5, 0.4], "b": [0.9, 0.899], "c": [0.3], "d": [math.inf, math.inf]}.items():
        for gap in gaps:
            pacer.note(key, gap)
    assert pacer.next(["a", "b", "c"]) == "a"
    assert pacer.next(["b", "c"]) == "c"  # b has stalled
    assert pacer.next(["a", "b", "c", "d"]) == "d"  # has no schedule at all


def test_a_search_that_has_had_many_seconds_lets_others_go_on() -> None:
    pacer = Pacer()
    for key, gap in {"a": GOOD + 0.02, "b": GOOD + 0.005}.items():
        pacer.note(key, gap)
    assert pacer.next(["a", "b"]) == "a"
    pacer.given_s["a"] = 4 * MOST_S  # five times as many as the other one, for four times the distance
    assert pacer.next(["a", "b"]) == "b"


def test_seconds_end_with_the_time_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pacer = Pacer(now[0])
    for key, gap in {"a": GOOD + 0.03, "b": GOOD + 0.01, "c": GOOD, "d": math.inf}.items():
        pacer.note(key, gap)
    left_s = (1 - RESERVE) * 60.0

    def given(key: str, others: list[str], workers: int) -> float:
        pacer.given_s.clear()
        pacer.until.clear()
        return pacer.seconds(key, 60.0, others, workers)

    assert given("a", ["b"], workers=1) == pytest.approx(left_s * 3 / 4)
    assert given("b", ["a"], workers=1) == pytest.approx(left_s / 4)
    assert given("a", ["unknown"], workers=1) == pytest.approx(left_s / 2)
    assert given("a", [], workers=2) == pytest.approx(left_s)  # no search uses two processors
    assert given("c", ["a", "d"], workers=2) == LEAST_S
    now[0] += left_s - 1.5
    assert given("a", [], workers=2) == pytest.approx(1.5)
    now[0] += 1.0
    assert given("a", [], workers=2) == 0.0
    now[0] += 1000.0
    assert given("a", [], workers=2) == 0.0


def test_what_searches_at_work_were_given_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pacer, left_s = Pacer(0.0), (1 - RESERVE) * 60.0
    for key, gap in {"a": GOOD + 0.02, "b": GOOD + 0.01}.items():
        pacer.note(key, gap)
    first = pacer.seconds("a", 60.0, ["b"], workers=2)
    assert first == pytest.approx(left_s)  # two thirds of what two processors have is more than one has
    assert pacer.seconds("b", 60.0, ["a"], workers=2) == pytest.approx(left_s)
    now[0] += left_s / 2
    pacer.note("b", GOOD + 0.01)
    pacer.until["b"] = now[0]
    # The rest is that of one processor. Both are waiting for it again, and b has had less than it needed.
    assert pacer.seconds("b", 60.0, ["a"], workers=2) == pytest.approx(left_s / 2)


def test_the_time_of_the_run_stands_still_while_any_worker_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pacer = Pacer(now[0])
    for at, key, begins in ((10, "a", True), (20, "b", True), (30, "a", False), (50, "b", False), (60, "c", False)):
        now[0] = at
        pacer.compiles(key, begins)
    assert pacer.began == 40.0  # from 10 to 50


def test_without_a_pool_there_are_no_more_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_asks", [])
    assert pacing.more(0.5) == 0.0


def test_the_clock_stands_still_while_a_search_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [10.0]
    monkeypatch.setattr(
        clock, "time", SimpleNamespace(perf_counter=lambda: seconds[0], process_time=lambda: seconds[0])
    )
    budget = clock.Budget(5.0)

    def ask(news: Asking) -> float:
        assert news == Asking(0.25)
        seconds[0] += 100.0
        return 3.0

    monkeypatch.setattr(pacing, "_asks", [ask])
    seconds[0] += 2.0
    assert pacing.more(0.25) == 3.0
    assert (budget.wall_s, budget.spent_s, budget.left_s) == pytest.approx((2.0, 2.0, 3.0))
    seconds[0] += 4.0
    budget.extend(3.0)
    assert budget.left_s == pytest.approx(3.0)  # the second by which it was late is forgotten


@pytest.fixture
def asking() -> Iterator[None]:
    """Register a heuristic that asks for more seconds until it gets none; its allocation tells how often it got any."""

    @sg.heuristic("oef.asking")
    def asks(view: Any, context: Any) -> Any:
        gap, granted = 0.5, 0
        while pacing.more(gap) > 0:
            gap, granted = gap / 2, granted + 1
        return Allocation(np.full((view.size, len(view.capacity)), granted / 100))

    yield
    plugins.restore(())


def searches(count: int, run_s: float) -> list[MethodTask]:
    one = load("paper/oef-eq1")
    task = MethodTask(*sent(one), "oef.asking", limits=Limits(run_s=run_s))
    return [replace(task, seed=seed) for seed in range(count)]


@pytest.mark.usefixtures("asking")
def test_a_worker_that_asks_leaves_its_processor_to_others() -> None:
    heard: list[tuple[int, float]] = []
    with closing(Pool(1, progress=lambda task, gap: heard.append((task.seed, gap)))) as pool:
        rows = [result.row for result in pool.run(searches(3, run_s=1e-9))]
    assert heard == [(0, 0.5), (1, 0.5), (2, 0.5)]  # all had begun before the first was answered
    assert [row.status for row in rows] == ["feasible"] * 3


@pytest.mark.usefixtures("asking")
def test_searches_go_on_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([2.0, 2.0, 2.0, 0.0, 0.0])
    monkeypatch.setattr(Pacer, "seconds", lambda *_: next(answers))
    with closing(Pool(1)) as pool:
        decisions = [result.decision for result in pool.run(searches(2, run_s=60.0))]
    assert sorted(float(decision.devices.max()) for decision in decisions) == [0.01, 0.02]


@pytest.mark.usefixtures("asking")
def test_the_time_limit_of_a_worker_grows_by_what_it_is_given() -> None:
    (task,) = searches(1, run_s=60.0)
    worker = Worker("schedgap.harness.studies.compare.task", 1, plugins.loaded())
    worker.give(task)
    until = worker.until
    while not isinstance(worker.news(), Asking):
        worker.pipe.poll(1.0)
    assert worker.left_s == math.inf
    worker.grant(2.0)
    assert worker.until >= until + 2.0 * (clock.STRETCH + 1)
    assert float(worker.finish().decision.devices.max()) == 0.01  # where nobody shares time, nobody gets more
    worker.stop()


@pytest.mark.parametrize("method", ["zhou.ps.columns", "hadar.p2.columns", "hadar.p2.columns.complete"])
def test_a_search_goes_on_with_what_it_has_found(method: str) -> None:
    gaps: list[float] = []

    def more(gap: float) -> float:
        gaps.append(gap)
        return 0.3 if len(gaps) < 3 else 0.0

    solution = MODELS.get(method).solve(load("gen/20jobs"), time_limit_s=0.3, rel_gap=0.0, more=more)
    assert solution.objective is not None
    assert gaps == sorted(gaps, reverse=True)
    # A search that closes its gap up to rounding is asked no more.
    assert len(gaps) == 3 or (solution.gap or 0.0) < 1e-6


def test_a_gap_that_is_good_enough_ends_a_search_after_its_first_seconds() -> None:
    gaps: list[float] = []
    model = MODELS.get("hadar.p2.columns")
    solution = model.solve(load("gen/20jobs"), time_limit_s=0.3, rel_gap=0.0, more=gaps.append, enough=1e9)
    assert gaps == []
    assert solution.status == "time limit with incumbent"


def test_a_gap_within_the_options_is_no_optimum() -> None:
    solution = MODELS.get("hadar.p2.columns").solve(load("gen/20jobs"), time_limit_s=20.0, rel_gap=0.5, nodes=5)
    assert solution.status == "gap left"


@pytest.mark.parametrize("run_s", [0.0, -1.0, math.inf, math.nan])
def test_a_run_takes_a_positive_number_of_seconds(run_s: float) -> None:
    with pytest.raises(UsageError, match=r"time of a run = .* s: must be a positive number of seconds"):
        Limits(run_s=run_s)


def test_searches_share_the_minute_of_a_run() -> None:
    one, two = load("gen/20jobs"), load("gen/20jobs?seed=1")
    chosen = select(["zhou.*"], ())
    count = sum(map(starts_from_decisions, chosen))
    tasks = plan([one, two], chosen, [0], {"": Limits(run_s=RUN_S)})
    limits = {task.limits for task in tasks if task.limits.run_s is not None}
    assert limits == {Limits(time_limit_s=min(max(RUN_S / 2 / count, LEAST_S), MOST_S), run_s=2 * RUN_S)}
    assert {task.limits for task in tasks if task.limits.run_s is None} == {Limits()}
    set_by_user = plan([one], chosen, [0], {"": Limits(time_limit_s=3.0, run_s=RUN_S)})
    assert {task.limits for task in set_by_user} == {Limits(time_limit_s=3.0)}


def test_the_command_says_what_runs_and_for_how_long(command: Command) -> None:
    words = ("compare", "--instance", "paper/hadar-fig1", "--method", "hadar.p2.columns", "--method", "hadar.fifo")
    words += ("--no-report",)
    run = command(*words)
    assert run.returncode == 0, run.stderr
    first = f"2 methods on paper/hadar-fig1; those that search end at a gap of {100 * GOOD:.0f} %, or when 60 s have"
    assert run.stderr.startswith(f"{first} passed (--quick: {SEARCHES_S:g} s for all searches)\n")
    quick = command(*words, "--quick")
    assert "those that search" not in quick.stderr


def test_the_command_of_a_run_repeats_how_long_searches_had() -> None:
    run = sg.compare("gen/20jobs", "hadar.fifo", bound=False)
    assert "--quick" in run.meta["command"]
    given = sg.compare("gen/20jobs", "hadar.fifo", limits=Limits(time_limit_s=3.0), bound=False)
    assert "--quick" not in given.meta["command"]
