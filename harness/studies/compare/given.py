"""Check and certify decisions that were computed elsewhere, as a comparison does with its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from schedgap.certificates import RefusedError
from schedgap.harness.ask.export import returned
from schedgap.harness.check import Verdict, judge
from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.study import Finished
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare import decisions
from schedgap.harness.studies.compare.methods import specs
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import collected, unbounded
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.instances import load
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance


def verify(
    reference: str, problem: str, files: Sequence[Path], *, bound: bool = True, limits: Limits | None = None
) -> Comparison:
    """Check decisions in files (:mod:`schedgap.harness.studies.compare.decisions`) and certify their gaps, a row each.

    Parameters
    ----------
    reference, problem
        The instance, and the id of the problem that the decisions solve.
    files
        Files of decisions; each is a row.
    bound, limits
        Whether to run the cheapest model that bounds the problem, in a worker process, and its limits.

    Raises
    ------
    UsageError
        If the instance or problem is unknown, if its decisions have no file format, or if a file is malformed; the
        message names the first malformed line.
    """
    paper = PAPERS.get(problem.partition(".")[0])
    paper.problem(problem)
    decisions.form(paper.id)
    instance = load(reference)
    done = [_row(instance, problem, file, partial(decisions.read, file)) for file in dict.fromkeys(files)]
    return _bounded({instance.fingerprint: instance}, done, bound, limits)


def verify_solution(
    files: Sequence[Path], model: Path | None = None, *, bound: bool = True, limits: Limits | None = None
) -> Comparison:
    """Check solution files of exported models (:mod:`schedgap.harness.ask.export`); each file is a row.

    `model` is the model's ``.json`` file, by default the one named like the solution; `bound` and `limits` are as in
    :func:`verify`. Raise `UsageError` if a file is truncated or of another model.
    """
    solutions = [(file, *returned(file, model)) for file in dict.fromkeys(files)]
    instances = {one.instance.fingerprint: one.instance for _, one, *_ in solutions}
    done = [
        _row(one.instance, one.spec.problem, file, lambda *_: decision, violations)  # noqa: B023 -- called at once
        for file, one, decision, violations in solutions
    ]
    return _bounded(instances, done, bound, limits)


def _bounded(about: dict[str, Instance], done: list[MethodResult], bound: bool, limits: Limits | None) -> Comparison:
    """Return the results as a comparison; if `bound`, first run the cheapest models that bound their problems."""
    first = [MethodTask(*sent(one), "", limits=limits or Limits()) for one in about.values()]
    with closing(Pool(1)) as pool:
        while bound and (tasks := unbounded(first, done)):
            done += pool.run(tasks)
    return collected(Finished({}, about, done))


def _row(
    instance: Instance, problem: str, file: Path, read: Callable[[Any, str], Any], violations: Sequence[str] = ()
) -> MethodResult:
    """Check a decision against its problem and what all methods of the problem claim, and return its row."""
    paper, verdict, decision = PAPERS.get(problem.partition(".")[0]), Verdict(None, ()), None
    of_methods = [set(spec.claims) for spec in specs() if spec.problem == problem]
    claims = set[str].intersection(*of_methods) if of_methods else set[str]()
    try:
        view = paper.view(instance)
        decision = read(view, problem)
        if decision is not None:
            verdict = judge(instance, decision, problem, tuple(sorted(claims)))
    except RefusedError as refused:
        violations = (*violations, *refused.args)
    violations = (*violations, *verdict.violations)
    row = Row(
        instance=instance.name,
        fingerprint=instance.fingerprint,
        paper=paper.id,
        method=str(file),
        problem=problem,
        kind="given",
        sense=paper.problem(problem).sense,
        objective=verdict.objective,
        status="feasible",
        verified=not violations,
        violations=violations,
        metrics=dict(verdict.metrics),
        key=str(file),
    )
    return MethodResult(row, decision)
