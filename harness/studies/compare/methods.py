"""Select registered methods (models and heuristics), and the decisions that models start from.

A model gets all decisions that are feasible in its problem, also those made for wider and narrower problems. The model
may start from them, and they may refute what the model claims. Heuristics that were not selected run for this purpose
as well; they are not in the table unless they fail a check. Nor are models that run at the end only for their bounds,
because a decision has no bound to be measured against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from schedgap.harness.check import judge, judge_asked
from schedgap.harness.studies.compare.row import Row, exact
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import base_id, stated
from schedgap.instances.registry import PAPERS, in_order, matching, unknown
from schedgap.instances.schema import Instance
from schedgap.models import MODELS, ModelSpec, oracle
from schedgap.models.engine.solve import Seed, SolveOptions

Spec = ModelSpec | HeuristicSpec


def find_spec(method: str) -> Spec:
    """Return the model or heuristic with this id."""
    return MODELS.get(method) if method in MODELS else HEURISTICS.get(method)


def specs() -> list[Spec]:
    """Return all registered methods, models first, papers in alphabetical order.

    Raise `UsageError` if a plug-in gave a heuristic the id of a model before the models were imported.
    """
    for spec in HEURISTICS:
        if spec.id in MODELS:
            raise UsageError(f"model {spec.id!r} is registered already; choose another id for the heuristic")
    everything: list[Spec] = [*MODELS, *HEURISTICS]
    return sorted(everything, key=lambda spec: spec.paper)


def select(methods: Iterable[str], papers: Iterable[str]) -> list[Spec]:
    """Return the methods that match a pattern, of these papers if any; raise `UnknownNameError` if one matches none."""
    wanted = {PAPERS.get(paper).id for paper in papers}
    everything = specs()
    candidates = [spec for spec in everything if not wanted or spec.paper in wanted]
    chosen: dict[str, Spec] = {}
    for pattern in methods:
        matches = matching(candidates, pattern)
        if not matches:
            raise UnknownNameError(unknown("method", pattern, [spec.id for spec in candidates]))
        named = base_id(pattern)
        chosen |= {spec.id: spec for spec in matches if base_id(spec.id) == named or not spec.by_name}
    return in_order(chosen, everything)


def solved_by(chosen: Iterable[Spec], solvers: Sequence[str]) -> list[Spec]:
    """Return the methods, each model once for every solver given.

    Raise `UsageError` if a solver is unknown, or set twice for a model.
    """
    solved: dict[str, Spec] = {}
    for spec in chosen:
        settings = [f"{'&' if '?' in spec.id else '?'}{stated({'solver': solver})}" for solver in solvers]
        ids = [spec.id + setting for setting in settings] if isinstance(spec, ModelSpec) and solvers else [spec.id]
        solved |= {one.id: one for one in map(find_spec, ids)}
    if solvers and not any(isinstance(one, ModelSpec) for one in solved.values()):
        raise UsageError(f"solver = {', '.join(solvers)}: no chosen method is a model, so there is nothing to solve")
    return list(solved.values())


def starts_from_decisions(spec: Spec) -> bool:
    """Return whether a method is a model that starts from known decisions, and has not been set to ignore them."""
    has_option = any(parameter.name == "seeded" for parameter in spec.parameters)
    return has_option and spec.settings.get("seeded", True) is True


def related(spec: Spec) -> list[HeuristicSpec]:
    """Return the heuristics whose decisions may be feasible for a model: one of their problems restricts the other."""
    paper = PAPERS.get(spec.paper)
    return [
        h
        for h in HEURISTICS
        if h.paper == spec.paper
        and not h.by_name
        and (spec.problem in paper.wider(h.problem) or h.problem in paper.wider(spec.problem))
    ]


BOUNDING = ("matheuristic", "relaxation", "bound", "exact")
"""Kinds of models that bound their problem, the cheapest first: column generation still gives an answer at sizes where
models that list all columns, or branch, give none."""


def bounding(paper: str, problem: str) -> list[ModelSpec]:
    """Return the models whose bounds hold for a problem: the nearest problem first, then the cheapest kind of model."""
    wider = PAPERS.get(paper).wider(problem)
    models = [spec for spec in MODELS if spec.problem in wider and spec.kind in BOUNDING]
    return sorted(models, key=lambda spec: (wider.index(spec.problem), BOUNDING.index(spec.kind)))


def seeds(spec: ModelSpec, view: Any, known: Iterable[tuple[str, Any]]) -> Sequence[Seed]:
    """Return the known (method, decision) pairs that pass the checker for a model's problem and claims."""
    judged = [(method, made, judge(view.instance, made, spec.problem, spec.claims)) for method, made in known]
    passed = [(m, d, v) for m, d, v in judged if not v.violations]
    return [Seed(m, d, v.objective, exact(v.metrics)) for m, d, v in passed if v.objective is not None]


def promised_of(row: Row, instance: Instance) -> Guarantee | None:
    """Return the guarantee that a row shows, or else the one that the theorem gives for every run on the instance."""
    spec = HEURISTICS.get(row.method)
    if row.guarantee_factor is None:
        return spec.guarantee(spec.view(instance))
    return None if row.guarantee is None else Guarantee(row.guarantee, row.guarantee_factor)


def bare(options: SolveOptions) -> SolveOptions:
    """Return the options with which a heuristic asks a model: nothing else is known, and nothing is solved twice."""
    return replace(options, cross_check=False, seeds=())


def verified_oracle(options: SolveOptions) -> Callable[[str, Any], Any]:
    """Return a function that solves a model on a view, under the limits of the run, and checks the decision."""

    def decide(model: str, view: Any) -> Any:
        spec = MODELS.get(model)
        decision = oracle(model, view, bare(options))
        if violations := judge_asked(view, decision, spec.problem, spec.claims).violations:
            raise NotApplicableError(f"the optimum of {model} to start from is not verified: {violations[0]}")
        return decision

    return decide
