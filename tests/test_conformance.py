"""Every registered method runs, gives the same result again, is verified, and respects bounds, without its own test."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from certified import checker, plain, signed

from schedgap import instances
from schedgap.harness.ask.explain import stated
from schedgap.harness.check import VERIFIERS, judge
from schedgap.harness.engine.result import decode, encode
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.methods import Spec, specs, starts_from_decisions
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import certify
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.instances.catalogue import known
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.models import MODELS, ModelSpec

TINY = "gen/20jobs?jobs=10&slot_s=1400"
# Limits are counts, so that everything repeats. Methods above their stated size are skipped with a reason.
LIMITS = Limits(nodes=100_000)
SHORT = Limits(nodes=1)
"""Limits for searches, which would otherwise go on for long."""
SPECS = specs()


def task(spec: Spec, ref: str = TINY, seed: int = 0) -> MethodTask:
    instance = instances.load(ref)
    limits = SHORT if starts_from_decisions(spec) else LIMITS
    return MethodTask(*sent(instance), spec.id, seed, limits=limits)


@pytest.fixture(scope="module")
def results() -> dict[str, MethodResult]:
    return {spec.id: task(spec).run() for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_runs_and_is_verified_on_a_tiny_instance(spec: Spec, results: dict[str, MethodResult]) -> None:
    row = results[spec.id].row
    assert row.status in {"optimal", "feasible", "gap left", "skipped", "infeasible"}, row.reason
    assert row.verified is not False, row.violations
    if row.status == "skipped":
        assert row.reason
    elif row.status == "infeasible":
        assert isinstance(spec, ModelSpec)
        assert row.objective is None
    elif row.kind in {"relaxation", "bound"} and results[spec.id].decision is None:
        assert row.own_bound is not None
    else:
        assert row.verified
        assert row.objective is not None


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_the_same_seed_gives_the_same_decision(spec: Spec, results: dict[str, MethodResult]) -> None:
    if results[spec.id].row.status == "skipped":
        pytest.skip("there is nothing to repeat")
    again = task(spec).run()
    assert again.row.status == results[spec.id].row.status
    assert again.row.own_bound == results[spec.id].row.own_bound
    assert again.row.objective == results[spec.id].row.objective
    if again.decision is not None:
        assert encode(again.decision) == encode(results[spec.id].decision)


def test_bounds_are_on_the_right_side(results: dict[str, MethodResult]) -> None:
    rows = certify(result.row for result in results.values())
    for row in rows:
        assert row.verified is not False, row.violations
        if row.ratio is not None:
            assert row.ratio >= 1
            assert row.gap is not None


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_bounds_have_certificates_that_hold_as_they_are_only(spec: Spec, results: dict[str, MethodResult]) -> None:
    found = results[spec.id]
    if found.row.own_bound is None:
        pytest.skip("no bound")
    assert found.certificate is not None
    proof, instance = plain(found.certificate), task(spec).instance.plain
    checker.check(proof, instance)
    better = -0.01 if found.row.sense == "max" else 0.01
    changed = proof | {"bound": proof["bound"] + better * max(abs(proof["bound"]), 1e-3)}
    with pytest.raises(checker.RefusedError, match="digest"):
        checker.check(changed, instance)
    with pytest.raises(checker.RefusedError, match=r"only .* follows"):
        checker.check(signed(changed, instance), instance)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_is_documented_with_its_source(spec: Spec) -> None:
    assert spec.id.startswith(f"{spec.paper}.")
    assert spec.source
    assert spec.problem in {p.id for p in PAPERS.get(spec.paper).problems}
    assert len("".join(stated(spec).values())) > 80


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_decisions_survive_json(spec: Spec, results: dict[str, MethodResult]) -> None:
    decision = results[spec.id].decision
    if decision is None:
        pytest.skip(f"no decision: {results[spec.id].row.reason}")
    plain = encode(decision)
    assert encode(decode(PAPERS.get(spec.paper).decision, plain)) == plain


@pytest.mark.parametrize("paper", PAPERS.ids())
def test_a_paper_has_a_verifier_and_a_way_to_bound_each_problem(paper: str) -> None:
    assert paper in VERIFIERS
    spec = PAPERS.get(paper)
    bounded = {m.problem for m in MODELS if m.paper == paper and m.kind != "baseline"}
    for problem in spec.problems:
        chain = [problem]
        while chain[-1].restricts is not None:
            chain.append(spec.problem(chain[-1].restricts))
        assert bounded & {p.id for p in chain}, f"nothing bounds {problem.id}"


@pytest.mark.parametrize("entry", known(), ids=lambda e: e.ref)
def test_every_catalogued_instance_loads_and_is_seen_by_some_paper(entry: Any) -> None:
    instance = instances.load(entry.ref)
    assert instance.name == entry.ref
    assert entry.title
    papers = [paper.id for paper in PAPERS if _has_view(paper.view, instance)]
    assert papers
    namesake = re.split("[-./]", entry.ref)[1]
    if namesake in PAPERS:
        assert namesake in papers
    elif entry.kind == "gen":
        assert papers == PAPERS.ids()  # named after no paper, it is for all of them


def _has_view(view: Any, instance: Any) -> bool:
    try:
        view(instance)
    except NotApplicableError:
        return False
    return True


def broken(decision: Any, how: Sequence[str]) -> list[Any]:
    """Return copies of a decision in which one numeric array is scaled up, made negative, or of another shape."""
    import dataclasses

    out = []
    for f in dataclasses.fields(decision):
        value = getattr(decision, f.name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size:
            # A slot three times as late may be a valid one; an index of ten thousand is none of a tiny instance.
            changes = {
                "larger": value * 3 + (1 if value.dtype.kind == "f" else 10_000),
                "negative": -value - 1,
                "nan": value * np.nan,
                "shape": value[:-1],
            }
            out += [dataclasses.replace(decision, **{f.name: changes[name]}) for name in how]
    return out


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.id)
def test_the_checker_rejects_mutilated_decisions(spec: Spec, results: dict[str, MethodResult]) -> None:
    decision = results[spec.id].decision
    if decision is None:
        pytest.skip(f"no decision: {results[spec.id].row.reason}")
    view = PAPERS.get(spec.paper).view(instances.load(TINY))
    for wrong in broken(decision, ("larger", "negative", "nan", "shape")):
        assert judge(view.instance, wrong, spec.problem, spec.claims).violations


def test_rows_have_plain_values(results: dict[str, MethodResult]) -> None:

    for result in results.values():
        assert isinstance(result.row, Row)
        json.dumps(result.row.as_dict(), allow_nan=False)
