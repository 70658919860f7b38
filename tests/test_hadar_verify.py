"""The checker of Hadar's schedules finds every broken rule, and computes utility, rounds and GPUs itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hadar_reference import fifo, instances_of, linear, with_long_horizon
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_schedules import CHANGES

from schedgap import instances
from schedgap.harness.check import Verdict, judge
from schedgap.heuristics.hadar import slotted
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import HadarSchedule, HadarView

FIG1 = hadar.view(instances.load("paper/hadar-fig1"))
V100, P100, K80 = range(3)
GOOD = [
    *[(0, t, h, n) for t in (0, 1, 2) for h, n in ((V100, 2), (K80, 1))],  # J1: 30 epochs a round
    *[(1, t, P100, 2) for t in (0, 1)],  # J2: 15
    *[(2, t, V100, 2) for t in range(3, 8)],  # J3: 10
]
"""A valid schedule of Fig. 1, in which J1 ends after 3 rounds, J2 after 2, and J3 after 8."""


def check(entries: Any, problem: str = "hadar.utility", view: HadarView = FIG1) -> Verdict:
    decision = entries if isinstance(entries, HadarSchedule) else HadarSchedule.of(np.array(entries, np.int64))
    return judge(view.instance, decision, problem, ())


def test_a_good_schedule_is_verified_and_measured() -> None:
    verdict = check(GOOD, "hadar.complete")
    assert not verdict.violations
    assert verdict.objective == pytest.approx(80 / 3 + 30 / 2 + 50 / 8)
    assert verdict.metrics["completed"] == 3
    assert verdict.metrics["rejected"] == 0
    assert verdict.metrics["ttd_rounds"] == verdict.quantities["ttd_rounds"] == 8
    assert verdict.metrics["mean_completion_slots"] == pytest.approx(13 / 3)
    assert verdict.metrics["gru"] == pytest.approx((9 + 4 + 10) / 48)
    assert verdict.metrics["busy_servers"] == pytest.approx((6 + 2 + 5) / 24)
    assert verdict.quantities["completion_slots"].tolist() == [3, 2, 8]


def test_the_order_of_entries_does_not_matter() -> None:
    assert check(GOOD[::-1]).objective == check(GOOD).objective


def test_nothing_is_a_schedule_of_utility_problems_only() -> None:
    empty = HadarSchedule.of(np.zeros((0, 4), np.int64))
    for problem in ("hadar.utility", "hadar.forked"):
        verdict = check(empty, problem)
        assert verdict.objective == 0
        assert not verdict.violations
        assert verdict.quantities["completion_slots"].tolist() == [0, 0, 0]
    assert "J1 is rejected (and 2 more)" in check(empty, "hadar.complete").violations[0]


def test_a_rejected_job_counts_nothing() -> None:
    without = [entry for entry in GOOD if entry[0] != 2]
    assert check(without).objective == pytest.approx(80 / 3 + 30 / 2)
    assert check(without).metrics["rejected"] == 1
    assert "J3 is rejected, but" in check(without, "hadar.complete").violations[0]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(0, 0, V100, 2), *GOOD[2:]], "J1 in slot 0: 2 GPUs, its gang needs all 3 or none"),
        (GOOD[2:], "J1 does 60 of its 80 iterations; a job that appears completes"),
        ([*GOOD, (2, 0, V100, 2)], "slot 0: 4 GPUs of server V100 host given out, 2 available"),
        ([*GOOD, (1, 1, P100, 2)], "J2 in slot 1: server P100 host occurs twice"),
        ([*GOOD, (1, 2, P100, 4)], "J2 in slot 2: 4 GPUs of server P100 host, an entry has 1 to 3"),
        ([*GOOD, (1, 2, P100, 0)], "an entry has 1 to 3"),
        ([*GOOD, (1, 2, P100, -2)], "an entry has 1 to 3"),
        ([*GOOD, (3, 2, P100, 2)], "job 3: they go from 0 to 2"),
        ([*GOOD, (1, 8, P100, 2)], "slot 8: they go from 0 to 7"),
        ([*GOOD, (1, -1, P100, 2)], "slot -1: they go from 0 to 7"),
        ([*GOOD, (1, 2, 3, 2)], "server 3: they go from 0 to 2"),
        ([*GOOD, (1, 2, 2**62, 2)], "they go from 0 to 2"),
    ],
)
def test_each_broken_rule_is_named(entries: Any, message: str) -> None:
    assert any(message in line for line in check(entries).violations)


def test_arrivals_and_types_without_rate_are_respected() -> None:
    jobs = [{"gpus": 2, "epochs": 2, "rates": {"a": 1.0}, "submit_s": 0.5}]
    view = hadar.view(linear(jobs, {"a": 2, "b": 2}, slots=3))
    assert not check([(0, 1, 0, 2)], view=view).violations
    assert check([(0, 1, 0, 2)], view=view).metrics["ttd_rounds"] == 1
    early = check([(0, 0, 0, 2)], view=view)
    assert early.violations == ("J0 in slot 0: runs before its arrival in slot 1",)
    assert any("cannot run on" in line for line in check([(0, 1, 0, 1), (0, 1, 1, 1)], view=view).violations)
    assert any("cannot run on" in line for line in check([(0, 1, 1, 2)], "hadar.forked", view).violations)


def test_a_mixed_gang_advances_at_its_slowest_type() -> None:
    jobs = [{"gpus": 2, "epochs": 4, "rates": {"a": 3.0, "b": 1.0}}]
    view = hadar.view(linear(jobs, {"a": 1, "b": 1}, slots=2))
    assert any("does 2 of its 4" in line for line in check([(0, 0, 0, 1), (0, 0, 1, 1)], view=view).violations)
    assert not check([(0, t, h, 1) for t in (0, 1) for h in (0, 1)], view=view).violations


def test_copies_advance_on_their_own() -> None:
    jobs = [{"gpus": 2, "epochs": 4, "rates": {"a": 3.0, "b": 1.0}}]
    view = hadar.view(linear(jobs, {"a": 3, "b": 2}, slots=2))
    both = [(0, 0, 0, 1), (0, 0, 1, 1)]
    assert check(both, "hadar.forked", view).objective == pytest.approx(4.0)
    assert not check(both, "hadar.forked", view).violations
    assert check(both, "hadar.utility", view).violations
    # Four GPUs on two servers are two copies; three on one server are more than a gang.
    assert not check([(0, 0, 0, 2), (0, 0, 1, 2)], "hadar.forked", view).violations
    assert "a copy of 3 GPUs, its gang has 2" in check([(0, 0, 0, 3)], "hadar.forked", view).violations[0]
    assert "does 3 of its 4" in check([(0, 0, 0, 1)], "hadar.forked", view).violations[0]


def test_rounding_of_work_is_forgiven_and_no_more() -> None:
    def slots_of(slot_s: float) -> HadarView:
        return hadar.view(linear([{"gpus": 1, "epochs": 3, "rates": {"a": 0.1}}], {"a": 1}, slots=40, slot_s=slot_s))

    all_of_it = [(0, t, 0, 1) for t in range(30)]
    assert not check(all_of_it, view=slots_of(1.0)).violations
    assert check(all_of_it[:-1], view=slots_of(1.0)).violations
    for less in (1e-7, 5e-9):  # certificates forgive 1e-9
        assert check(all_of_it, view=slots_of(1 - less)).violations


def test_small_integers_do_not_overflow() -> None:
    view = hadar.view(linear([{"gpus": 1, "epochs": 1, "rates": {"a": 1.0}}], {"a": 1}, slots=300))
    last = HadarSchedule(*(np.array([n], np.uint8) for n in (0, 255, 0, 1)))
    verdict = judge(view.instance, last, "gavel.makespan", ())
    assert verdict.objective == 256


@pytest.mark.parametrize("field", ["job", "slot", "server", "gpus"])
@pytest.mark.parametrize("change", CHANGES)
def test_mutilated_arrays_are_refused_and_never_raise(field: str, change: Any) -> None:
    good = HadarSchedule.of(np.array(GOOD, np.int64))
    wrong = replace(good, **{field: change(getattr(good, field))})
    for problem in ("hadar.utility", "hadar.forked", "hadar.complete"):
        assert check(wrong, problem).violations


@st.composite
def schedules_of(draw: st.DrawFn) -> tuple[HadarView, list[tuple[int, ...]]]:
    """Draw a tiny instance and its first-come-first-served schedule, with up to two entries changed or added."""
    view = hadar.view(with_long_horizon(draw(instances_of())))
    good = slotted.schedule(view, fifo)
    entries = [tuple(row) for row in np.column_stack((good.job, good.slot, good.server, good.gpus)).tolist()]
    sizes = (view.size - 1, view.slots - 1, view.servers.size - 1)
    entry = st.tuples(*(st.integers(0, size) for size in sizes), st.integers(1, 3))
    for new in draw(st.lists(entry, max_size=2)):
        place = draw(st.integers(0, len(entries)))
        entries[place : place + draw(st.integers(0, 1))] = [new] if draw(st.booleans()) else []
    return view, entries


@given(schedules_of(), st.sampled_from(("hadar.utility", "hadar.forked", "hadar.complete")))
@settings(max_examples=100)
def test_the_checker_agrees_with_a_plain_reading_of_the_rules(
    drawn: tuple[HadarView, list[tuple[int, ...]]], problem: str
) -> None:
    view, entries = drawn
    verdict = check(np.array(entries, np.int64).reshape(-1, 4), problem, view)
    assert bool(verdict.violations) == (not plainly_valid(view, entries, problem))


def plainly_valid(view: HadarView, entries: list[tuple[int, ...]], problem: str) -> bool:
    """Return whether the entries of a schedule obey the rules, checked one after another."""
    used: Counter[tuple[int, int]] = Counter()
    held: dict[tuple[int, int], list[tuple[float, int]]] = {}
    valid = len({entry[:3] for entry in entries}) == len(entries)
    for job, slot, server, gpus in entries:
        used[slot, server] += gpus
        rate = view.workload.rates[job, view.servers.gpu_type[server]]
        held.setdefault((job, slot), []).append((rate, gpus))
        valid &= slot >= view.arrival[job] and rate > 0 and used[slot, server] <= view.servers.gpus[server]
    done: defaultdict[int, float] = defaultdict(float)
    for (job, _), parts in held.items():
        gang = view.workload.gpus[job]
        if problem == "hadar.forked":
            valid &= all(gpus <= gang for _, gpus in parts)
            done[job] += sum(rate * gpus for rate, gpus in parts) * view.slot_s
        else:
            valid &= sum(gpus for _, gpus in parts) == gang
            done[job] += gang * min(rate for rate, _ in parts) * view.slot_s
    valid &= problem != "hadar.complete" or len(done) == view.size
    return bool(valid and all(done[job] >= view.workload.work[job] for job in done))
