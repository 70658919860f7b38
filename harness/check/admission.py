"""Checker for admission: starts, deadlines, work, bandwidth, capacity, and the utility of the admitted jobs."""

from __future__ import annotations

import numpy as np

from schedgap.certificates.reading.admission import RawAdmission, admission_of
from schedgap.harness.check import moldable
from schedgap.harness.check.registry import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import refusing
from schedgap.instances.moldable import Runs


@refusing
def check(facts: RawAdmission, decision: Runs, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check the schedule of the admitted jobs.

    In ``admission.utility`` a job starts after its arrival slot; in ``admission.from_arrival`` it may start in it.
    """
    plan = moldable.PlannedRuns(decision, facts.moldable, first=0)
    runs, due = plan.runs, facts.deadline[plan.runs.job]
    lines = [
        *moldable.placements(plan),
        *moldable.several(plan),
        *moldable.early(plan, facts.arrival + (problem != "admission.from_arrival")),
        *runs.broken(runs.end > due, moldable.AT + "completes at {end}, after its deadline {due}", due=due),
        *moldable.unfinished(plan),
        *moldable.capacity(plan),
    ]
    took = runs.end - facts.arrival[runs.job]
    worth = facts.utilities.value(runs.job[took > 0], took[took > 0] * facts.slot_s)
    completion = np.zeros(facts.moldable.size, np.int64)
    completion[runs.job] = runs.end
    admitted = int((completion > 0).sum())
    metrics: dict[str, float | int | bool] = {
        "admitted": admitted,
        "rejected": facts.moldable.size - admitted,
        "colocated": len(set(runs.job[runs.hosts == 1].tolist())),
    }
    objective = float(worth.sum())
    return Verdict(objective, tuple(lines), metrics, {"completion": completion, "objective": objective, **metrics})


QUANTITIES = ("admitted", "rejected", "colocated", "completion")


VERIFIERS.register(VerifierSpec("admission", admission_of, check, lambda problem: QUANTITIES))
