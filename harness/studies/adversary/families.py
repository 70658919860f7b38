"""How much worse methods get on hard families, against the verified decisions of somebody who knows the future."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    import pandas as pd

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


def point(family: HardFamily, method: str, value: int, settings: str | None = None) -> FamilyPoint:
    """Run a method at a value of the family's parameter; raise `AssertionError` if a decision fails the check.

    `settings` are those of other parameters, ``slots=5&rise=0.25``, by default the worst ones for the method.
    """
    ref = family.worst(method, value) if settings is None else family.ref(value, settings)
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


def ratios_on(instance: Instance, problem: str, best: float) -> dict[str, float]:
    """Return the ratios of all heuristics of a problem to a decision of value `best`, the largest first.

    Methods that complete nothing, or do not apply, are not listed.
    """
    methods = [spec.id for spec in HEURISTICS if spec.problem == problem and not spec.by_name]
    rows = compare_here(instance, methods, limits=ALL, probes=False).rows
    found = {row.method: row.replace(best_objective=best).ratio_at_least for row in rows}
    return dict(sorted(((name, ratio) for name, ratio in found.items() if ratio), key=lambda one: -one[1]))


def as_bad(ratios: Mapping[str, float], method: str, ratio: float) -> dict[str, float]:
    """Return those `ratios` on an instance whose heuristics lose at least half as much there as `method`, with `ratio`.

    What a method loses is its ratio minus 1. Other settings of the same method are not listed.
    """
    mine = base_id(method)
    return {name: one for name, one in ratios.items() if one - 1 >= (ratio - 1) / 2 and base_id(name) != mine}


_KNOWN = {
    "hadar.utility": (
        "(1 + √k)², k: ratio of values per GPU and slot",
        "Baruah et al., Real-Time Systems 4, 1992: jobs with deadlines on one processor, with preemption",
    ),
    "admission.utility": (
        "√U for one worker and values from 1 to U",
        "El-Yaniv, Fiat, Karp, Turpin, Algorithmica 30, 2001: one sale, U known in advance",
    ),
    "zhou.ps.completion": (
        "2",
        "Hoogeveen, Vestjens, IPCO 1996: one machine, no preemption, deterministic algorithms",
    ),
    "synergy.run": (
        "2 − 2/(n + 1) if run times are unknown, 1 on one machine if they are known",
        "Motwani, Phillips, Torng, Theoretical Computer Science 130, 1994: n jobs at once on one machine, preemption",
    ),
}
_SAME = {"hadar.forked": "hadar.utility", "zhou.ra.completion": "zhou.ps.completion"}

ANY: Mapping[str, tuple[str, str]] = {**_KNOWN, **{name: _KNOWN[of] for name, of in _SAME.items()}}
"""By problem: the best lower bound that we know on the ratio of any online algorithm, and its source.

The sources are about special cases of the problems. Problems whose jobs are all known are not online and not listed.
"""

_OF_ZHOU = {
    "online": "4α (Theorem 5); with α = 4, where A_dual gets the weight it needs (Lemma 1)",
    "amaxweight": "2 log λ (Theorem 3): refuted as printed",
    "amincost": "1 (Theorems 1 and 6): refuted as printed, holds as repaired",
}
THEOREMS: Mapping[str, str] = {
    "hadar.online": "2α (Theorem 2): refuted as printed, by 8 jobs",
    **{f"zhou.{arch}.{name}": text for arch in ("ps", "ra") for name, text in _OF_ZHOU.items()},
    "synergy.tune": 'none; "within 10 %" (section 5.6): measured, refuted as a rule',
}
"""By algorithm: the ratio that its paper proves or reports; others have none."""


def worst_cases(families: Sequence[str] = ()) -> pd.DataFrame:
    """Return a line for each family and method: ratios, growth, the theorem's ratio, and what any algorithm must lose.

    `families` are names of families, by default all. Columns: `method`, `family`, `largest` (ratio at the largest value
    of the parameter), `instance`, `growth` (fitted exponent), `known` (what is known of it), `theorem` (the ratio that
    the paper proves), `guarantee` (the theorem's ratio there), `any_algorithm` (a lower bound for all online
    algorithms), `source`, `also` (other heuristics that lose at least half as much at the third value).
    """
    import pandas as pd

    lines = []
    others: dict[tuple[str, str], dict[str, float]] = {}
    for family in map(HARD.get, families or HARD.ids()):
        for method in family.methods:
            points = curve(family.id, method)
            last, middle = points[-1], points[2]
            there = middle.ref, find_spec(method).problem
            if there not in others:
                others[there] = ratios_on(load(middle.ref), there[1], middle.answer)
            known, source = ANY.get(there[1], ("", ""))
            lines.append(
                {
                    **{"method": method, "family": family.id, "largest": last.ratio, "instance": last.ref},
                    **{"growth": exponent(points), "known": family.growth},
                    **{"theorem": THEOREMS.get(base_id(method), "none"), "guarantee": last.guarantee or ""},
                    **{"any_algorithm": known, "source": source},
                    "also": ", ".join(as_bad(others[there], method, middle.ratio)),
                }
            )
    return pd.DataFrame(lines)
