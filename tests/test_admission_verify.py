"""The checker of admission finds every broken rule, and computes utilities itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import moldable_schedules as schedules
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_schedules import CHANGES, Row, admitted, arrays_of
from scipy.special import expit

from schedgap import instances
from schedgap.certificates.reading.admission import admission_of
from schedgap.harness.check import Verdict, judge
from schedgap.instances.canonical import validate
from schedgap.instances.moldable import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views import admission
from schedgap.instances.views.admission import AdmissionView

WALK = admission.view(instances.load("paper/walkthrough"))
GENERATED = admission.view(instances.load("gen/20jobs"))

PRINTED: list[Row] = [
    (0, 4, 2, 0, 0, [(0, 2, 1)]),
    (1, 6, 2, 0, 0, [(0, 2, 1)]),
    (2, 4, 4, 0, 0, [(2, 2, 1), (3, 1, 0)]),
]
"""The schedule that the walk-through prints in part 3; a run is given by start and number of slots."""

BEST: list[Row] = [
    (0, 4, 2, 0, 0, [(0, 2, 1)]),
    (1, 4, 2, 0, 0, [(1, 2, 1)]),
    (2, 4, 3, 0, 0, [(2, 2, 1)]),
]
"""A schedule in which all three jobs run at the same time, which the text calls impossible."""


def decision(rows: list[Row]) -> Runs:
    return Runs(*arrays_of(rows))


def check(rows: Any, problem: str = "utility", view: AdmissionView = WALK) -> Verdict:
    made = rows if isinstance(rows, Runs) else decision(rows)
    return judge(view.instance, made, f"admission.{problem}", ())


def changed(i: int, **new: Any) -> list[Row]:
    return schedules.changed(i, PRINTED, **new)


def f(slots: int) -> float:
    return 300 * float(expit(-0.02 * slots))


def test_the_printed_schedule_and_a_better_one() -> None:
    printed, best = check(PRINTED), check(BEST)
    assert not printed.violations
    assert not best.violations
    assert printed.objective == pytest.approx(f(3) + 2 * f(5))
    assert printed.objective == pytest.approx(430.51, abs=0.005)
    assert best.objective == pytest.approx(435.0058969816794, rel=1e-12)
    assert printed.metrics == {"admitted": 3, "rejected": 0, "colocated": 2}
    assert best.metrics["colocated"] == 3
    assert best.quantities["completion"].tolist() == [6, 6, 7]


def test_the_arrival_slot_is_used_where_the_problem_says_so() -> None:
    earlier = [(j, start - 1, *rest) for j, start, *rest in BEST]
    assert check(earlier, "from_arrival").objective == pytest.approx(439.50, abs=0.005)
    assert not check(earlier, "from_arrival").violations
    assert check(earlier).violations == ("j1 from slot 3: starts too early, its first possible slot is 4",)
    assert check([(0, 2, 2, 0, 0, [(0, 2, 1)])], "from_arrival").violations


def test_everybody_may_be_rejected() -> None:
    verdict = check([])
    assert verdict.objective == 0
    assert not verdict.violations
    assert verdict.metrics == {"admitted": 0, "rejected": 3, "colocated": 0}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*PRINTED, (0, 6, 2, 0, 0, [(1, 2, 1)])], "j1: 2 runs"),
        (changed(1, start=7), "j2 from slot 7: completes at 9, after its deadline 8"),
        (changed(0, slots=1), "j1 does 2 of its 4 mini-batches"),
        (changed(2, at=[(2, 1, 1), (3, 1, 0)]), "j3 does 4 of its 6"),  # apart: half a mini-batch per slot
        (changed(0, slots=3, at=[(0, 1, 1), (1, 1, 0)]), "j1 does 3 of its 4"),
        (changed(0, at=[(0, 2, 1), (1, 1, 0)]), "j1 from slot 4: 3 workers, at most 2"),
        (changed(0, at=[(0, 2, 0)]), "j1 from slot 4: no parameter server"),
        (changed(0, at=[(0, 0, 1)]), "j1 from slot 4: no workers"),
        (changed(0, slots=4, at=[(0, 0, 1), (1, 2, 0)]), "carry 1 Gbit/s, workers elsewhere send 2"),
        (changed(1, start=5), "slot 5: 4 worker of server.0 given out, 2 available"),
        (changed(0, slots=4, at=[(0, 0, 2), (1, 2, 0)]), "slot 4: 2 PS of server.0 given out, 1 available"),
        (changed(0, start=-1), "start -1: they go from 0"),
        (changed(0, job=3), "job 3: they go from 0 to 2"),
        (changed(0, worker_type=1), "worker_type 1: it is 0"),
        (changed(0, ps_type=-1), "ps_type -1: it is 0"),
        (changed(0, at=[(4, 2, 1)]), "server 4: they go from 0 to 3"),
        (changed(0, at=[(0, 2, 1), (0, 2, 1)]), "run 0: server 0 occurs twice"),
        (changed(0, start=2**50), "they go from 0"),
    ],
)
def test_each_broken_rule_is_named(rows: list[Row], message: str) -> None:
    violations = check(rows).violations
    assert any(message in line for line in violations), violations


@pytest.mark.parametrize("field", list(Runs.__dataclass_fields__))
@pytest.mark.parametrize("change", CHANGES)
def test_mutilated_arrays_are_refused_and_never_raise(field: str, change: Any) -> None:
    for view, good in ((WALK, decision(PRINTED)), (GENERATED, admitted(GENERATED))):
        for problem in ("utility", "from_arrival"):
            assert not check(good, problem, view).violations
            wrong = replace(good, **{field: change(getattr(good, field))})
            assert check(wrong, problem, view).violations


# generated instances ------------------------------------------------------------------------------


def small(jobs: list[dict[str, Any]], **more: Any) -> Instance:
    """Return an instance with two GPU types, two worker types for one of them, and slots of 10 seconds."""
    group = {"gpu_type": "a", "gpus": 5, "ps_slots": 2, "count": 2}
    content = {
        "name": "small",
        "cluster": {
            "gpu_types": [{"name": "a"}, {"name": "b"}],
            "servers": [{"name": "s", **group}, {"name": "t", **group, "gpu_type": "b", "gpus": 1, "count": 1}],
        },
        "worker_types": [
            {"name": "large", "gpu_type": "a", "gpus": 4, "bandwidth_gbps": 2.0},
            {"name": "pair", "gpu_type": "a", "gpus": 2, "bandwidth_gbps": 1.0},
            {"name": "one", "gpu_type": "b", "gpus": 1, "bandwidth_gbps": 1.0},
        ],
        "ps_types": [{"name": "p", "bandwidth_gbps": 1.0}, {"name": "q", "bandwidth_gbps": 2.0}],
        "horizon": {"slot_s": 10.0, "slots": 12},
        "jobs": [{"id": f"J{i}", "gpus": 1, "epochs": 1, **job} for i, job in enumerate(jobs)],
    }
    return validate(content | more, "small")


def test_workers_are_those_of_fewest_gpus() -> None:
    view = admission.view(small([{"chunks": 6, "rates": {"a": 0.5, "b": 0.25}}]))
    assert view.machines.worker_types == ("pair", "one")
    # Two pairs fit on five GPUs; a pair does two GPUs' iterations: 1 per second, 10 per slot.
    assert not check([(0, 1, 1, 0, 0, [(1, 1, 1)])], view=view).violations
    assert not check([(0, 1, 3, 1, 0, [(2, 1, 1)])], view=view).violations
    assert any("does 5 of its 6" in x for x in check([(0, 1, 2, 1, 0, [(2, 1, 1)])], view=view).violations)
    assert any("3 pair of s.1 given out, 2" in x for x in check([(0, 1, 1, 0, 0, [(1, 3, 1)])], view=view).violations)
    # The PS type is the one of 2 Gbit/s, so one carries two workers elsewhere.
    apart = [(0, 1, 1, 0, 0, [(0, 2, 0), (1, 0, 1)])]
    assert not check(apart, view=view).violations
    wrong = check([(0, 1, 1, 0, 0, [(2, 1, 1)])], view=view).violations
    assert any("workers of type pair on t, of another GPU type" in line for line in wrong)


UTILITIES = [
    {"kind": "effective_throughput"},
    {"kind": "normalised"},
    {"kind": "sigmoid", "amplitude": 3.0, "steepness_per_s": 0.1, "midpoint_s": 40.0},
    {"kind": "sigmoid", "amplitude": 3.0, "steepness_per_s": 100.0, "midpoint_s": 40.0},
    {"kind": "linear_deadline", "amplitude": 2.0},
    {"kind": "linear_deadline", "amplitude": 2.0, "grace_s": 35.0},
    {"kind": "constant", "amplitude": 5.0},
]


@pytest.mark.parametrize("kind", UTILITIES, ids=lambda u: "-".join(map(str, u.values())))
@pytest.mark.parametrize("deadline_s", [None, 47.0])
def test_utilities_are_those_of_the_view(kind: dict[str, Any], deadline_s: float | None) -> None:
    job = {"submit_s": 3.0, "utility": kind, "rates": {"a": 0.5}, "chunks": 3, "deadline_s": deadline_s}
    view = admission.view(small([job]))
    read, worth = admission_of(view.instance.plain), view.utility(0)
    assert read.deadline.tolist() == view.deadline.tolist() == [12 if deadline_s is None else 4]
    for t in range(2, int(view.deadline[0]) + 1):
        assert read.utilities.value(0, 10.0 * t - 10.0) == pytest.approx(worth[t], rel=1e-9, abs=1e-300)


def test_a_deadline_at_the_end_of_a_slot_counts() -> None:
    view = admission.view(small([{"deadline_s": 30.0, "rates": {"a": 0.5}}, {"deadline_s": 29.9, "rates": {"a": 0.5}}]))
    assert admission_of(view.instance.plain).deadline.tolist() == [3, 2]
    assert admission_of(GENERATED.instance.plain).deadline.tolist() == GENERATED.deadline.tolist()


@st.composite
def decisions(draw: st.DrawFn) -> tuple[AdmissionView, list[Row]]:
    """Draw a small instance and a decision that admits jobs, with up to two numbers changed."""
    pick = lambda *among: draw(st.sampled_from(among))  # noqa: E731
    jobs = [
        {
            "submit_s": pick(0.0, 5.0, 10.0),
            "chunks": pick(1, 2, 4),
            "epochs": pick(1, 10, 20),
            "deadline_s": pick(None, 60.0, 119.0),
            "rates": pick({"a": 0.5}, {"a": 0.5, "b": 0.3}, {"b": 1.0}),
            "distributed": pick(None, {"gradient_mb": 62.5}, {"colocated_rate_per_s": 1.0, "spread_rate_per_s": 0.5}),
        }
        for _ in range(draw(st.integers(1, 4)))
    ]
    view = admission.view(small(jobs))
    good = admitted(view, draw(st.permutations(range(view.size))), first=draw(st.integers(0, 1)))
    runs = np.column_stack((good.job, good.start, good.slots, good.worker_type, good.ps_type)).tolist()
    entries = np.column_stack((good.run, good.server, good.workers, good.ps)).tolist()
    for _ in range(draw(st.integers(0, 2)) if runs else 0):
        table = pick(runs, entries)
        row, step = pick(*table), pick(-1, 1)
        row[draw(st.integers(0 if table is runs else 1, len(row) - 1))] += step
    return view, [(*run, [(h, w, s) for i, h, w, s in entries if i == r]) for r, run in enumerate(runs)]


@given(decisions(), st.sampled_from(("utility", "from_arrival")))
@settings(max_examples=150)
def test_the_checker_agrees_with_a_plain_reading_of_the_rules(
    drawn: tuple[AdmissionView, list[Row]], problem: str
) -> None:
    view, rows = drawn
    verdict = check(rows, problem, view)
    assert bool(verdict.violations) == (not plainly_valid(view, rows, problem)), verdict.violations
    if not verdict.violations:
        assert verdict.objective == pytest.approx(sum(view.utility(row[0])[row[1] + row[2]] for row in rows))


def plainly_valid(view: AdmissionView, rows: list[Row], problem: str) -> bool:
    """Return whether rows obey the rules, checked run by run and slot by slot."""
    workers: Counter[tuple[int, int]] = Counter()
    servers: Counter[tuple[int, int]] = Counter()
    for job, start, slots, m, p, at in rows:
        in_range = 0 <= job < view.size and m in (0, 1) and p == 0 and slots >= 1
        if not in_range or not all(0 <= h < 3 and w >= 0 and s >= 0 and w + s for h, w, s in at):
            return False
        given, total = view.instance.jobs[job], sum(w for _, w, _ in at)
        name = view.machines.worker_types[m]
        if any(w and (h == 2) != (name == "one") for h, w, _ in at) or not 1 <= total <= given.chunks:
            return False
        if not any(s for _, _, s in at) or any(s and total - w > 2 * s for _, w, s in at):
            return False
        first = np.ceil(given.submit_s / 10.0) + (problem == "utility")
        due = min(120.0, given.deadline_s or 120.0)
        if start < first or 10.0 * (start + slots) > due:
            return False
        if slots * total * pace(given, name, len(at) == 1) < given.iterations * (1 - 1e-9):
            return False
        for t in range(start, start + slots):
            for h, w, s in at:
                workers[h, t] += w
                servers[h, t] += s
    once = max(Counter(row[0] for row in rows).values(), default=0) <= 1
    fits = all(n <= (1 if h == 2 else 2) for (h, _), n in workers.items()) and max(servers.values(), default=0) <= 2
    return once and fits


def pace(job: Any, name: str, together: bool) -> float:
    """Return the mini-batches that one worker does in a slot of 10 seconds."""
    profile = job.distributed
    if profile and profile.colocated_rate_per_s:
        return 10.0 * (1.0 if together else 0.5)
    rate = job.rates.get("b", 0.0) if name == "one" else 2 * job.rates.get("a", 0.0)
    if not rate:
        return 0.0
    seconds = 1 / rate + (0.0 if together or not profile else 1.0)  # 62.5 MB both ways over 1 Gbit/s
    return 10.0 / seconds
