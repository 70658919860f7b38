"""A lower bound on Σ w·c with interruptions whose prices change over time: tighter than one machine, and an LP."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.elastic.options import ROUNDING
from schedgap.instances.views.zhou import ARCHITECTURES, View
from schedgap.models import intervals
from schedgap.models.registry import Outcome, model
from schedgap.models.solve import SolveOptions
from schedgap.models.zhou.common import skip
from schedgap.models.zhou.fluid import run_of


def _build(view: View, name: str) -> pyo.ConcreteModel:
    r"""Return the fluid relaxation over intervals, and the columns that generation made for it.

    - :math:`i`: intervals of :math:`|i|` slots, the last one without end; :math:`k, r`: classes, resources.
    - :math:`s \in S_j'`: columns of j, an interval in which j completes, and the parts of its work that it does in each
      interval, by some choice of types.
    - :math:`c_s`: at most the completion time of any schedule that does these parts and completes in this interval.
    - :math:`f_{s,i,k,r}`: what these parts take in interval i, as a part of all capacity, times slots.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} w_j \cdot c_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,i,k,r} \cdot x_{j,s} \le |i| \quad \forall i, k, r \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    The bound is its negative. What a part of the work takes at least is that of the relaxation to a single
    machine, whose weights are prices here, of every resource of every class in every interval.

    Duals: these prices. At any of them, the least costs of the jobs, a greedy choice of intervals each, less the price
    of all capacity are a bound (:mod:`schedgap.models.intervals`).
    """
    run = run_of(view.architectures[name])
    return intervals.stated(intervals.completing(run, 1.0, intervals.completion_edges(run, 1.0)))


def bound(view: View, options: SolveOptions, name: str) -> Outcome:
    """Bound the weighted sum of completion times, in slots, by column generation over intervals.

    See Also
    --------
    schedgap.models.intervals : the proof.
    """
    a = view.architectures[name]
    began = clock.now()
    found = intervals.least_completion(run_of(a), 1.0, options) if (a.weight > 0).any() else None
    solution = found.generated.solution(-1) if found else intervals.NOBODY
    # Work has a rounding.
    least = None if solution.bound is None else solution.bound * (1 - ROUNDING)
    solution = replace(solution, bound=least, times=replace(solution.times, solve_s=clock.now() - began))
    return Outcome(solution, None, evidence=found)


for _name in ARCHITECTURES:
    model(
        f"zhou.{_name}.intervals",
        problem=f"zhou.{_name}.preemptive",
        kind="bound",
        source="Fluid relaxation over intervals of time, by column generation",
        procedure=partial(bound, name=_name),
        skip=skip(_name),
    )(partial(_build, name=_name))
