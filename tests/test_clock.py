"""Searches count seconds of computing, so a busy machine gives them the same work, and results say that it was busy."""

from __future__ import annotations

import math
import re
import time

import pytest

from schedgap import instances
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.page.compare import headline
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances import clock


class Machine:
    """Fake clocks of a process that gets only a `share` of a core; each look at a clock takes a tick of computing."""

    TICK_S = 1e-3

    def __init__(self, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.computed_s, self.share = 0.0, share
        monkeypatch.setattr(time, "perf_counter", lambda: self.ticked() / self.share)
        monkeypatch.setattr(time, "process_time", self.ticked)

    def ticked(self) -> float:
        self.computed_s += self.TICK_S
        return self.computed_s


@pytest.mark.parametrize(
    ("wall_s", "computed_s", "spent_s", "share"),
    [
        (6.0, 6.0, 6.0, 1.0),  # alone on a core
        (6.0, 3.0, 3.0, 0.5),  # beside another program
        (6.0, 1.0, 2.0, 1 / 6),  # starved: three times the limit is the most
        (6.0, 18.0, 6.0, 1.0),  # several threads, or several searches in a process
    ],
)
def test_seconds_of_computing_lie_between_a_third_of_the_time_and_all_of_it(
    wall_s: float, computed_s: float, spent_s: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = [0.0, 0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: at[0])
    monkeypatch.setattr(time, "process_time", lambda: at[1])
    limited, endless = clock.Budget(10.0), clock.Budget()
    assert (limited.spent_s, limited.left_s, limited.left_wall_s, limited.core_share) == (0.0, 10.0, 10.0, 1.0)
    at[:] = wall_s, computed_s
    assert limited.wall_s == pytest.approx(wall_s)
    assert limited.spent_s == endless.spent_s == pytest.approx(spent_s)
    assert limited.left_s == pytest.approx(10 - spent_s)
    assert endless.left_s == endless.left_wall_s == math.inf
    assert limited.core_share == pytest.approx(share)
    settled = clock.SETTLED_S
    assert limited.left_wall_s == pytest.approx((10 - spent_s) * (wall_s + settled) / (spent_s + settled))


def test_compiling_takes_no_time_on_either_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [0.0]
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(time, name, lambda: at[0])
    monkeypatch.setattr(clock, "_COMPILING", compiling := clock._Still())
    budget = clock.Budget(10.0)
    compiling.on_start()
    at[0] = 5.0
    assert budget.wall_s == budget.spent_s == 0
    compiling.on_end()
    at[0] = 6.0
    assert budget.wall_s == budget.spent_s == 1


@pytest.mark.parametrize("method", ["hadar.p2.columns", "zhou.ps.columns"])
def test_a_search_on_half_a_core_does_the_same_and_says_so(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instances.load("gen/20jobs")
    limits = Limits(time_limit_s=0.4, rel_gap=0.0)
    task = MethodTask(*sent(instance), method, limits=limits)
    found = {}
    for share in (1.0, 0.5):
        Machine(share, monkeypatch)
        found[share] = task.run().row
    alone, beside = found[1.0], found[0.5]
    assert alone.status == beside.status == "time limit with incumbent"
    for name in ("objective", "claimed_bound", "termination", "nodes", "iterations"):
        assert getattr(alone, name) == getattr(beside, name)
    assert alone.core_share == pytest.approx(1.0)
    assert beside.core_share == pytest.approx(0.5, rel=0.1)
    run = Comparison({}, [beside], {instance.fingerprint: instance})
    assert re.search(r"Searches had [45]\d % of a core; a quieter machine gives smaller gaps\.", headline(run))
    assert "of a core" not in headline(Comparison({}, [alone], {instance.fingerprint: instance}))
