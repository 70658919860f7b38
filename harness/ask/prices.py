"""The prices that decide: a primal–dual algorithm step by step, and the bound that its own prices prove.

>>> import schedgap as sg
>>> found = sg.prices("hadar.online", "gen/20jobs")  # doctest: +SKIP

:mod:`schedgap.heuristics.duals` says what a step is. The proof's dual D is not a bound if one of its steps fails. The
*certificate* is one: the rule of the problem takes the algorithm's final prices, computes every job's largest payoff
from the raw instance, and adds what all capacity costs. Beside it is the bound of the best prices that column
generation finds, certified by the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from schedgap.certificates import REFUSED, told
from schedgap.harness.check import judge_asked
from schedgap.harness.engine.certificates import certificate
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.duals import PriceRun, PriceStep
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.instances import load
from schedgap.instances.arrays import Array
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.models import oracle
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.provers.registry import prove
from schedgap.models.registry import Outcome

TIME_LIMIT_S = 60.0
"""Limit of column generation for the best prices, in seconds."""


@dataclass(frozen=True, eq=False)
class PricesFound:
    """The steps of a run, and what two sets of prices prove.

    Attributes
    ----------
    method, instance
        Id of the method, and the instance.
    problem, unit
        Id of the problem, and the unit of its objective.
    run
        The steps.
    objective
        Total worth of the decision, by the checker.
    own, best
        Certificates: at the algorithm's own final prices, and at the best ones of column generation. ``None`` if the
        rule refuses them; `reasons` says why.
    reasons
        Why a certificate is missing, by ``"own"`` and ``"best"``.
    best_rows
        The best prices, in the shape of ``run.rows``; ``None`` without them.
    """

    method: str
    instance: Instance
    problem: str
    unit: str
    run: PriceRun
    objective: float
    own: Mapping[str, Any] | None
    best: Mapping[str, Any] | None
    reasons: Mapping[str, str]
    best_rows: Array | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all jobs."""
        return tuple(job.id for job in self.instance.jobs)

    @property
    def own_bound(self) -> float | None:
        """The bound that the algorithm's own final prices prove."""
        return None if self.own is None else float(self.own["bound"])

    @property
    def best_bound(self) -> float | None:
        """The bound that the best prices prove."""
        return None if self.best is None else float(self.best["bound"])

    @property
    def broken(self) -> tuple[PriceStep, ...]:
        """The steps for which Definition 1 fails."""
        return tuple(filter(self.run.breaks, self.run.steps))

    @property
    def behind(self) -> tuple[PriceStep, ...]:
        """The steps for which the inequality of Lemma 1 fails."""
        return tuple(filter(self.run.behind, self.run.steps))

    @property
    def columns(self) -> dict[str, Sequence[Any]]:
        """The steps as columns by name, with an entry per scheduled job."""
        run = self.run
        return {
            "job": [self.ids[step.job] for step in run.steps],
            "worth": [step.worth for step in run.steps],
            "paid": [step.paid for step in run.steps],
            "payoff": [step.payoff for step in run.steps],
            "rise": [step.rise for step in run.steps],
            "delta_primal": [step.primal for step in run.steps],
            "delta_dual": [step.dual for step in run.steps],
            "primal": run.primal.tolist(),
            "dual": run.dual.tolist(),
            "needed": [step.needed for step in run.steps],
            "definition_1": [not run.breaks(step) for step in run.steps],
            "lemma_1": [not run.behind(step) if run.ratio else None for step in run.steps],
            "where": [run.place(step.cell) for step in run.steps],
        }

    @property
    def records(self) -> list[dict[str, Any]]:
        """The steps as records."""
        columns = self.columns
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @property
    def table(self) -> pd.DataFrame:
        """The steps as a data frame."""
        return pd.DataFrame(self.columns)

    def __repr__(self) -> str:
        return f"PricesFound({self.method} on {self.instance.name}, {len(self.run.steps)} steps)"


def prices(
    method: str, instance: str | Instance, *, seed: int = 0, best: bool = True, time_limit_s: float = TIME_LIMIT_S
) -> PricesFound:
    """Run a primal–dual algorithm, and return its steps and the bounds that prices prove.

    Parameters
    ----------
    method
        Id of a heuristic whose steps are known, with its settings: ``hadar.online?mode=incremental&payoff=lifetime``.
    instance
        Instance, or a reference to one.
    seed
        For algorithms that draw.
    best
        Whether to find the best prices, too.
    time_limit_s
        Limit for finding them; any prices prove a bound.

    Raises
    ------
    UsageError
        If no steps of the method are known, or its decision breaks a rule.
    NotApplicableError
        If the method does not apply.
    """
    spec = posting(method)
    where = load(instance) if isinstance(instance, str) else instance
    view, options = spec.view(where), SolveOptions(time_limit_s=time_limit_s)
    decision = spec.decide(where, seed, oracle)
    verdict = judge_asked(view, decision, spec.problem, spec.claims)
    if verdict.violations:
        raise UsageError(f"{method}: its decision breaks a rule: {verdict.violations[0]}")
    assert spec.steps is not None
    run = spec.steps(view, decision)
    proofs: dict[str, Mapping[str, Any] | None] = {"own": None, "best": None}
    reasons: dict[str, str] = {}
    for name, given in [("own", run.rows), *([("best", None)] if best else [])]:
        outcome = Outcome(Solution("feasible", "", bound=-math.inf), None, given)
        about = {"instance": where.fingerprint, "method": method, "problem": spec.problem}
        try:
            multipliers = prove(spec.problem, view, outcome, options)
            proofs[name] = certificate(about, multipliers or {}, where.plain)
        except REFUSED as reason:
            reasons[name] = told(reason)
    found = proofs["best"]
    posed = PAPERS.get(spec.paper).problem(spec.problem)
    return PricesFound(
        method=spec.id,
        instance=where,
        problem=posed.id,
        unit=posed.unit,
        run=run,
        objective=float(verdict.objective or 0.0),
        own=proofs["own"],
        best=found,
        reasons=reasons,
        best_rows=_rows(found, run.rows.shape),
    )


def _rows(proof: Mapping[str, Any] | None, shape: tuple[int, ...]) -> Array | None:
    """Return the prices in a certificate, without those of whole units, which come after the resources of a class."""
    if proof is None:
        return None
    prices = np.array(proof["prices"][0], float).reshape(*shape[:-2], -1, shape[-1])
    return np.asarray(prices[..., : shape[-2], :] * float(proof["unit"]))


def posting(method: str) -> HeuristicSpec:
    """Return the spec of a heuristic whose steps are known; raise `UsageError` for any other method."""
    spec = HEURISTICS.get(method) if method in HEURISTICS else None
    if spec is None or spec.steps is None:
        known = ", ".join(spec.id for spec in HEURISTICS if spec.steps and not spec.settings)
        raise UsageError(f"{method}: no steps are known of it, only of these: {known}")
    return spec
