"""Tools for checks of claims: seeded randomness, an effort, and certified rows of small instances."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from schedgap import models
from schedgap.harness.check import TOLERANCE, judge_asked
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.adversary.families import FamilyPoint, point
from schedgap.harness.studies.audit.row import Count, Finding, Witness
from schedgap.harness.studies.compare.methods import promised_of
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances import load
from schedgap.instances.catalogue import references
from schedgap.instances.families import HARD
from schedgap.instances.schema import Instance
from schedgap.models.engine.solve import SolveOptions


class ClaimLab(Count):
    """The test of one claim, with the count of its cases; it repeats exactly for the same claim, seed and effort.

    `effort` multiplies the number of random cases. `numbers` has the key figures by name; `also` has witnesses in
    addition to the smallest counterexample. `refuted` names a guarantee that a row states and a verified decision
    exceeds.
    """

    def __init__(self, claim: str, seed: int = 0, effort: float = 1.0) -> None:
        super().__init__()
        self.claim, self.seed, self.effort = claim, seed, effort
        self.numbers: Mapping[str, Any] = {}
        self.also: Sequence[Witness] = ()
        self.refuted = ""
        self._narrower: list[Count] = []

    def within(self, scope: str) -> Count:
        """Add a scope that is narrower than the claim's, and return the count of its cases."""
        self._narrower.append(Count(scope))
        return self._narrower[-1]

    def finding(self, text: str) -> Finding:
        """Return the finding; `text` describes the cases that were tried."""
        counts = [Count(**count.as_dict()) for count in (self, *self._narrower)]
        witnesses = [w for w in (self.witness, *self.also) if w]
        return Finding(self.claim, counts, text, self.numbers, witnesses, self.refuted)

    def rng(self, name: str = "") -> np.random.Generator:
        """Return a random number generator for this claim; each name has its own stream."""
        return np.random.default_rng([self.seed, zlib.crc32(f"{self.claim}/{name}".encode())])

    def times(self, usual: int) -> int:
        """Return the number of random cases to try: `usual` at effort 1, and at least one."""
        return max(1, round(usual * self.effort))

    def drawn(self, draw: Callable[..., Instance], usual: int, name: str = "", **size: Any) -> list[Instance]:
        """Return :meth:`times` random instances, from the stream `name`."""
        rng = self.rng(name)
        return [draw(rng, **size) for _ in range(self.times(usual))]


def certified(instance: Instance, methods: Sequence[str]) -> dict[str, Row]:
    """Return certified rows by method; models of any size run to optimality or for 1,000 nodes."""
    limits = Limits(nodes=1000, rel_gap=0.0)
    return {row.method: row for row in compare_here(instance, methods, limits=limits, probes=False).rows}


def solved(method: str, view: Any) -> models.Outcome:
    """Run a model on a view to optimality; raise `AssertionError` if its decision fails the check."""
    spec = models.get(method)
    outcome = spec.run(view, SolveOptions(rel_gap=0.0))
    decision = outcome.decision
    if decision is not None and (broken := judge_asked(view, decision, spec.problem, spec.claims).violations):
        raise AssertionError(f"{method}: {broken[0]}")
    return outcome


def measured(
    lab: ClaimLab,
    drawn: Iterable[Instance],
    method: str,
    exact: tuple[str, ...],
    what: str,
    inside: Callable[[Instance], bool] = lambda instance: True,
) -> str:
    """Count how often the guarantee of a method is exceeded, and describe the largest ratio that is shown.

    The instances `drawn`, which `what` describes in the text, and the worst ones of the catalogue are tried. An
    instance decides if a verified decision exceeds the guarantee, or a certified bound shows that none does. The models
    `exact` give both. `inside` returns whether an instance meets the theorem's assumptions; other instances are
    measured but do not count.
    """
    outside, ratios = Count("beyond the assumptions"), list[tuple[float, float, Witness]]()
    for instance in (*drawn, *(load(ref) for ref in references() if ref.startswith("worst/"))):
        row = certified(instance, [method, *exact])[method]
        lab.refuted = lab.refuted or (f"{method}: {row.refuted}" if row.refuted else "")
        if (ratio := row.ratio_at_least) is None or (promised := promised_of(row, instance)) is None:
            continue
        exceeded = promised.factor is not None and ratio > promised.factor * (1 + TOLERANCE)
        if promised.factor is None or (not exceeded and (row.ratio or math.inf) > promised.factor * (1 + TOLERANCE)):
            continue  # nothing is promised, or the certified bound leaves the matter open
        best = f"a verified decision of value {row.best_objective:.6g}"
        shown = f"{method} is {ratio:.4g} from {best}; guarantee here: {promised.text}"
        within = lab if inside(instance) else outside
        within.add(not exceeded, instance, [method, *exact], shown)
        ratios.append((ratio, promised.factor, Witness(instance, (method, *exact), shown)))
    if not ratios:
        return f"no instance decides among {what}"
    ratio, factor, witness = max(ratios, key=lambda entry: entry[0])
    lab.numbers = {"largest_ratio": ratio, "guarantee_there": factor, "instances": lab.tested}
    lab.also = () if lab.failed else [witness]
    often = f"exceeded {lab.failed} times" if lab.failed else "not exceeded"
    text = f"{often} on {lab.tested} instances that decide ({what})"
    text += f"; largest ratio to a verified decision {ratio:.4g}, where {factor:.4g} is promised"
    more = f"; exceeded {outside.failed} times on {outside.tested} more that violate an assumption"
    return text + (more if outside.tested else "")


def on_family(lab: ClaimLab, family: str, method: str, value: int, against: str) -> FamilyPoint:
    """Count whether a method keeps its guarantee at a value of a family's parameter; return what was found.

    A witness is replayed with the method `against`, which does better. `family` may have further settings.
    """
    name, _, settings = family.partition("?")
    found = point(HARD.get(name), method, value, settings)
    instance = load(found.ref)
    shows = f"a verified decision is {found.ratio:.4g} times better than {method}; {found.guarantee} there"
    lab.add(not found.exceeded, instance, [method, against], shows)
    if found.shown and found.exceeded:
        lab.refuted = f"{method} on {instance.name}: {found.guarantee}, but {shows}"
    return found


class Printed(NamedTuple):
    """A printed number: description, value, value `made` from the paper's numbers, half a unit of its last place."""

    what: str
    value: float
    made: float
    tolerance: float

    @property
    def right(self) -> bool:
        """True if the printed number is the recomputed one, rounded."""
        return abs(self.value - self.made) <= self.tolerance * (1 + 1e-9)


def recomputed(lab: ClaimLab, *numbers: Printed) -> str:
    """Count the printed numbers that follow from the paper's own numbers, and list all of them."""
    lab.numbers = {n.what: n.made for n in numbers}
    for number in numbers:
        lab.add(number.right)
    return "; ".join(f"{n.what}: {n.made:.4g}, printed {n.value:g}" for n in numbers)
