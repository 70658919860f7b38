"""Provers for packing problems: prices of capacity in slots, and the largest profit of each job at these prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.elastic import classes
from schedgap.instances.views import admission, hadar, zhou
from schedgap.models.admission.columns import admitting
from schedgap.models.columns import Covers, Domain, GenerationOptions, Oracle, Price, generate, lagrangian
from schedgap.models.elastic import ElasticJobs, Grid, Pricing
from schedgap.models.hadar.forked import ForkedPricing
from schedgap.models.hadar.periods import ByPeriod
from schedgap.models.hadar.pricing import Pricing as GangPricing
from schedgap.models.provers.fluid import over_intervals
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import listed, unit_of, whole
from schedgap.models.provers.tree import Leaf, Tree
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions
from schedgap.models.zhou.columns import completing, weighing

WILD = 64.0
"""Ratio of all payments to the value of all jobs beyond which smaller prices are tried."""

MOST = 16.0
"""Largest value of a job at an end that it cannot reach, relative to all payments and profits together."""


def by_prices(outcome: Outcome, domain: Domain, oracle: Price, tree: Tree, content: Content, sense: int = 1) -> Content:
    """Return prices of rows for every leaf of a tree.

    Parameters
    ----------
    outcome, domain, oracle
        The outcome whose bound is to be proved, the root domain, and the pricing.
    tree
        The leaves to bound, and the prices of rows there.
    content
        Other content of the certificate: number and length of the slots. Covers are added to it.
    sense
        1 if values are maximised, −1 if they are the negatives of costs.
    """
    domain, claim = covered(outcome, domain, tree, content), outcome.solution.bound
    packing = domain.packing
    assert claim is not None
    assert packing.worth is not None
    # The first call lets Hadar's oracle choose the jobs that it prices more accurately in later calls.
    most = oracle(np.zeros_like(tree.prices[0]), domain).most
    leaves = [leaf._replace(domain=replace(leaf.domain, packing=packing)) for leaf in tree.leaves]
    worth = float(np.abs(most[np.isfinite(most)]).sum())
    for which in {leaf.prices for leaf in leaves}:
        # In infeasible domains prices are penalties, a million times any value, with rounding errors to match. They
        # are scaled down if the bounds of their leaves then stay below the claim.
        own = [leaf for leaf in leaves if leaf.prices == which]
        part = WILD * worth / max(float(tree.prices[which] @ packing.limits), 1e-200)
        less = tree.prices[which] * part
        if part < 1 and all(leaf_bound(leaf, oracle, less) <= sense * claim for leaf in own):
            tree.prices[which] = less
    paid = max(float(prices @ packing.limits) for prices in tree.prices)
    largest = float(np.abs(packing.worth[np.isfinite(packing.worth)]).max(initial=0.0))
    unit = max(unit_of(paid + worth), unit_of(largest) / MOST)
    prices = [listed(whole(np.maximum(prices, 0.0), unit)) for prices in tree.prices]
    return {"unit": unit, "prices": prices, **content} | ({"tree": tree.nodes} if len(tree.nodes) > 1 else {})


def leaf_bound(leaf: Leaf, oracle: Price, prices: Array) -> float:
    """Return the Lagrangian bound on a leaf at some prices."""
    domain = leaf.domain
    priced = oracle(prices, domain)
    most = np.where(domain.must, priced.most, np.maximum(priced.most, 0.0))
    value = lagrangian(domain, prices, priced.most)
    if leaf.cut and priced.by_end is not None:
        ends = np.column_stack((priced.by_end, np.where(domain.must, -np.inf, 0.0)))
        value += max(float(ends[job, cut].max(initial=-np.inf)) - most[job] for job, cut in leaf.cut)
    return value


def grown(outcome: Outcome, domain: Domain, oracle: Oracle, options: SolveOptions) -> Tree:
    """Return the tree of an outcome, or a single leaf at the outcome's prices or else those of the LP relaxation."""
    if outcome.tree is not None:
        return Tree.of(outcome.tree)
    if outcome.prices is not None:
        root = outcome.prices.ravel()
    else:
        root = generate(domain, oracle, GenerationOptions(time_limit_s=options.time_limit_s), options).prices
    return Tree([{}], [root], [Leaf(domain, 0, ())])


def gangs(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content | None:
    """Return prices of GPUs for one of Hadar's problems, from the outcome or from column generation."""
    evidence = outcome.evidence
    content: Content = {"slot_s": view.slot_s, "slots": view.slots}
    pricing: Any
    oracle: Any
    if isinstance(evidence, ByPeriod):  # some jobs may do their work in fractions of slots
        pricing, content["divisible"] = evidence.pricing, np.flatnonzero(evidence.pricing.by_parts).tolist()
        oracle = lambda prices, domain: pricing.nearly(prices.reshape(-1, view.slots), closely=False)  # noqa: E731
    elif evidence is not None:
        return over_intervals(evidence, view.capacity.astype(float)) | {"slot_s": view.slot_s}
    elif problem == hadar.FORKED.id:
        pricing = oracle = ForkedPricing(view)
    else:
        pricing = oracle = GangPricing(view, problem == hadar.COMPLETE.id)
    domain = Domain.of(pricing.packing)
    tree = grown(outcome, domain, oracle, options)
    return by_prices(outcome, domain, oracle, tree, content)


def covered(outcome: Outcome, domain: Domain, tree: Tree, content: Content) -> Domain:
    """Return the domain with the covers that have a positive price somewhere in a tree, and add them to `content`.

    A cover lists the numbers of the blocks that keep something, in pairs with the amount if blocks may keep parts.
    """
    if outcome.tree is None or not len(covers := outcome.tree.domain.packing.covers):
        return domain
    cells = len(domain.packing.capacity)
    prices = np.array([np.pad(leaf, (0, cells + len(covers) - len(leaf))) for leaf in tree.prices])
    priced = (prices[:, cells:] > 0).any(axis=0)
    tree.prices = list(prices[:, np.concatenate([np.ones(cells, bool), priced])])
    covers = Covers(covers.row[priced], covers.spare[priced], covers.kept[priced])
    kept = [[(b, int(row[b])) for b in np.flatnonzero(row).tolist()] for row in covers.kept]
    blocks = kept if domain.packing.parts is not None else [[b for b, _ in pairs] for pairs in kept]
    content["covers"] = list(zip(covers.row.tolist(), covers.spare.tolist(), blocks, strict=True))
    return replace(domain, packing=replace(domain.packing, known=covers))


def elastic(
    view: Any, outcome: Outcome, options: SolveOptions, *, jobs_of: Callable[[Any], ElasticJobs], sense: int = 1
) -> Content:
    """Return prices of classes of servers for jobs that are never preempted."""
    jobs = jobs_of(view)
    pricing = Pricing(jobs, Grid(classes(jobs.machines), jobs.slots))
    tree = grown(outcome, pricing.domain, pricing, options)
    content: Content = {"slot_s": view.slot_s, "slots": jobs.slots}
    return by_prices(outcome, pricing.domain, pricing, tree, content, sense)


def of_zhou(view: zhou.ZhouView, problem: str) -> ElasticJobs:
    """Return the elastic jobs of one of Zhou's problems."""
    return (weighing if problem.endswith("weight") else completing)(view.of(problem))


def cheapest(view: zhou.ZhouView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content:
    """Return the base of prices for Zhou's cheapest run; the rule places all choices that might be cheaper."""
    a = view.of(problem)
    return {"slot_s": view.slot_s, "slots": a.deadline - 1, "base": a.price_base}


for problem in (hadar.UTILITY.id, hadar.COMPLETE.id, hadar.FORKED.id):
    PROVERS.register(ProverSpec(problem, partial(gangs, problem=problem)))
for problem in (admission.UTILITY.id, admission.FROM_ARRIVAL.id):
    PROVERS.register(ProverSpec(problem, partial(elastic, jobs_of=partial(admitting, problem=problem))))
for architecture in zhou.ARCHITECTURES:
    for kind, sign in (("completion", -1), ("weight", 1)):
        problem = f"zhou.{architecture}.{kind}"
        jobs_of = partial(of_zhou, problem=problem)
        PROVERS.register(ProverSpec(problem, partial(elastic, jobs_of=jobs_of, sense=sign)))
    problem = f"zhou.{architecture}.cost"
    PROVERS.register(ProverSpec(problem, partial(cheapest, problem=problem)))
