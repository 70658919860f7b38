"""Packing problems: prices of capacity in slots, and what each job makes of them at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.elastic import classes
from schedgap.instances.views import admission, hadar, zhou
from schedgap.instances.views.hadar import ROUNDING
from schedgap.models.admission.columns import admitting
from schedgap.models.certificates.proof import MARGIN, Proof, Prover, listed, unit_of, whole
from schedgap.models.certificates.tree import LARGEST, Leaf, Tree
from schedgap.models.columns import Columns, Covers, Domain, GenerationOptions, Oracle, Priced, generate, lagrangian
from schedgap.models.elastic import ElasticJobs, Grid, Pricing, bound, coarse
from schedgap.models.hadar.forked import ForkedPricing
from schedgap.models.hadar.pricing import Pricing as GangPricing
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions
from schedgap.models.zhou.columns import completing, weighing

EXACT = 3e-13
"""Part of all terms by which the checker's sums and these may differ. At prices that are penalties for blocks without
column, terms are a million times the bound."""

MOST = 16.0
"""How many times more than all that is paid and gained together a job may be worth at an end that it cannot reach."""

ROUNDINGS = 1000
"""Units by which the checker rounds down what a job pays."""


def by_prices(
    domain: Domain,
    oracle: Oracle,
    worth: Array,
    tree: Tree,
    told: Mapping[str, Any],
    sense: int = 1,
    missing: float = EXACT,
) -> Proof | None:
    """Return the proof by prices of the rows of a packing problem, at every leaf of a tree.

    Parameters
    ----------
    domain, oracle
        The problem, and its pricing.
    worth
        ``(blocks, ends)`` what blocks are worth by their ends.
    tree
        Prices of the rows, and what they are to bound.
    told
        What the problem derives from the instance: slots and their length.
    sense
        1 where values are maximised, −1 where they are the negatives of costs.
    missing
        Part of all terms that the checker may count less.
    """
    packing = domain.packing
    # Hadar's oracle looks more closely at jobs that matter, once it knows how much there is.
    most = oracle(np.zeros_like(tree.prices[0]), domain).most
    paid = max(float(prices @ packing.limits) for prices in tree.prices)
    largest = float(np.abs(worth[np.isfinite(worth)]).max(initial=0.0))
    unit = max(unit_of(paid + float(np.abs(most[np.isfinite(most)]).sum())), unit_of(largest) / MOST)
    rounded = [whole(np.maximum(prices, 0.0), unit) for prices in tree.prices]
    leaves = [leaf._replace(domain=replace(leaf.domain, packing=packing)) for leaf in tree.leaves]
    found = [leaf_bound(leaf, oracle, rounded[leaf.prices] * unit) for leaf in leaves]
    value = max(value + missing * size for value, size in found) + ROUNDINGS * packing.blocks * unit
    content = {"unit": unit, "prices": [listed(prices) for prices in rounded], **told}
    return Proof.of(sense * value, abs(value), sense, content | ({"tree": tree.nodes} if len(tree.nodes) > 1 else {}))


def leaf_bound(leaf: Leaf, oracle: Oracle, prices: Array) -> tuple[float, float]:
    """Return the bound on a leaf at some prices, and the sum of its terms."""
    domain = leaf.domain
    priced = oracle(prices, domain)
    most = np.where(domain.must, priced.most, np.maximum(priced.most, 0.0))
    value = lagrangian(domain, prices, priced.most)
    if leaf.cut and priced.by_end is not None:
        ends = np.column_stack((priced.by_end, np.where(domain.must, -np.inf, 0.0)))
        value += max(float(ends[job, cut].max(initial=-np.inf)) - most[job] for job, cut in leaf.cut)
    return value, float(prices @ domain.packing.limits) + float(np.abs(most[np.isfinite(most)]).sum())


def grown(outcome: Outcome, domain: Domain, prices: Callable[[], Array], expand: Callable[[Array], Array]) -> Tree:
    """Return the tree of an outcome, or one leaf at the prices of the root where there is none, or it is too large.

    `prices` finds those of the root where the outcome has none; `expand` turns prices of a tree into those of the rows.
    """
    if outcome.tree is not None:
        tree = Tree.of(outcome.tree)
        if len(tree.leaves) <= LARGEST:
            tree.prices = [expand(found) for found in tree.prices]
            return tree
    root = prices() if outcome.prices is None else outcome.prices.ravel()
    return Tree([{}], [root], [Leaf(domain, 0, ())])


def gangs(view: hadar.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound of Hadar's problems by prices of GPUs, those of the outcome or of the relaxation's columns."""
    forked = problem == hadar.FORKED.id
    oracle: Any = ForkedPricing(view) if forked else GangPricing(view, problem == hadar.COMPLETE.id)
    domain = Domain.of(oracle.packing)
    limits = GenerationOptions(time_limit_s=options.time_limit_s)

    def relaxed() -> Array:
        return generate(domain, oracle, limits, options).prices

    tree = grown(outcome, domain, relaxed, lambda prices: prices)
    covers = outcome.tree.domain.packing.covers if outcome.tree else domain.packing.covers
    told: dict[str, Any] = {"slot_s": view.slot_s, "slots": view.slots}
    if len(covers):
        rows, cells = len(domain.packing.capacity) + len(covers), len(domain.packing.capacity)
        prices = np.array([np.pad(found, (0, rows - len(found))) for found in tree.prices])
        priced = (prices[:, cells:] > 0).any(axis=0)
        covers = Covers(covers.row[priced], covers.spare[priced], covers.member[priced])
        tree.prices = list(prices[:, np.concatenate([np.ones(cells, bool), priced])])
        domain = replace(domain, packing=replace(domain.packing, known=covers))
        members = [np.flatnonzero(member).tolist() for member in covers.member]
        told["covers"] = list(zip(covers.row.tolist(), covers.spare.tolist(), members, strict=True))
    proving, missing = (divided(view, oracle), 2 * MARGIN) if forked else (oracle, EXACT)
    return by_prices(domain, proving, oracle.worth, tree, told, missing=missing)


def divided(view: hadar.View, exact: ForkedPricing) -> Oracle:
    """Return a pricing of copies whose GPUs and work can be divided, as the checker has it; it misses no payoff."""
    work = view.workload.work * (1 - ROUNDING)

    def costs(rows: Array) -> Array:
        found = np.full(exact.worth.shape, np.inf)
        for j in exact.possible.tolist():
            able, a = np.flatnonzero(exact.limit[j] * exact.progress[j] > 0), int(view.arrival[j])
            each = np.repeat(exact.progress[j, able][:, None], view.slots - a, axis=1)
            price, room = rows[able, a:] / each, each * exact.limit[j, able][:, None]
            for t in range(view.slots - a):
                order = np.argsort(price[:, : t + 1], axis=None)
                there = room[:, : t + 1].ravel()[order]
                if there.sum() >= work[j]:
                    done = np.clip(work[j] - (np.cumsum(there) - there), 0, there)
                    found[j, a + t] = (done * price[:, : t + 1].ravel()[order]).sum()
        return found

    def price(prices: Array, domain: Domain) -> Priced:
        with np.errstate(invalid="ignore"):
            by_end = domain.worth - costs(prices.reshape(exact.room.shape))
        return Priced(by_end.max(axis=1), Columns.of(prices.size, ()), by_end)

    return price


def elastic(jobs: ElasticJobs, slot_s: float, outcome: Outcome, options: SolveOptions, sense: int = 1) -> Proof | None:
    """Prove a bound of elastic jobs by prices of classes of servers, those of the outcome or of the relaxation."""
    grid = coarse(jobs, classes(jobs.machines))
    pricing = Pricing(jobs, Grid(classes(jobs.machines), jobs.slots))

    def relaxed() -> Array:
        return by_slot(bound(jobs, GenerationOptions(time_limit_s=options.time_limit_s), options)[0].prices)

    def by_slot(prices: Array) -> Array:
        return grid.by_slot(prices).ravel()

    tree = grown(outcome, pricing.domain, relaxed, by_slot)
    return by_prices(pricing.domain, pricing, jobs.worth, tree, {"slot_s": slot_s, "slots": jobs.slots}, sense)


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
