"""How much worse methods get on hard families, against the verified decisions of somebody who knows the future."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.harness.check import judge
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.methods import find_spec, promised_of
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics import HEURISTICS
from schedgap.instances import load
from schedgap.instances.families import HARD, HardFamily
from schedgap.instances.parameters import base_id
from schedgap.instances.schema import Instance

ALL = Limits(all_sizes=True)
"""Families grow beyond the sizes up to which methods run unasked."""


@dataclass(frozen=True)
class FamilyPoint:
    """A method on an instance of a family: its ratio to a verified decision is at least `ratio`.

    `guarantee` and `factor` are what the row states or, if it states nothing, what the theorem promises on the
    instance; `shown` says whether the row states it. `objective` is the method's, `answer` that of the decision; `ref`
    names the instance.
    """

    ref: str
    method: str
    value: int
    ratio: float
    objective: float
    answer: float
    guarantee: str | None
    factor: float | None
    shown: bool

    @property
    def exceeded(self) -> bool:
        """True if the ratio is above the guarantee."""
        return self.factor is not None and self.ratio > self.factor * (1 + 1e-9)


def answer(family: HardFamily, instance: Instance, problem: str) -> float:
    """Return the objective of a family's own decision; raise `AssertionError` if the checker rejects it."""
    verdict = judge(instance, family.answer(instance, problem), problem)
    if verdict.violations or verdict.objective is None:
        raise AssertionError(f"the answer of {family.id} is wrong: {verdict.violations[:1]}")
    return verdict.objective


def point(family: HardFamily, method: str, value: int, settings: str = "") -> FamilyPoint:
    """Run a method at a value of the family's parameter; raise `AssertionError` if a decision fails the check.

    `settings` are those of other parameters: ``slots=5&rise=0.25``.
    """
    ref = "&".join(filter(None, (family.ref(value), settings)))
    instance = load(ref)
    (row,) = compare_here(instance, method, limits=ALL, probes=False).rows
    best = answer(family, instance, row.problem)
    ratio = row.replace(best_objective=best).ratio_at_least
    if row.objective is None or ratio is None:
        raise AssertionError(f"{method} on {instance.name}: {row.status}, {row.reason or row.violations}")
    promised = promised_of(row, instance)
    text, factor = (promised.text, promised.factor) if promised else (None, None)
    shown = row.guarantee_factor is not None
    return FamilyPoint(ref, method, value, ratio, row.objective, best, text, factor, shown)


def curve(family: str, method: str, most: int | None = None) -> list[FamilyPoint]:
    """Return the points of a family's curve for a method, up to the value `most` of the parameter."""
    found = HARD.get(family)
    return [point(found, method, value) for value in found.values if most is None or value <= most]


def exponent(points: Sequence[FamilyPoint]) -> float:
    """Return the exponent of growth: the slope of the logarithm of the ratio, by that of the parameter.

    It is fitted by least squares to the larger half of the values.
    """
    later = [one for one in points if one.value > 0][len(points) // 2 :]
    x, y = np.log([one.value for one in later]), np.log([one.ratio for one in later])
    return float(np.polyfit(x, y, 1)[0])


def families_of(method: str) -> list[HardFamily]:
    """Return the families on which a method, or one with other settings, gets worse."""
    return [family for family in HARD if base_id(method) in map(base_id, family.methods)]


def others(family: str, value: int) -> dict[str, float]:
    """Return the ratios of all heuristics of the family's problems at a value of its parameter, the largest first.

    Methods that complete nothing there, or are left out at this size, are not listed.
    """
    found = HARD.get(family)
    instance = load(found.ref(value))
    ratios = dict[str, float]()
    for problem in dict.fromkeys(find_spec(method).problem for method in found.methods):
        best = answer(found, instance, problem)
        methods = [spec.id for spec in HEURISTICS if spec.problem == problem]
        for row in compare_here(instance, methods, limits=ALL, probes=False).rows:
            ratio = row.replace(best_objective=best).ratio_at_least
            if ratio is not None:
                ratios[row.method] = ratio
    return dict(sorted(ratios.items(), key=lambda one: -one[1]))
