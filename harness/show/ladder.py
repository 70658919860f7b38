"""The ladder of a log: from what nobody can beat to what was executed, in a few rungs, with a name for every step.

All rungs are about the same jobs, by one objective, and about one class of schedules: those that interrupt no job or,
if the executed one does, also those that do. A rung is the best over a set of schedules, and each set is part of the
one before it, so that rungs are in order. The bound holds for all schedules; the best schedule found may be any of
them; online rules see no arrivals in advance, and know durations, the users' time limits, or neither; the last two
belong to those with perfect estimates, too, since limits may be lucky. The executed schedule is one of all schedules,
but not one of the rules that ran here: it may be better than all of these, and its step is then negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from schedgap.harness.check.rigid import metric
from schedgap.harness.show.text import clean
from schedgap.harness.show.waiting import ROUNDED
from schedgap.harness.studies.compare.row import Row, ratio
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.rigid import DURATIONS, LOGGED, knowledge
from schedgap.instances.parameters import base_id
from schedgap.instances.rigid import RigidView

BOUND, FOUND, PERFECT, LIMITS, EXECUTED = (
    "hindsight bound",
    "best schedule found",
    "online, perfect estimates",
    "online, users' limits",
    "as executed",
)
"""Rungs, from the lowest."""

STEPS = {
    FOUND: "open",
    PERFECT: "price of not knowing the future",
    LIMITS: "price of bad limits",
    EXECUTED: "price of the policy",
}
"""What each rung has above the one before."""

UNKNOWN = "price of policy and estimates"
"""The last step if no rule goes by time limits."""

WAITING = "waiting"
"""An objective of its own: time from submission to end, less the run time on the fastest type that the job may use."""


@dataclass(frozen=True)
class Rung:
    """A rung: its name, its value, the method that reaches it, and the step up to it."""

    name: str
    value: float
    by: str
    step: str = ""
    above: float | None = None


@dataclass(frozen=True)
class Ladder:
    """The rungs by one objective, from the lowest; `absent` says why there is none of the users' time limits."""

    objective: str
    rungs: tuple[Rung, ...]
    absent: str

    def rung(self, name: str) -> Rung | None:
        """Return the rung of a name, if it is there."""
        return next((rung for rung in self.rungs if rung.name == name), None)


@dataclass(frozen=True)
class Values:
    """Values of one objective with their methods: as executed, the best schedule found, and the bound."""

    objective: str
    executed: float | None
    best: float | None
    best_by: str
    bound: float | None
    bound_by: str

    @property
    def at_most(self) -> float | None:
        """Upper estimate of the ratio of the executed schedule to the optimum."""
        return None if self.executed is None or self.bound is None else ratio("min", self.executed, self.bound)

    @property
    def open(self) -> float | None:
        """Ratio of the best schedule found to the bound."""
        return None if self.best is None or self.bound is None else ratio("min", self.best, self.bound)


def executed(rows: Sequence[Row]) -> Row | None:
    """Return the row of the executed schedule, if it is verified."""
    return next((row for row in rows if base_id(row.method) in LOGGED and row.verified), None)


def schedules(rows: Sequence[Row], objective: str) -> list[tuple[float, Row]]:
    """Return the verified schedules of the class of the executed one, with their values."""
    ran, name = executed(rows), metric(counted(objective))
    interrupting = ran is not None and ran.problem.endswith(".preemptive")
    decided = [row for row in rows if row.verified and row.metrics.get(name) is not None]
    fitting = [row for row in decided if interrupting or not row.problem.endswith(".preemptive")]
    return [(float(row.metrics[name] or 0.0), row) for row in fitting]


def counted(objective: str) -> str:
    """Return the objective that the checker measures: waiting differs from the time to completion by a constant."""
    return "flow" if objective == WAITING else objective


def values(view: RigidView, rows: Sequence[Row], objective: str) -> Values:
    """Return the values of one objective, or of :data:`WAITING`."""
    ran, problem = executed(rows), f"rigid.{counted(objective)}"
    # A bound on schedules without interruptions says nothing about an executed schedule that has some.
    problems = {f"{problem}.preemptive"} | (
        {problem} if ran is None or not ran.problem.endswith(".preemptive") else set()
    )
    valid = [row for row in rows if row.verified is not False and row.problem in problems]
    bounds = [(row.own_bound, clean(row.method, 60)) for row in valid if row.own_bound is not None]
    found = schedules(rows, objective)
    best, by = min(((value, clean(row.method, 60)) for value, row in found), default=(None, ""))
    bound, model = max(bounds, default=(None, ""))
    own = next((value for value, row in found if row is ran), None)
    one = Values(objective, own, best, by, bound, model)
    if objective != WAITING:
        return one
    runs = run_h(view)
    return replace(one, executed=waited(own, runs), best=waited(best, runs), bound=waited(bound, runs))


def run_h(view: RigidView) -> float:
    """Return the mean run time in hours, on the fastest type that each job may use."""
    return float((view.relaxed.duration / view.ticks_of_hour).mean())


def waited(flow: float | None, runs: float) -> float | None:
    """Return a mean wait, from a mean time to completion and the mean run time; digits that are noise become 0."""
    return None if flow is None else max(round(flow - runs, ROUNDED), 0.0)


def ladder(view: RigidView, rows: Sequence[Row], objective: str) -> Ladder:
    """Return the ladder of a log by one objective, or by :data:`WAITING`."""
    one, absent = values(view, rows, objective), ""
    runs = run_h(view) if objective == WAITING else None
    online = [
        (value if runs is None else waited(value, runs), clean(row.method, 60), knowledge(row.method))
        for value, row in schedules(rows, objective)
        if row.method in HEURISTICS and base_id(row.method) not in LOGGED
    ]
    if not view.asked:
        absent = "the log has no time limits"
    elif view.moves is not None:
        absent = "rules choose types by true run times"
    limited = [] if absent else [(value, by) for value, by, known in online if known != DURATIONS]
    found = [
        (BOUND, one.bound, one.bound_by),
        (FOUND, one.best, one.best_by),
        (PERFECT, *min(((value, by) for value, by, _ in online), default=(None, ""))),
        (LIMITS, *min(limited, default=(None, ""))),
        (EXECUTED, one.executed, ""),
    ]
    rungs: list[Rung] = []
    for name, value, by in found:
        if value is not None:
            before = rungs[-1] if rungs else None
            step = UNKNOWN if name == EXECUTED and before and before.name == PERFECT else STEPS.get(name, "")
            rungs.append(Rung(name, value, by, step if before else "", value - before.value if before else None))
    return Ladder(objective, tuple(rungs), absent)
