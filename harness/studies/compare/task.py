"""The task of a comparison: run one method on one instance, and return a verified row."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from schedgap.certificates import REFUSED, told
from schedgap.harness.check import differ, judge
from schedgap.harness.engine import certificates
from schedgap.harness.engine import result as kept
from schedgap.harness.engine.certificates import FOLDER, certificate
from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.engine.pacing import GOOD, more
from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.engine.task import InstanceTask, Limits
from schedgap.harness.show.text import plain
from schedgap.harness.studies.compare.consistent import contradictions, of_method, promised
from schedgap.harness.studies.compare.methods import (
    Spec,
    bare,
    find_spec,
    seeds,
    starts_from_decisions,
    verified_oracle,
)
from schedgap.harness.studies.compare.row import FINISHED, PHASES, STORED, TOO_LARGE, Row, log_file, refuted_by
from schedgap.harness.studies.compare.summary import integral
from schedgap.harness.studies.published import asked
from schedgap.heuristics import Context, HeuristicSpec
from schedgap.instances import clock
from schedgap.instances.registry import PAPERS, Status
from schedgap.instances.schema import Instance
from schedgap.instances.schema.summary import furthest
from schedgap.models import ModelSpec, shadow_prices
from schedgap.models.engine.solve import CROSS_CHECK_TOLERANCE, NotCertifiableError, Solution, SolveOptions
from schedgap.models.engine.solve.logs import joined, logging
from schedgap.models.provers import Content, prove
from schedgap.models.registry import APART

Trace = tuple[tuple[float, float | None, float | None], ...]
"""Points of time in seconds, incumbent and bound."""

ROUNDING = 1e-9
"""Difference of a model's and the checker's objective, relative to the largest cost, that counts as solver rounding."""

READ_S = 3e-6
"""Seconds per byte of a packed instance that a task may take, beyond the solver's limit, to read and to check."""


@dataclass(frozen=True)
class MethodTask(InstanceTask["MethodResult"]):
    """A task that runs one method on one instance.

    `limits_name` is the name of its limit set. `known` has pairs of method and decision from which a model may start,
    and `parts` pairs of number and arrays: what was found of its `stretches` of time (:meth:`apart`). The row of a task
    that only `helps` others is not in the table.
    """

    method: str
    seed: int = 0
    limits_name: str = ""
    known: tuple[tuple[str, Any], ...] = ()
    helps: bool = False
    stretches: int = 1
    parts: tuple[tuple[int, Any], ...] = ()

    def apart(self) -> list[PartTask]:
        """Return the tasks of the stretches into which the method divides a long log; none if it does not."""
        if self.stretches == 1:
            return []
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | {"helps": True, "stretches": 1}
        fields["limits"] = within(self.limits, APART / self.stretches)
        return [PartTask(**fields, at=at) for at in range(self.stretches)]

    def together(self, parts: Sequence[tuple[int, Any]]) -> MethodTask:
        """Return the task that puts together what was found of its stretches, in the rest of the time."""
        return self if self.stretches == 1 else replace(self, parts=(*parts,), limits=within(self.limits, 1 - APART))

    def identity(self) -> Mapping[str, Any]:
        known = [method for method, _ in self.known]
        problem = find_spec(self.method).problem  # a plug-in may have registered its prover
        about = {"fingerprint": self.fingerprint, "method": self.method, "problem": problem, "seed": self.seed}
        return about | {"known": known, "helps": self.helps}

    @property
    def hard_limit_s(self) -> float:
        """Seconds after which the worker is killed: the solver's limit on a busy machine, and time for all else."""
        times = clock.STRETCH + 1 + 2 * self.limits.cross_check
        runs = self.limits.repeat + (self.limits.repeat > 1)
        return runs * times * self.limits.seconds + 30.0 + READ_S * len(self.packed)

    def attempt(self) -> MethodResult:
        first = self.once()
        if self.limits.repeat == 1 or not first.finished:
            return first
        measured = [self.once() for _ in range(self.limits.repeat)]
        return replace(measured[-1], row=repeated([result.row for result in measured]))

    def once(self) -> MethodResult:
        """Run the method once, and account for the time of each phase."""
        began, before = time.perf_counter(), clock.stood_still()
        try:
            with logging(self.limits.solver_logs) as logs:
                result = _run(self, find_spec(self.method), replace(self.limits.options(self.seed), logs=logs))
                log = joined(logs) if logs else None
        except NotCertifiableError as reason:
            return self.failed("skipped", f"{reason}; in the instance, {furthest(self.instance)}")
        wall_s = time.perf_counter() - began
        compile_s, waited_s = (now - then for now, then in zip(clock.stood_still(), before, strict=True))
        row = result.row.replace(compile_s=compile_s)
        # What is left: unpacking the instance, importing modules, the view, and reasons to skip the method.
        row = row.replace(read_s=max(wall_s - waited_s - row.took_s, 0.0))
        return replace(result, row=row.replace(total_s=row.took_s), helps=self.helps, log=log or None)

    def failed(self, status: Status, reason: str) -> MethodResult:
        return MethodResult(self.blank_row(status=status, reason=reason), helps=self.helps)

    def blank_row(self, **fields: Any) -> Row:
        """Return the row of this task without results, but with the given `fields` set."""
        spec = find_spec(self.method)
        return Row(**self.about, **of_method(spec), method=spec.id, seed=self.seed, limits=self.limits_name, **fields)


def within(limits: Limits, share: float) -> Limits:
    """Return limits with a share of the time, if it is limited."""
    counted = limits.nodes is not None and limits.time_limit_s is None
    return limits if counted else replace(limits, time_limit_s=share * limits.seconds)


@dataclass(frozen=True)
class PartTask(MethodTask):
    """A task that solves a stretch of time of a long log for its method; `at` is the number of the stretch."""

    at: int = 0

    def identity(self) -> Mapping[str, Any]:
        return {**super().identity(), "at": self.at}

    def attempt(self) -> PartResult:
        spec, began, before = find_spec(self.method), time.perf_counter(), clock.stood_still()
        assert isinstance(spec, ModelSpec)
        assert spec.part is not None
        part = spec.part(spec.view(self.instance), self.limits.options(self.seed), self.at)
        waited_s = sum(now - then for now, then in zip(clock.stood_still(), before, strict=True))
        solve_s = time.perf_counter() - began - waited_s
        row = self.blank_row(status="feasible", solve_s=solve_s, total_s=solve_s)
        return PartResult(row, helps=True, at=self.at, part=part)

    def failed(self, status: Status, reason: str) -> PartResult:
        return PartResult(self.blank_row(status=status, reason=reason), helps=True, at=self.at)


def repeated(rows: Sequence[Row]) -> Row:
    """Return the last row with the medians of the times of all, and the least and largest total."""
    times = {name: [getattr(row, name) for row in rows] for name in PHASES}
    medians = {name: None if None in some else statistics.median(some) for name, some in times.items()}
    row, totals = rows[-1].replace(**medians), [row.took_s for row in rows]
    return row.replace(total_s=row.took_s, fastest_s=min(totals), slowest_s=max(totals))


@dataclass(frozen=True)
class MethodResult(kept.RowResult):
    """A finished task: its row, decision (if any), trace of bound and incumbent, and prices.

    `certificate` proves the bound, as plain data, and `log` is what HiGHS wrote, if the run keeps logs. `decided` has
    the measured values that are compared with the paper's printed numbers. Results restored from a journal have their
    `instance`, and the content of ``run.json`` as `meta`.
    """

    row: Row
    decision: Any = None
    trace: Trace = ()
    prices: NDArray[np.float64] | None = None
    decided: Mapping[str, Any] = field(default_factory=dict)
    helps: bool = False
    certificate: Any = None
    log: Any = None
    instance: Instance | None = field(default=None, repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)

    record: ClassVar[str] = "row"

    @property
    def finished(self) -> bool:
        return self.row.status in FINISHED and self.row.verified is not False

    def content(self) -> dict[str, Any]:
        prices = None if self.prices is None else kept.to_plain(self.prices)
        optional = {"helps": self.helps, "decided": self.decided, "prices": prices}
        row = {name: value for name, value in self.row.as_dict().items() if name in STORED}
        line = {"row": row, "trace": [list(point) for point in self.trace]}
        return line | {name: value for name, value in optional.items() if value}

    def parts(self) -> Mapping[str, Any]:
        row = self.row
        parts = {row.file("schedules"): self.decision, row.file(FOLDER): self.certificate, log_file(row): self.log}
        return {name: part for name, part in parts.items() if part is not None}

    def holds(self) -> str:
        row, spec, confirmed = self.row, find_spec(self.row.method), []
        if row.trouble:
            raise ValueError(f"WRONG: {row.trouble}")
        if line := next(contradictions(row, spec, self.meta), None):
            raise ValueError(line)
        self.check()
        if row.objective is not None and self.instance is not None:
            guarantee = promised(spec, spec.view(self.instance), kept.opened(self.decision))
            shown = (guarantee.text, guarantee.factor) if guarantee else (None, None)
            if shown != (row.guarantee, row.guarantee_factor):
                raise ValueError(f"its guarantee is {row.guarantee}, which should be {shown[0]}")
            confirmed.append(f"decision re-checked, objective {row.objective:.10g} recomputed")
        if self.certificate is not None and self.instance is not None:
            confirmed.append(certificates.checked(kept.opened(self.certificate), self.instance))
        if row.claimed_bound is not None and row.unproved:
            confirmed.append(f"claimed bound {row.claimed_bound:.10g} has no certificate")
        if row.status == "infeasible":
            confirmed.append("that there is no solution has no certificate")
        return "; ".join(confirmed)

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: kept.Stored) -> MethodResult:
        """Return the result stored in a journal line; its decision is read and checked on access."""
        told = {name: value for name, value in content["row"].items() if name in STORED}
        instance, decision = stored.instance(told["fingerprint"]), None
        row = kept.typed(Row, {**told, "instance": instance.name, **of_method(find_spec(told["method"]))})
        if row.objective is not None:
            file = stored.file(content["key"], row.file("schedules"))
            decision = kept.Later(partial(_decision, file, row, instance, content.get("decided", {})))
        proof = None
        if row.own_bound is not None:
            file = stored.file(content["key"], row.file(FOLDER))
            proof = kept.Later(partial(certificates.read, file, row.about, row.own_bound))
        trace = kept.typed(Trace, content["trace"])
        prices = kept.from_plain(content["prices"]) if "prices" in content else None
        decided, helps = content.get("decided", {}), content.get("helps", False)
        kept_log = log_file(row) in stored.lines[content["key"]]["files"]
        log = kept.Later(partial(_log, stored.file(content["key"], log_file(row)))) if kept_log else None
        return cls(row, decision, trace, prices, decided, helps, proof, log, instance, stored.meta)


@dataclass(frozen=True)
class PartResult(MethodResult):
    """What was found of a stretch of time, number `at`: arrays by name in `part`, if the task did not fail.

    It states no bound and no schedule. Those of the whole log are certified, whatever they were made of.
    """

    at: int = 0
    part: Any = None

    record: ClassVar[str] = "stretch"

    def content(self) -> dict[str, Any]:
        return super().content() | {"at": self.at}

    def parts(self) -> Mapping[str, Any]:
        return {} if self.part is None else {self.file: kept.to_plain(kept.opened(self.part))}

    def holds(self) -> str:
        self.check()
        if any(value is not None for value in (self.row.objective, self.row.claimed_bound, self.row.own_bound)):
            raise ValueError("a stretch of a log states no bound and no objective")
        return ""

    @property
    def file(self) -> str:
        """Path of its file in the results folder."""
        return self.row.file("stretches", f"-{self.at}.json.gz")

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: kept.Stored) -> PartResult:
        found = super().restored(content, stored)
        one = cls(**{**vars(found), "at": kept.typed(int, content["at"])})
        has = one.file in stored.lines[content["key"]]["files"]
        return replace(one, part=kept.Later(partial(_part, stored.file(content["key"], one.file)))) if has else one


def _part(file: KeptFile) -> Any:
    """Return the arrays in a file, or raise `ValueError` if they are not as they were written."""
    return kept.from_plain(file.unpacked())


def _log(file: KeptFile) -> str:
    """Return a log, or raise `ValueError` if it is not as it was written."""
    return file.content().decode()


def _decision(file: KeptFile, row: Row, instance: Instance, decided: Mapping[str, Any] | None = None) -> Any:
    """Read a row's decision and check again that it has the row's objective and properties, and what was `decided`."""
    with damage_explained(file.folder / file.name):
        paper = PAPERS.get(row.paper)
        decision: Any = kept.decode(paper.decision, file.unpacked())
        verdict = judge(instance, decision, row.problem, find_spec(row.method).claims)
        if verdict.objective is None or row.objective is None or differ(verdict.objective, row.objective):
            raise ValueError("the decision does not reach the objective of its row")
        if row.verified and verdict.violations:
            raise ValueError(f"its row is verified, but the decision is not: {verdict.violations[0]}")
        if row.metrics != plain(verdict.metrics):
            raise ValueError("the decision has other properties than its row says")
        if decided is not None and decided != plain(asked(instance.published, verdict.quantities)):
            raise ValueError("the decision has other quantities than its line says")
        return decision


def _run(task: MethodTask, spec: Spec, options: SolveOptions) -> MethodResult:
    paper = PAPERS.get(spec.paper)
    view = spec.view(task.instance)
    reason = spec.skip(view)
    if reason is None and not task.limits.all_sizes and (size := spec.too_large(view)):
        reason = f"{TOO_LARGE} without --all: {size}"
    if reason:
        return MethodResult(task.blank_row(status="skipped", reason=reason))
    if isinstance(spec, ModelSpec):
        result, solution = _solve(spec, view, task, options)
    else:
        result, solution = _decide(spec, view, task, options), None
    if not isinstance(result.decision, paper.decision) and not (result.decision is None and solution):
        kind = "nothing" if result.decision is None else type(result.decision).__name__
        raise TypeError(f"{spec.id} returned {kind}; methods of {paper.id} return {paper.decision.__name__}")
    if result.decision is None:
        return result
    began = clock.now()
    verdict = judge(task.instance, result.decision, spec.problem, spec.claims)
    violations, objective = [*result.row.violations, *verdict.violations], verdict.objective
    if solution:
        second, claimed = solution.cross_check, solution.objective if spec.kind != "baseline" else None
        if second is not None and second > CROSS_CHECK_TOLERANCE:
            violations.append(f"CBC finds another optimum: relative difference {second:.2g}")
        if claimed is not None and objective is not None and differ(claimed, objective, ROUNDING * solution.scale):
            violations.append(f"the solver reports {claimed:.9g}, the checker finds {objective:.9g}")
    row = result.row.replace(
        objective=verdict.objective,
        verified=not violations,
        violations=tuple(violations),
        metrics=dict(verdict.metrics),
        check_s=clock.now() - began,
    )
    if violations:  # a guarantee is about decisions that satisfy all rules
        row = row.replace(guarantee=None, guarantee_factor=None)
    return replace(result, row=row, decided=plain(asked(task.instance.published, verdict.quantities)))


def _solve(spec: ModelSpec, view: Any, task: MethodTask, options: SolveOptions) -> tuple[MethodResult, Solution]:
    """Solve a model and return its result, not yet verified, and the solution."""
    if task.limits.run_s is not None:
        options = replace(options, more=more, enough=GOOD if options.rel_gap == Limits.rel_gap else options.rel_gap)
    known, budget = seeds(spec, view, task.known), clock.Budget()
    outcome, core_share = spec.run(view, replace(options, seeds=known, parts=dict(task.parts))), budget.core_share
    solution, bounds, proof = outcome.solution, spec.kind != "baseline", None
    if not bounds and solution.status == "optimal":  # for its own objective, which is not that of the problem
        solution = replace(solution, status="feasible")
    cut = starts_from_decisions(spec) and solution.status.startswith("time limit")
    row = task.blank_row(
        status=solution.status,
        claimed_bound=solution.bound if bounds else None,
        termination=f"{solution.termination}; {solution.solution_status}",
        core_share=core_share if cut else None,
        **{name: getattr(solution, name) for name in ("nodes", "iterations", "peak_mb", "cross_check", "solver")},
        integral_s=integral(solution, task.limits.seconds) if bounds else None,
        **vars(solution.times),
        **{name: getattr(solution.size, name) for name in ("rows", "columns", "nonzeros")},
    )
    if row.claimed_bound is not None:
        began = clock.now()
        row, proof = _certified(row, prove(spec.problem, view, outcome, options), task.instance.plain)
        row = row.replace(certify_s=clock.now() - began)
    if lines := [line for seed in known for line in refuted_by(row, seed.method, seed.objective, seed.exact)]:
        row = row.replace(verified=False, violations=(lines[0],))
    return MethodResult(row, outcome.decision, tuple(solution.trace), outcome.prices, certificate=proof), solution


def _certified(row: Row, multipliers: Content | None, raw: Mapping[str, Any]) -> tuple[Row, Any]:
    """Return a row with the bound that its multipliers prove, and the certificate.

    The rule derives the bound here, in the worker, from the raw instance. If it refuses the multipliers, the row has no
    bound, and says why.
    """
    if multipliers is None:
        return row, None
    try:
        proof = certificate(row.about, multipliers, raw)
    except REFUSED as reason:
        return row.replace(reason=f"its bound is not certified: {told(reason)}"), None
    return row.replace(own_bound=proof["bound"]), proof


def _decide(spec: HeuristicSpec, view: Any, task: MethodTask, options: SolveOptions) -> MethodResult:
    """Run a heuristic and return its result, not yet verified."""
    context = Context(
        np.random.default_rng(task.seed), verified_oracle(options), partial(shadow_prices, options=bare(options))
    )
    began = clock.now()
    decision = spec.run(view, context)
    solve_s = clock.now() - began
    guarantee = promised(spec, view, decision)
    row = task.blank_row(status="feasible", solve_s=solve_s)
    if guarantee:
        row = row.replace(guarantee=guarantee.text, guarantee_factor=guarantee.factor)
    return MethodResult(row, decision)
