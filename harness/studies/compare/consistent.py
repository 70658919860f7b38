"""Consistency of stored rows: fields that follow from the method, and fields that must not contradict each other.

Nothing can confirm the remaining fields: times, sizes, and what the solver claims (:data:`TOLD`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schedgap.harness.studies.compare.methods import Spec
from schedgap.harness.studies.compare.row import FAILED, OF_METHODS, PHASES, Row
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.registry import PAPERS
from schedgap.models import ModelSpec
from schedgap.models.engine.solve import CROSS_CHECK_TOLERANCE, SolveOptions, agree

TOLD = (
    *("seed", "limits", "key", "status", "claimed_bound", "termination", "solver", "cross_check", "reason"),
    *(*PHASES, "total_s", "fastest_s", "slowest_s", "integral_s", "core_share"),
    *("nodes", "iterations", "rows", "columns", "nonzeros", "peak_mb"),
)
"""Fields of a row that nothing can confirm. :func:`contradictions` compares some of them with each other."""

ANSWERED = frozenset({"optimal", "feasible", "gap left", "time limit with incumbent"})
"""Statuses of rows with a decision, or with a bound of a model that makes none."""

OF_MODELS = ("claimed_bound", "own_bound", "termination", "solver", "nodes", "cross_check", "integral_s")
"""Fields that only models fill in."""


OF_DECISIONS = ("metrics", "guarantee", "guarantee_factor")
"""Fields that need a decision."""


def of_method(spec: Spec) -> dict[str, Any]:
    """Return the fields of a row that are registered for its method."""
    problem = PAPERS.get(spec.paper).problem(spec.problem)
    return dict(zip(OF_METHODS, (spec.paper, problem.id, spec.aims, spec.kind, problem.sense), strict=True))


def promised(spec: Spec, view: Any, decision: Any) -> Guarantee | None:
    """Return the guarantee that a row shows for a decision of a method.

    A factor below 1 is void: with weights of 0, Zhou's 2 log λ is 0, because its proof assumes λ > 2.
    """
    if isinstance(spec, ModelSpec):
        return None
    guarantee = spec.shown(view, decision) if spec.shown else spec.guarantee(view)
    return None if guarantee and guarantee.factor is not None and guarantee.factor < 1 else guarantee


def contradictions(row: Row, spec: Spec, meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each contradiction in a row, or with `meta`, the content of ``run.json``."""
    yield from _of_decisions(row)
    yield from _of_solvers(row, spec)
    if row.read_s is not None and row.total_s is not None and abs(row.took_s - row.total_s) > 1e-6 * row.total_s:
        yield f"its times add up to {row.took_s:.6g} s, not to {row.total_s:.6g} s"
    limits = meta.get("limits") or {}
    several = any(isinstance(one, dict) for one in limits.values())
    if row.limits not in (limits if several or not limits else {""}) and limits:
        yield f"its limits are {row.limits!r}, which the run did not have"
    if meta.get("seeds") and row.seed not in meta["seeds"]:
        yield f"its seed is {row.seed}, which the run did not have"
    if row.status == "optimal" and not agree(row.objective, row.claimed_bound):
        yield f"it is optimal, but its own bound is {row.claimed_bound:.9g}"


def _of_decisions(row: Row) -> Iterator[str]:
    """Yield a sentence for each field that speaks of a decision that is missing, or is silent about one that exists."""
    decided = row.objective is not None
    if decided and row.verified is None:
        yield "it has an objective, but says nothing of a check"
    if not decided and (row.verified is not None or row.violations or any(getattr(row, x) for x in OF_DECISIONS)):
        yield "it has properties of a decision, but no objective"
    if row.verified and row.violations:
        yield f"it is verified, with a violation: {row.violations[0]}"
    if row.verified and row.cross_check is not None and row.cross_check > CROSS_CHECK_TOLERANCE:
        yield "it is verified, but CBC finds another optimum"
    if row.status in ANSWERED and not (decided or row.claimed_bound is not None):
        yield f"it is {row.status}, without a decision or a bound"
    if decided and row.status not in ANSWERED:
        yield f"it is {row.status}, with a decision"


def _of_solvers(row: Row, spec: Spec) -> Iterator[str]:
    """Yield a sentence for each field that speaks of a solver that did not run, or is silent about one that did."""
    model = isinstance(spec, ModelSpec)
    ran = row.termination is not None if model else row.status == "feasible"
    if ran != (row.status in ANSWERED or row.status == "infeasible") and row.status not in FAILED:
        yield f"it is {row.status}, but {'a' if ran else 'no'} method ended"
    if not ran and not row.reason:
        yield f"it is {row.status} for no reason"
    if not (model and ran) and any(getattr(row, name) is not None for name in OF_MODELS):
        yield "no model ran, but it has what only models have"
    if model and ran and row.solver != spec.settings.get("solver", SolveOptions.solver):
        yield f"its solver is {row.solver!r}, which its method does not call"
    if row.own_bound is not None and row.claimed_bound is None:
        yield "it has a certificate for no bound"
