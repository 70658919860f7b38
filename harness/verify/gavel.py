"""Checker for Gavel's makespan: Hadar's rules for gangs, every job complete; the objective is the last slot's end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.verify import hadar as gangs
from schedgap.instances.views.hadar import COMPLETE, Schedule, View


def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Return the verdict on a schedule of gangs that completes every job; its objective is the makespan in seconds."""
    verdict = gangs.check(view, decision, COMPLETE.id, claims)
    if verdict.objective is None:
        return verdict
    makespan_s = float((np.max(decision.slot, initial=-1) + 1) * view.slot_s)
    quantities = {**verdict.quantities, "makespan_s": makespan_s, "objective": makespan_s}
    return replace(verdict, objective=makespan_s, quantities=quantities)


VERIFIERS.register(VerifierSpec("gavel", check, lambda problem: (*gangs.QUANTITIES, "makespan_s")))
