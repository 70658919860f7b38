"""A search for the instance on which a heuristic is furthest from the proved optimum."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.harness.adversary.mutations import Document, document, mutated, possible, simpler
from schedgap.harness.adversary.row import Proved, Slice
from schedgap.harness.compare.certify import proved_ratio
from schedgap.harness.compare.methods import find_spec
from schedgap.harness.compare.row import Row
from schedgap.harness.compare.run import compare_here
from schedgap.harness.engine.limits import Limits
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.instances.errors import UsageError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance
from schedgap.models import MODELS, ModelSpec

ELITE = 6
"""So many of the worst instances are changed further."""

FRESH = 0.15
"""Share of new random instances among those that are tried."""

EXACT = Limits(time_limit_s=2.0, rel_gap=0.0)
"""What a method may take on a small instance."""

LEAST_GAIN = 1e-6
"""Relative difference of ratios below which one instance is no worse than another."""

KEPT = 1e-3
"""So much of the ratio a simpler instance may lose."""


def provers(heuristic: HeuristicSpec) -> list[ModelSpec]:
    """Return the exact models of a heuristic's problem."""
    return [model for model in MODELS if model.problem == heuristic.problem and model.kind == "exact"]


def searchable() -> list[HeuristicSpec]:
    """Return the online heuristics to whose problems there are exact models and small instances."""
    return [h for h in HEURISTICS if h.kind == "online" and provers(h) and h.paper in RANDOM]


@dataclass(frozen=True)
class Lab:
    """Where a heuristic is tried.

    Attributes
    ----------
    heuristic
        Its id.
    models
        Models that prove optima, in the order in which they are asked; see :func:`usable`.
    anywhere
        Count instances, too, on which a guarantee of the paper promises nothing.
    limits
        What one of them may take on a small instance.
    """

    heuristic: str
    models: tuple[str, ...]
    anywhere: bool = False
    limits: Limits = EXACT

    def prove(self, instance: Instance) -> Proved | None:
        """Return how far the heuristic is from the proved optimum, or ``None`` where nothing is proved."""
        for model in self.models:
            row, other = compare_here(instance, [self.heuristic, model], limits=self.limits).rows[::-1]
            row, other = (row, other) if row.method == self.heuristic else (other, row)
            if not self.anywhere and self._outside(row):
                return None
            ratio, optimum = proved_ratio(row), row.best_bound
            if other.verified and ratio is not None and row.objective is not None and optimum is not None:
                promised = row.guarantee, row.guarantee_factor
                return Proved(instance, other.method, ratio, row.objective, optimum, *promised)
            if row.status == "skipped" or not row.verified:
                return None
        return None

    def _outside(self, row: Row) -> bool:
        """Return whether the paper has a guarantee, but none that holds on this instance."""
        return row.guarantee is not None and not (row.guarantee_factor and math.isfinite(row.guarantee_factor))


@functools.cache
def usable(heuristic: str) -> tuple[str, ...]:
    """Return the models that prove optima of small instances, the quickest first (measured on a few).

    Raises
    ------
    UsageError
        If none does.
    """
    spec = find_spec(heuristic)
    assert isinstance(spec, HeuristicSpec)
    rng = np.random.default_rng(0)
    cases = [RANDOM.get(spec.paper).draw(rng) for _ in range(3)]
    found: dict[str, float] = {}
    for model in provers(spec):
        lab = Lab(heuristic, (model.id,))
        lab.prove(cases[0])  # compiles and imports
        began = time.perf_counter()
        count = sum(lab.prove(case) is not None for case in cases)
        if count:
            found[model.id] = (time.perf_counter() - began) / count**2
    if not found:
        raise UsageError(f"no model proves an optimum of {spec.problem} on small instances of {spec.paper}")
    return tuple(sorted(found, key=lambda name: found[name]))


def search(lab: Lab, seed: int, start: Sequence[Instance], tries: int, seconds: float, most: int) -> Slice:
    """Try random instances and changes of the worst ones known.

    Parameters
    ----------
    lab
        Heuristic and models.
    seed
        Seed of the changes.
    start
        Instances to begin with, beside random ones.
    tries, seconds
        The search ends after so many instances, or so much time.
    most
        Most jobs (tenants) of an instance.
    """
    rng, ends = np.random.default_rng(seed), time.perf_counter() + seconds
    paper = find_spec(lab.heuristic).paper
    elite: list[Proved] = [p for instance in start if (p := lab.prove(instance)) and math.isfinite(p.ratio)]
    nothing: Proved | None = None
    tried = proved = 0
    while tried < tries and time.perf_counter() < ends:
        tried += 1
        fresh = not elite or rng.random() < FRESH
        content = document(RANDOM.get(paper).draw(rng)) if fresh else mutated(_pick(elite, rng), rng)
        instance = possible(content, most)
        found = lab.prove(instance) if instance else None
        if found is None:
            continue
        proved += 1
        if math.isinf(found.ratio):
            nothing = nothing if nothing and nothing.size <= found.size else found
        else:
            elite = worst([*elite, found])
    return Slice(lab.heuristic, tuple(elite), nothing, tried, proved)


def _pick(elite: Sequence[Proved], rng: np.random.Generator) -> Document:
    """Return one of the worst instances, the worst one most often."""
    place = min(int(rng.geometric(0.4)) - 1, len(elite) - 1)
    return document(elite[place].instance)


def worst(found: Sequence[Proved]) -> list[Proved]:
    """Return the worst few, of equal ratios the smallest instance only."""
    ordered = sorted(found, key=lambda p: (-p.ratio, p.size))
    kept: list[Proved] = []
    for one in ordered:
        if not kept or one.ratio < kept[-1].ratio * (1 - LEAST_GAIN):
            kept.append(one)
    return kept[:ELITE]


def shrink(lab: Lab, found: Proved, tries: int, seconds: float = math.inf) -> Proved:
    """Return a simpler instance with (nearly) the same ratio: one thing at a time, until nothing more can go.

    Parameters
    ----------
    lab, found
        Where it was found, and what.
    tries, seconds
        Most simplifications, and most time.
    """
    least, ends = found.ratio * (1 - KEPT), time.perf_counter() + seconds
    for _ in range(tries):
        candidates = itertools.takewhile(lambda p: time.perf_counter() < ends, _simpler(lab, found))
        simple = next((p for p in candidates if p is not None and p.ratio >= least), None)
        if simple is None:
            return found
        found = simple
    return found


def _simpler(lab: Lab, found: Proved) -> Iterator[Proved | None]:
    for content in simpler(document(found.instance)):
        instance = possible(content, found.size)
        yield lab.prove(instance) if instance else None
