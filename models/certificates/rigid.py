"""Gangs of fixed duration: pools as machines, whose prices change or not."""

from __future__ import annotations

from functools import partial

import numpy as np

from schedgap.instances.rigid import OBJECTIVES, View
from schedgap.models.certificates.fluid import over_intervals
from schedgap.models.certificates.proof import Proof, Prover
from schedgap.models.intervals import Tightest
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, arrived, goal_of, least, machines_of
from schedgap.models.rigid.starts import Starts
from schedgap.models.solve import SolveOptions

EXACT = 1e-12
"""Part of a bound in closed form by which it may differ: the model allows for its rounding itself."""

CLOSE = 1e-10
"""The same of all terms of a bound by intervals, of which the checker takes 1e-11 off. Times from a log's beginning to
its end are long beside those from release to completion."""


def gangs(view: View, outcome: Outcome, options: SolveOptions, *, objective: str) -> Proof | None:
    """Prove the bound by intervals, of starts or of a fluid, or by the best relaxation in closed form."""
    if isinstance(outcome.evidence, Tightest):
        machines = machines_of(view.relaxed)
        value, size, told = over_intervals(outcome.evidence, np.ones(len(machines)))
        starts = isinstance(outcome.evidence.pricing, Starts)
        before = 0.0 if starts else arrived(view, goal_of(view, objective).weight)
        told["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
        if starts:
            told |= {"starts": True, "edges": [round(edge * view.ticks_of_hour) for edge in told["edges"]]}
        return Proof.of(-value - before, size + before, -1, told, CLOSE)
    found = outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)
    return Proof.of(found.value, abs(found.value), -1, {"pools": found.pools}, EXACT)


PROVERS: dict[str, Prover] = {
    f"rigid.{name}{how}": partial(gangs, objective=name) for name in OBJECTIVES for how in ("", ".preemptive")
}
