"""The rule for prices over starts against exact arithmetic, and prices by ascent against a linear program."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import orders
import pytest
from certified import checker, plain, signed
from conftest import examples

from schedgap.certificates.rigid import FINE, Rigid, by_starts, scaled
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances.canonical import to_json
from schedgap.instances.registry import PAPERS
from schedgap.models.rigid import bounds, prices

SUMS = ("flow", "slowdown", "weighted")


def exactly(rigid: Rigid, proof: dict[str, Any]) -> Fraction:
    """Return the bound of prices over starts, by trying in fractions every start at which the cost of a job bends."""
    edges, unit = proof["edges"], Fraction(proof["unit"]) * FINE / rigid.hour
    per_tick = [[Fraction(int(whole * unit // 1), FINE) for whole in machine] for machine in proof["prices"]]
    spans = list(itertools.pairwise(edges))
    bound = -sum(((b - a) * p for machine in per_tick for (a, b), p in zip(spans, machine, strict=True)), Fraction(0))
    columns = rigid.release, rigid.duration, rigid.gpus, rigid.pool, rigid.due, rigid.each(rigid.weights)
    for release, duration, gpus, own, due, weight in zip(*columns, strict=True):
        costs = []
        starts = {release, due - duration, *edges, *(edge - duration for edge in edges)}
        for start in (start for start in starts if start >= release):
            end = start + duration
            cost = weight / rigid.size * (max(end, due) - release)
            for (pool, share), machine in zip(proof["machines"], per_tick, strict=True):
                if pool == own:
                    held = ((max(0, min(end, b) - max(start, a)), p) for (a, b), p in zip(spans, machine, strict=True))
                    used = sum((time * p for time, p in held), Fraction(0))
                    cost += Fraction(*scaled(share, gpus, rigid.there[pool])) * used
            costs.append(cost)
        bound += min(costs)
    return bound


@pytest.mark.parametrize("seed", range(40))
def test_the_rule_is_the_exact_bound_of_any_prices_rounded_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = PAPERS.get("rigid").view(orders.instance(seed))
    data = json.loads(to_json(seen.instance))
    objective = SUMS[seed % 3]
    rigid = Rigid(data, f"rigid.{objective}")
    last = max(map(sum, zip(rigid.release, rigid.duration, strict=True)))
    edges = sorted({int(t) for t in rng.integers(0, 2 * last + 2, rng.integers(2, 9))} | {0, last + 1})
    machines = [[pool, share] for pool in rigid.pool for share in (["area"], ["above", 1])]
    machines = [machine for k, machine in enumerate(machines) if machine not in machines[:k]]
    numbers = rng.integers(0, 4, (len(machines), len(edges) - 1)) * rng.integers(0, 50, len(edges) - 1)
    unit = float(rng.choice([1e-12, 1e-6, 1e-3, 1.0]))
    proof = {"problem": f"rigid.{objective}", "edges": edges, "machines": machines, "unit": unit}
    proof |= {"prices": numbers.tolist(), "starts": True}
    value, exact = by_starts(rigid, proof), exactly(rigid, proof)
    size = abs(exact) + 1 + Fraction(unit * float((numbers * np.diff(edges)).sum()))
    assert exact - Fraction(1e-11) * size * len(rigid.pool) <= value <= exact


@pytest.mark.parametrize("seed", range(examples(4)))
@pytest.mark.parametrize("objective", SUMS)
def test_ascent_reaches_the_linear_program_over_starts(seed: int, objective: str) -> None:
    """In whole seconds, with an interval for each second, the best prices are duals of the program over all starts."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    room, n = int(rng.integers(1, 5)), int(rng.integers(2, 8))
    release, duration = rng.integers(0, 8, n), rng.integers(1, 9, n)
    gpus = rng.integers(1, room + 1, n)
    seen = _view(release, duration, gpus, room)
    goal = bounds.goal_of(seen, objective)
    found = prices.dearest(seen, goal, None)
    end = int((release + duration).max() + duration.sum())
    columns = [(j, s) for j in range(n) for s in range(release[j], end - duration[j] + 1)]
    cost = [goal.weight[j] * (max(s + duration[j], goal.earliest[j]) - release[j]) for j, s in columns]
    of = {machine.code: machine.value for machine in bounds.machines_of(seen)}
    use = np.zeros((len(of) * end, len(columns)))
    for c, (j, s) in enumerate(columns):
        for d, value in enumerate(of.values()):
            use[d * end + s : d * end + s + duration[j], c] = value[j]
    once = np.array([[float(k == j) for k, _ in columns] for j in range(n)])
    best = linprog(cost, use, np.ones(len(use)), once, np.ones(n)).fun
    assert best * (1 - 3e-3) - 1e-12 <= found.bound <= best * (1 + 1e-9)


def _view(release: Any, duration: Any, gpus: Any, room: int) -> Any:
    from test_rigid import view

    return view([tuple(map(int, line)) for line in zip(release, duration, gpus, strict=True)], room=room)


def test_negative_prices_and_intervals_that_do_not_end_with_ticks_are_refused() -> None:
    seen = _view([0, 0, 1], [5, 4, 3], [2, 1, 2], 2)
    data = json.loads(to_json(seen.instance))
    found = MethodTask(*sent(seen.instance), "rigid.starts", limits=Limits(nodes=1)).run()
    proof = plain(found.certificate)
    assert float(checker.check(proof, data)) == pytest.approx(found.row.own_bound)
    edges, rows = proof["edges"], proof["prices"]
    for change, told in (
        ({"edges": [edges[0] + 0.5, *edges[1:]]}, "ticks"),
        ({"edges": [*edges[:-1], edges[-2]]}, "does not go on"),
        ({"edges": [*edges[:-1], 2**61]}, "does not go on"),
        ({"prices": [[-1, *row[1:]] for row in rows]}, "negative or few"),
        ({"prices": [row[1:] for row in rows]}, "negative or few"),
        ({"prices": [*rows, rows[0]]}, "number of machines"),
    ):
        with pytest.raises(checker.RefusedError, match=told):
            checker.check(signed(proof | change, data), data)
