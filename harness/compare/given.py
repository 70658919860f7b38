"""Decisions that somebody else computed, checked and certified as those of a comparison are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schedgap.harness import decisions
from schedgap.harness.compare.methods import bounding
from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.compare.run import collected, unbounded
from schedgap.harness.compare.task import MethodResult, MethodTask
from schedgap.harness.engine.pool import run_all
from schedgap.harness.engine.study import Finished
from schedgap.harness.engine.task import Limits
from schedgap.harness.verify import VERIFIERS, Verdict
from schedgap.harness.verify.rules import RefusedError
from schedgap.instances import load
from schedgap.instances.canonical import to_json
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

GIVEN = "given"
"""Kind of rows about decisions that came in a file."""


def verify(
    reference: str, problem: str, files: Sequence[Path], *, bound: bool = True, limits: Limits | None = None
) -> Comparison:
    """Check decisions in files (:mod:`schedgap.harness.decisions`) and certify their gaps; each is a row of that name.

    Parameters
    ----------
    reference, problem
        What was decided.
    bound, limits
        Whether the cheapest model that bounds the problem runs, in a worker process, and with which limits.

    Raises
    ------
    UsageError
        If the instance or problem is unknown, or its decisions have no format; or on the first line of a file that is
        malformed.
    """
    paper = PAPERS.get(problem.partition(".")[0])
    paper.problem(problem)
    decisions.form(paper.id)
    instance = load(reference)
    done = [_checked(instance, problem, file) for file in dict.fromkeys(files)]
    task = MethodTask(to_json(instance), instance.name, instance.fingerprint, "", limits=limits or Limits())
    while bound and (tasks := unbounded([task], done)):
        done += run_all(tasks, jobs=1)
    return collected(Finished({}, {instance.fingerprint: instance}, done))


def _checked(instance: Instance, problem: str, file: Path) -> MethodResult:
    """Return the row of a file, with the claims that models of the problem make, since these are the problem's own."""
    paper = PAPERS.get(problem.partition(".")[0])
    view, decision = paper.view(instance), None
    claims = {claim for spec in bounding(paper.id, problem) if spec.problem == problem for claim in spec.claims}
    try:
        decision = decisions.read(file, view, problem)
        verdict = VERIFIERS.get(paper.id).check(view, decision, problem, tuple(sorted(claims)))
    except RefusedError as refused:
        verdict = Verdict(None, refused.args)
    row = Row(
        instance=instance.name,
        fingerprint=instance.fingerprint,
        paper=paper.id,
        method=str(file),
        problem=problem,
        kind=GIVEN,
        sense=paper.problem(problem).sense,
        objective=verdict.objective,
        status="feasible",
        verified=not verdict.violations,
        violations=verdict.violations,
        metrics=dict(verdict.metrics),
        key=str(file),
    )
    return MethodResult(row, decision)
