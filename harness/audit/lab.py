"""What checks of claims work with: seeded randomness, an effort, and certified rows of small instances."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from schedgap import models
from schedgap.harness.audit.row import Count, Finding, Witness
from schedgap.harness.compare.row import Row
from schedgap.harness.compare.run import compare_here, proved_ratio
from schedgap.harness.engine.task import Limits
from schedgap.harness.verify import TOLERANCE, VERIFIERS
from schedgap.instances import load
from schedgap.instances.catalogue import references
from schedgap.instances.schema import Instance
from schedgap.models.solve import SolveOptions


class Lab(Count):
    """Where one claim is tried, and its cases are counted; the same for the same claim, seed and effort.

    `effort` is a factor on how many random cases are tried. `numbers` are those that count, by name; `also` are
    witnesses beside the smallest counterexample.
    """

    def __init__(self, claim: str, seed: int = 0, effort: float = 1.0) -> None:
        super().__init__()
        self.claim, self.seed, self.effort = claim, seed, effort
        self.numbers: Mapping[str, Any] = {}
        self.also: Sequence[Witness] = ()
        self._narrower: list[Count] = []

    def within(self, scope: str) -> Count:
        """Return the count of a narrower scope."""
        self._narrower.append(Count(scope))
        return self._narrower[-1]

    def finding(self, text: str) -> Finding:
        """Return what was found; `text` says which cases were tried."""
        counts = [Count(**count.as_dict()) for count in (self, *self._narrower)]
        return Finding(self.claim, counts, text, self.numbers, [one for one in (self.witness, *self.also) if one])

    def rng(self, name: str = "") -> np.random.Generator:
        """Return a stream of random numbers of this claim."""
        return np.random.default_rng([self.seed, zlib.crc32(f"{self.claim}/{name}".encode())])

    def times(self, usual: int) -> int:
        """Return how many random cases to try: `usual` at effort 1, and one at least."""
        return max(1, round(usual * self.effort))

    def drawn(self, draw: Callable[..., Instance], usual: int, name: str = "", **size: Any) -> list[Instance]:
        """Return as many random instances, from a stream of their own."""
        rng = self.rng(name)
        return [draw(rng, **size) for _ in range(self.times(usual))]


def certified(instance: Instance, methods: Sequence[str]) -> dict[str, Row]:
    """Return certified rows by method; models run to optimality, whatever their size, or to a time limit of 20 s."""
    limits = Limits(time_limit_s=20.0, rel_gap=0.0)
    return {row.method: row for row in compare_here(instance, methods, limits=limits).rows}


def solved(method: str, view: Any) -> models.Outcome:
    """Run a model on a view to optimality; raise `AssertionError` if the checker contradicts what it decides."""
    spec = models.get(method)
    outcome = spec.run(view, SolveOptions(rel_gap=0.0))
    if outcome.decision is not None:
        found = VERIFIERS.get(spec.paper).check(view, outcome.decision, spec.problem, spec.claims).violations
        if found:
            raise AssertionError(f"{method}: {found[0]}")
    return outcome


def measured(
    lab: Lab,
    drawn: Iterable[Instance],
    method: str,
    exact: tuple[str, ...],
    what: str,
    inside: Callable[[Instance], bool] = lambda instance: True,
) -> str:
    """Count how often the guarantee of a method was exceeded, and say so with its largest proved ratio.

    Beside the instances `drawn`, of which `what` tells in the text, the worst ones of the catalogue are tried. The
    models `exact` prove optima. `inside` returns whether what the theorem assumes holds on an instance; others are
    measured, and do not count.
    """
    outside, found = Count("beyond the assumptions"), list[tuple[float, float, Witness]]()
    for instance in (*drawn, *(load(ref) for ref in references() if ref.startswith("worst/"))):
        row = certified(instance, [method, *exact])[method]
        ratio, promised = proved_ratio(row), row.guarantee_factor
        if ratio is None or promised is None:
            continue
        shown = f"{method} is {ratio:.4g} from the proved optimum {row.best_bound:.6g}; guarantee here: {row.guarantee}"
        within = lab if inside(instance) else outside
        within.add(ratio <= promised * (1 + TOLERANCE), instance, [method, *exact], shown)
        found.append((ratio, promised, Witness(instance, (method, *exact), shown)))
    if not found:
        return f"no optimum could be proved among {what}"
    ratio, promised, witness = max(found, key=lambda one: one[0])
    lab.numbers = {"largest_ratio": ratio, "guarantee_there": promised, "instances": lab.tested}
    lab.also = () if lab.failed else [witness]
    often = f"exceeded {lab.failed} times" if lab.failed else "not exceeded"
    text = f"{often} on {lab.tested} instances with proved optimum ({what})"
    text += f"; largest proved ratio {ratio:.4g}, where {promised:.4g} is promised"
    more = f"; exceeded {outside.failed} times on {outside.tested} more that violate an assumption"
    return text + (more if outside.tested else "")


class Printed(NamedTuple):
    """A printed number: what it is, its value, what the paper's own numbers make, and half a unit of its last place."""

    what: str
    value: float
    made: float
    tolerance: float

    @property
    def right(self) -> bool:
        """Whether the printed number is the rounded one."""
        return abs(self.value - self.made) <= self.tolerance * (1 + 1e-9)


def recomputed(lab: Lab, *numbers: Printed) -> str:
    """Count how many of the printed numbers are what the paper's own numbers make, and list them."""
    lab.numbers = {n.what: n.made for n in numbers}
    for number in numbers:
        lab.add(number.right)
    return "; ".join(f"{n.what}: {n.made:.4g}, printed {n.value:g}" for n in numbers)
