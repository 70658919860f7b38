"""Provers for packing problems: prices of capacity in slots, and the largest profit of each job at these prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import classes
from schedgap.instances.moldable.machines import units
from schedgap.models.engine.columns import Covers, Domain, GenerationOptions, Oracle, Price, generate, lagrangian
from schedgap.models.engine.moldable import CapacityGrid, MoldableJobs, MoldablePricing
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.registry import Content
from schedgap.models.provers.rounding import listed, unit_of, whole
from schedgap.models.provers.tree import Leaf, Tree
from schedgap.models.registry import Outcome

WILD = 64.0
"""If all capacity costs more than this multiple of the value of all jobs, smaller prices are tried."""

MOST = 16.0
"""Largest value of a job at an end that it cannot reach, as a multiple of all payments and profits together."""


def by_prices(outcome: Outcome, domain: Domain, oracle: Price, tree: Tree, content: Content, sense: int = 1) -> Content:
    """Return the content of a certificate with prices of rows for every leaf of a tree.

    Parameters
    ----------
    outcome, domain, oracle
        The outcome whose bound is to be proved, the root domain, and the pricing.
    tree
        The leaves to bound, and the prices of rows there.
    content
        Other content of the certificate: number and length of the slots. Cuts are added to it.
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
    """Return the branch-and-bound tree of an outcome; without one, a single leaf.

    The leaf has the outcome's prices or, if there are none, those of the LP relaxation.
    """
    if outcome.tree is not None:
        return Tree.of(outcome.tree)
    if outcome.prices is not None:
        root = outcome.prices.ravel()
    else:
        root = generate(domain, oracle, GenerationOptions(time_limit_s=options.time_limit_s), options).prices
    return Tree([{}], [root], [Leaf(domain, 0, ())])


def covered(outcome: Outcome, domain: Domain, tree: Tree, content: Content) -> Domain:
    """Return the domain with only those cuts that have a positive price in some leaf, and add them to `content`.

    A cover lists the blocks that have a reserve. A knapsack cut has the number of its weights in a list of their own.
    """
    if outcome.tree is None or not len(cuts := outcome.tree.domain.packing.cuts):
        return domain
    cells = len(domain.packing.capacity)
    prices = np.array([np.pad(leaf, (0, cells + len(cuts) - len(leaf))) for leaf in tree.prices])
    priced = (prices[:, cells:] > 0).any(axis=0)
    tree.prices = list(prices[:, np.concatenate([np.ones(cells, bool), priced])])
    cuts = cuts.take(priced)
    if isinstance(cuts, Covers):
        blocks = [np.flatnonzero(row).tolist() for row in cuts.kept]
        content["covers"] = list(zip(cuts.row.tolist(), cuts.spare.tolist(), blocks, strict=True))
    else:
        content["cuts"] = list(zip(cuts.row.tolist(), cuts.limit.tolist(), cuts.which.tolist(), strict=True))
        content["weights"] = [grouped(table) for table in cuts.weights]
    return replace(domain, packing=replace(domain.packing, known=cuts))


def grouped(table: Ints) -> list[tuple[list[int], list[int]]]:
    """Return the different weights of 1, 2, … units in a table ``(blocks, levels)``, each with its blocks."""
    weights, which = np.unique(table[:, 1:], axis=0, return_inverse=True)
    blocks = [np.flatnonzero(which == i).tolist() for i in range(len(weights))]
    return [(row.tolist(), own) for row, own in zip(weights, blocks, strict=True) if row.any()]


def moldable(
    view: Any, outcome: Outcome, options: SolveOptions, *, jobs_of: Callable[[Any], MoldableJobs], sense: int = 1
) -> Content:
    """Return prices of classes of servers that prove a bound for moldable jobs, which are never preempted."""
    jobs = jobs_of(view)
    grid, own = CapacityGrid(classes(jobs.machines), jobs.slots), units(jobs.machines)
    if outcome.tree is None and outcome.prices is not None:
        outcome = replace(outcome, prices=on_rows(outcome.prices, grid))
    pricing = MoldablePricing(jobs, grid)
    tree = grown(outcome, pricing.domain, pricing, options)
    content: Content = {"slot_s": view.slot_s, "slots": jobs.slots}
    content = by_prices(outcome, pricing.domain, pricing, tree, content, sense)
    return pooled(content, pricing.grid) | ({"units": [list(unit) for unit in own]} if own else {})


def on_rows(prices: Array, grid: CapacityGrid) -> Array:
    """Return prices of the instance's own resources for all rows of a grid: whole units and pools cost nothing more."""
    size, resources = grid.machines.capacity.shape
    own = np.asarray(prices).reshape(size, -1, grid.slots)
    given = np.zeros((size, resources, grid.slots))
    given[:, : own.shape[1]] = own
    return np.concatenate([given.ravel(), np.zeros(len(grid.pools) * grid.slots)])


def pooled(content: Content, grid: CapacityGrid) -> Content:
    """Return a certificate in which the prices of pools are part of those of all classes.

    Its rows are those of the classes; cuts of a pool have the row of its resource in a class after the last one.
    """
    if not len(grid.pools):
        return content
    size, resources = grid.machines.capacity.shape
    prices = [
        [*grid.by_slot(np.array(row[: grid.rows], np.int64)).ravel().tolist(), *row[grid.rows :]]
        for row in content["prices"]
    ]
    cuts = content.get("cuts", ())
    host, resource, slot = grid.cell(np.array([row for row, _, _ in cuts], np.int64))
    rows = ((np.where(host < 0, size, host) * resources + resource) * grid.slots + slot).tolist()
    cuts = [(row, limit, which) for row, (_, limit, which) in zip(rows, cuts, strict=True)]
    return {**content, "prices": prices} | ({"cuts": cuts} if cuts else {})
