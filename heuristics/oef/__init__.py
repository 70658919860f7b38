"""OEF over rounds (Mo, Xu, Lau, Middleware 2024): rounding placer, dynamics, simulated policies.

``oef.rounding`` and ``oef.rounding_tijdeman`` round the optimal cooperative shares for a day of 5-minute
rounds (:data:`ROUNDS`), long enough for debts of a device or two to be less than a hundredth of a device on
average. The evaluators of :mod:`schedgap.heuristics.oef.dynamics` and AlloX are policies of
:mod:`schedgap.heuristics.simulator`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from schedgap.heuristics.hadar.allox import AlloX
from schedgap.heuristics.oef import gandiva_fair  # noqa: F401 -- it registers itself
from schedgap.heuristics.oef.dynamics import (
    EVALUATORS,
    OEF_EVALUATORS,
    Dynamics,
    Evaluator,
    FairShares,
    ProfilingError,
    evaluator,
    profiling_error,
    restricted,
    simulate,
    throughput,
)
from schedgap.heuristics.oef.rounding import Placer, Quality, Rule, quality
from schedgap.heuristics.registry import HEURISTICS, Context, HeuristicSpec, Oracle
from schedgap.heuristics.simulator import POLICIES, PolicySpec, servers, workload
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, View

__all__ = [
    "EVALUATORS",
    "OEF_EVALUATORS",
    "ROUNDS",
    "AlloX",
    "Dynamics",
    "Evaluator",
    "FairShares",
    "Placer",
    "ProfilingError",
    "Quality",
    "Rule",
    "allox",
    "evaluator",
    "profiling_error",
    "quality",
    "restricted",
    "round_shares",
    "simulate",
    "throughput",
]

ROUNDS = 288
"""Rounds of the placer: 24 hours of 5 minutes."""


def round_shares(view: View, ideal: NDArray[np.float64], rule: Rule, rounds: int = ROUNDS) -> Allocation:
    """Return whole devices for constant shares, round by round, and their average.

    Parameters
    ----------
    view
        Capacity and smallest jobs.
    ideal
        ``(v, k)`` fractional shares.
    rule
        See :mod:`schedgap.heuristics.oef.rounding`.
    rounds
        Number of rounds, at least 1.
    """
    placer = Placer(view.size, view.capacity, rule)
    placed = np.stack([placer.place(ideal, view.min_demand) for _ in range(rounds)])
    return Allocation(placed.mean(axis=0), placed)


def rounding(view: View, context: Context) -> Allocation:
    """Round the shares of ``oef.cooperative`` by largest remainder, for a day of rounds.

    The paper's own rule, each tenant rounded on its own, exceeds capacity.

    See Also
    --------
    Placer : the rules.
    """
    return round_shares(view, context.oracle("oef.cooperative", view).devices, "largest_remainder")


def rounding_tijdeman(view: View, context: Context) -> Allocation:
    """Round the shares of ``oef.cooperative`` by Tijdeman's rule, for a day of rounds.

    Debts stay below one device at all times while shares do not change.

    See Also
    --------
    Placer : the rules.
    """
    return round_shares(view, context.oracle("oef.cooperative", view).devices, "tijdeman")


HEURISTICS.register(
    HeuristicSpec(
        id="oef.rounding",
        paper="oef",
        problem="oef.allocation",
        kind="online",
        run=rounding,
        source="OEF §4.3, by largest remainder so that capacity holds",
    )
)
HEURISTICS.register(
    HeuristicSpec(
        id="oef.rounding_tijdeman",
        paper="oef",
        problem="oef.allocation",
        kind="online",
        run=rounding_tijdeman,
        source="OEF §4.3 with the chairman assignment (Tijdeman 1980)",
    )
)


ROUNDING = Parameter(
    "rounding",
    "how shares become devices: memoryless carries no deviation from round to round, as the baselines of §6.3.2",
    choices=("tijdeman", "largest_remainder", "memoryless"),
)
PACKED = Parameter("packed", "OEF's placement: large jobs first, on one type and one host where possible (§4.3)")
DEMAND_AWARE = Parameter("demand_aware", "none of a type rather than fewer devices than the smallest job needs (§4.3)")
ROW_CAP = Parameter("row_cap", "at most one device per tenant, as in the allocation that the paper prints as (3)")


def fair_shares(
    instance: Instance,
    oracle: Oracle,
    *,
    evaluate: str,
    row_cap: bool = False,
    rounding: Rule = "tijdeman",
    packed: bool = True,
    demand_aware: bool = True,
) -> FairShares:
    """Return the policy that gives tenants the shares of an evaluator, see there and :class:`FairShares`."""
    name = f"{evaluate}?row_cap=true" if row_cap else evaluate
    return FairShares(instance, evaluator(name, oracle), rounding, packed, demand_aware)


def _policy(name: str) -> PolicySpec:
    """Spec of the policy with that evaluator."""
    own, capped = name in OEF_EVALUATORS, name == "gavel"
    return PolicySpec(
        id=f"oef.{name}",
        paper="oef",
        build=partial(fair_shares, evaluate=name, packed=own),
        source="OEF §4" if own else "OEF §6.1.3, baseline without OEF's placement",
        measures=throughput,
        parameters=((ROW_CAP,) if capped else ()) + (ROUNDING, PACKED, DEMAND_AWARE),
        variants=("row_cap=true",) if capped else (),
    )


def allox(instance: Instance) -> AlloX:
    """Return AlloX for an instance whose jobs fit on a single type, as OEF asks of its own.

    Raises
    ------
    NotApplicableError
        If some job does not.
    """
    policy = AlloX(workload(instance), servers(instance))
    stuck = np.flatnonzero(~policy.gangs.allowed[:, :-1].any(axis=1))
    if stuck.size:
        raise NotApplicableError(f"AlloX: job {policy.gangs.work.ids[stuck[0]]} fits on no single GPU type")
    return policy


for _name in EVALUATORS:
    POLICIES.register(_policy(_name))
POLICIES.register(
    PolicySpec(
        id="oef.allox",
        paper="oef",
        build=lambda instance, oracle: allox(instance),
        source="AlloX (Le et al., EuroSys 2020), named in OEF §7",
        measures=throughput,
    )
)
