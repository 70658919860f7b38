"""Provers for jobs of fixed duration: dual feasible functions of pools, and prices over intervals or starts."""

from __future__ import annotations

from functools import partial

import numpy as np

from schedgap.instances import rigid
from schedgap.models.engine.fluid.intervals import Tightest
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.fluid import over_intervals
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, least, machines_of
from schedgap.models.rigid.starts import Starts


def of_pools(view: rigid.RigidView, outcome: Outcome, options: SolveOptions, *, objective: str) -> Content:
    """Return multipliers for gangs of fixed duration: prices by interval, or parts of weights for each pool.

    The bound of 0 on idle GPU-hours needs none.
    """
    if objective == "idle":
        return {}
    if not isinstance(outcome.evidence, Tightest):
        return {"pools": (outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)).pools}
    machines = machines_of(view.relaxed)
    content = over_intervals(outcome.evidence, np.ones(len(machines)))
    content["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
    if isinstance(outcome.evidence.pricing, Starts):
        content |= {"starts": True, "edges": [round(edge * view.ticks_of_hour) for edge in content["edges"]]}
    return content


for name in rigid.OBJECTIVES:
    for how in ("", ".preemptive"):
        PROVERS.register(ProverSpec(f"rigid.{name}{how}", partial(of_pools, objective=name)))
