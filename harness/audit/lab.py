"""What checks of claims work with: seeded randomness, an effort, and certified rows of small instances."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    from schedgap.harness.rows import Row
    from schedgap.models import Outcome

EXACT_GAP = 0.0


@dataclass(frozen=True)
class Lab:
    """Where one claim is tried; the same for the same claim, seed and effort, whatever else is tried.

    Attributes
    ----------
    claim
        Id of the claim.
    seed, effort
        Seed, and factor on how many random cases are tried.
    """

    claim: str
    seed: int = 0
    effort: float = 1.0

    def rng(self, name: str = "") -> np.random.Generator:
        """Return a stream of random numbers of this claim."""
        return np.random.default_rng([self.seed, zlib.crc32(f"{self.claim}/{name}".encode())])

    def times(self, usual: int, least: int = 1) -> int:
        """Return how many random cases to try: `usual` at effort 1."""
        return max(least, round(usual * self.effort))


def certified(instance: Instance, methods: Sequence[str], time_limit_s: float = 20.0) -> dict[str, Row]:
    """Return certified rows by method; models run to optimality, whatever their size, or to the time limit."""
    from schedgap.harness.comparing import certified as certify
    from schedgap.harness.engine.limits import Limits

    limits = Limits(time_limit_s=time_limit_s, rel_gap=EXACT_GAP)
    return {row.method: row for row in certify(instance, methods, limits=limits)}


def solved(method: str, view: Any) -> Outcome:
    """Run a model on a view to optimality, and re-check what it decides.

    Raises
    ------
    AssertionError
        If the checker contradicts it.
    """
    from schedgap import models
    from schedgap.harness.verify import VERIFIERS
    from schedgap.models.solve import SolveOptions

    spec = models.get(method)
    outcome = spec.run(view, SolveOptions(rel_gap=EXACT_GAP))
    if outcome.decision is not None:
        found = VERIFIERS.get(spec.paper).check(view, outcome.decision, spec.problem, spec.claims).violations
        if found:
            raise AssertionError(f"{method}: {found[0]}")
    return outcome
