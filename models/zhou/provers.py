"""Provers of Zhou's problems: prices of classes of servers by slot, constant prices, and the base of prices."""

from __future__ import annotations

from functools import partial

from schedgap.instances.arrays import Array
from schedgap.instances.views import zhou
from schedgap.models.engine.moldable import MoldableJobs
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.fluid import mean
from schedgap.models.provers.prices import moldable
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.registry import Outcome
from schedgap.models.zhou.columns import completing, weighing


def of_zhou(view: zhou.ZhouView, problem: str) -> MoldableJobs:
    """Return the moldable jobs of one of Zhou's problems."""
    return (weighing if problem.endswith("weight") else completing)(view.of(problem))


def cheapest(view: zhou.ZhouView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content:
    """Return the base of the prices of Zhou's cheapest run; the rule places all choices that might be cheaper."""
    a = view.of(problem)
    return {"slot_s": view.slot_s, "slots": a.deadline - 1, "base": a.price_base}


def of_slots(view: zhou.ZhouView, problem: str) -> Array:
    """Return how much of each resource each class of servers has."""
    return view.of(problem).classes.allowed.ravel()


for architecture in zhou.ARCHITECTURES:
    for kind, sign in (("completion", -1), ("weight", 1)):
        problem = f"zhou.{architecture}.{kind}"
        jobs_of = partial(of_zhou, problem=problem)
        PROVERS.register(ProverSpec(problem, partial(moldable, jobs_of=jobs_of, sense=sign)))
    problem = f"zhou.{architecture}.cost"
    PROVERS.register(ProverSpec(problem, partial(cheapest, problem=problem)))
    many = f"zhou.{architecture}.preemptive"
    PROVERS.register(ProverSpec(many, partial(mean, there=partial(of_slots, problem=many))))
