"""Packing problems: prices of capacity in slots, and what each job makes of them at most."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.elastic import classes
from schedgap.instances.views import admission, hadar, zhou
from schedgap.models.admission.columns import admitting
from schedgap.models.certificates.proof import Proof, Prover, listed, unit_of, whole
from schedgap.models.columns import Domain, GenerationOptions, Oracle, generate, lagrangian
from schedgap.models.elastic import ElasticJobs, Grid, Pricing, bound
from schedgap.models.hadar.forked import ForkedPricing
from schedgap.models.hadar.pricing import Pricing as GangPricing
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions
from schedgap.models.zhou.columns import completing, weighing


def by_prices(domain: Domain, oracle: Oracle, prices: Array, told: Mapping[str, Any], sense: int = 1) -> Proof | None:
    """Return the proof by prices ``(m,)`` of the rows of a packing problem.

    Parameters
    ----------
    domain, oracle
        The problem, and its pricing.
    prices
        Prices of the rows.
    told
        What the problem derives from the instance: slots and their length.
    sense
        1 where values are maximised, −1 where they are the negatives of costs.
    """
    worth = np.zeros((domain.packing.blocks, 1)) if domain.packing.worth is None else domain.packing.worth
    largest = np.abs(np.where(np.isfinite(worth), worth, 0.0)).max(axis=1, initial=0.0)
    unit = unit_of(float(prices @ domain.packing.capacity) + float(largest.sum()))
    rounded = whole(np.maximum(prices, 0.0), unit)
    # Hadar's oracle looks more closely at jobs that matter, once it knows how much there is.
    most = np.minimum(*(oracle(rounded * unit, domain).most for _ in range(2)))
    value = lagrangian(domain, rounded * unit, most)
    size = unit * float(rounded @ domain.packing.capacity) + float(np.abs(most[np.isfinite(most)]).sum())
    return Proof.of(sense * value, size, sense, {"unit": unit, "prices": [listed(rounded)], **told})


def gangs(view: hadar.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound of Hadar's problems by prices of GPUs, those of the outcome or of the relaxation's columns."""
    forked = problem == hadar.FORKED.id
    oracle = ForkedPricing(view) if forked else GangPricing(view, problem == hadar.COMPLETE.id)
    domain = Domain.of(oracle.packing)
    prices = outcome.prices
    if prices is None:
        prices = generate(domain, oracle, GenerationOptions(time_limit_s=options.time_limit_s), options).prices
    return by_prices(domain, oracle, prices.ravel(), {"slot_s": view.slot_s, "slots": view.slots})


def elastic(jobs: ElasticJobs, slot_s: float, outcome: Outcome, options: SolveOptions, sense: int = 1) -> Proof | None:
    """Prove a bound of elastic jobs by prices of classes of servers, those of the outcome or of the relaxation."""
    prices = outcome.prices
    if prices is None or prices.shape[1:] != (jobs.slots,):
        found, grid = bound(jobs, GenerationOptions(time_limit_s=options.time_limit_s), options)
        prices = grid.by_slot(found.prices)
    pricing = Pricing(jobs, Grid(classes(jobs.machines), jobs.slots))
    told = {"slot_s": slot_s, "slots": jobs.slots}
    return by_prices(pricing.domain, pricing, prices.ravel(), told, sense)


def admitted(view: admission.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound of the admission problems."""
    return elastic(admitting(view, problem), view.slot_s, outcome, options)


def distributed(view: zhou.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound of Zhou's problems of jobs that are not interrupted."""
    architecture = view.of(problem)
    if problem.endswith("weight"):
        return elastic(weighing(architecture), view.slot_s, outcome, options)
    return elastic(completing(architecture), view.slot_s, outcome, options, sense=-1)


PROVERS: dict[str, Prover] = {
    **{p.id: partial(gangs, problem=p.id) for p in (hadar.UTILITY, hadar.COMPLETE, hadar.FORKED)},
    **{p.id: partial(admitted, problem=p.id) for p in (admission.UTILITY, admission.FROM_ARRIVAL)},
    **{
        f"zhou.{a}.{p}": partial(distributed, problem=f"zhou.{a}.{p}")
        for a in zhou.ARCHITECTURES
        for p in ("completion", "weight")
    },
}
