"""Provers for jobs of fixed duration: dual feasible functions of pools, and prices over intervals or starts."""

from __future__ import annotations

from functools import partial

import numpy as np

from schedgap.instances import rigid
from schedgap.models.engine.fluid.intervals import Tightest
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.fluid import over_intervals
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import listed, unit_of, whole
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, least, machines_of
from schedgap.models.rigid.prices import Prices


def of_pools(view: rigid.RigidView, outcome: Outcome, options: SolveOptions, *, objective: str) -> Content:
    """Return multipliers for gangs of fixed duration: prices by interval, or parts of weights for each pool.

    The bound of 0 on idle GPU-hours needs none.
    """
    if objective == "idle":
        return {}
    if isinstance(outcome.evidence, Prices):
        return over_starts(outcome.evidence, view.ticks_of_hour)
    if not isinstance(outcome.evidence, Tightest):
        return {"pools": (outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)).pools}
    machines = machines_of(view.relaxed)
    content = over_intervals(outcome.evidence, np.ones(len(machines)))
    content["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
    return content


def over_starts(found: Prices, hour: float) -> Content:
    """Return rounded prices over intervals, the ends of the intervals, and the machines that have prices."""
    priced = [d for d, prices in enumerate(found.prices) if d == 0 or prices.any()]
    prices, length = found.prices[priced], np.diff(found.edges) / hour
    unit = unit_of(float((prices * length).sum()))
    machines = [[pool, list(share)] for pool, share in (found.machines[d].code for d in priced)]
    numbers = listed(whole(prices, unit))
    return {"starts": True, "machines": machines, "edges": found.edges.tolist(), "prices": numbers, "unit": unit}


for name in rigid.OBJECTIVES:
    for how in ("", ".preemptive"):
        PROVERS.register(ProverSpec(f"rigid.{name}{how}", partial(of_pools, objective=name)))
