"""One method on one instance: what a worker process does, from view to verified row."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.environment import code_digest
from harness.published import evaluated
from harness.rows import Row, Status
from harness.seeds import known_decisions, verified_oracle
from harness.verify import VERIFIERS, Verdict, differ
from heuristics import HEURISTICS, Context, HeuristicSpec
from instances import clock
from instances.canonical import validate
from instances.errors import NotApplicableError, UsageError
from instances.furthest import furthest
from instances.ranges import LEAST_MEMORY_MB, MOST_MEMORY_MB
from instances.registry import PAPERS, PaperSpec
from instances.schema import Instance
from models import MODELS, ModelSpec
from models.solve import CROSS_CHECK_TOLERANCE, NotCertifiableError, Solution, SolveOptions

Spec = ModelSpec | HeuristicSpec

ROUNDING = 1e-9
"""Part of a model's largest cost up to which its objective and the checker's differ by a solver's rounding."""


@dataclass(frozen=True)
class Limits:
    """What one method may take.

    Parameters
    ----------
    time_limit_s
        Seconds for the solver; the worker is killed some time after it (:attr:`hard_limit_s`).
    rel_gap, threads
        Passed to the solver.
    memory_mb
        Memory cap of a worker process.
    all_sizes
        Run methods above their stated size, too.
    cross_check
        Ask PuLP/CBC for a second opinion on every model.
    """

    time_limit_s: float = 60.0
    rel_gap: float = 1e-6
    threads: int = 1
    memory_mb: int = 4096
    all_sizes: bool = False
    cross_check: bool = False

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which a worker is killed: twice the solver's limit and time to build and check."""
        return (2 + 2 * self.cross_check) * self.time_limit_s + 30.0

    def options(self, seed: int) -> SolveOptions:
        """Return the solver's options.

        Raises
        ------
        UsageError
            If a limit is impossible.
        """
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            right = f"a worker takes between {LEAST_MEMORY_MB} and {MOST_MEMORY_MB} MB"
            raise UsageError(f"memory = {self.memory_mb} MB: {right}")
        return SolveOptions(
            time_limit_s=self.time_limit_s,
            rel_gap=self.rel_gap,
            threads=self.threads,
            seed=seed,
            cross_check=self.cross_check,
        )


@dataclass(frozen=True)
class Task:
    """A method to run on an instance. The instance travels as JSON text; each worker parses it once.

    `code` is the digest of the code at planning time: workers report under the plan's key even if a file is edited
    while they run. `limits_name` tells rows of one run under several limits apart.
    """

    instance_json: str
    instance_name: str
    fingerprint: str
    method: str
    seed: int
    limits: Limits
    limits_name: str = ""
    code: str = field(default_factory=code_digest)

    @property
    def key(self) -> str:
        """Name of the result: the same for the same content, method, seed, limits and code, in any order."""
        parts = {
            "fingerprint": self.fingerprint,
            "method": self.method,
            "seed": self.seed,
            "limits": asdict(self.limits),
            "code": self.code,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    def run(self) -> TaskResult:
        """Run it in this process; see :func:`run_task`."""
        return run_task(self)

    def failed(self, status: Status, reason: str) -> TaskResult:
        """Return the result of a task that could not be finished."""
        return TaskResult(self.blank_row(status=status, reason=reason))

    def blank_row(self, **known: Any) -> Row:
        """Return the row of this task before anything is known about its result."""
        spec = find_spec(self.method)
        problem = PAPERS.get(spec.paper).problem(spec.problem)
        return Row(
            instance=self.instance_name,
            fingerprint=self.fingerprint,
            paper=spec.paper,
            method=spec.id,
            problem=problem.id,
            kind=spec.kind,
            sense=problem.sense,
            seed=self.seed,
            limits=self.limits_name,
            key=self.key,
            **known,
        )


@dataclass(frozen=True)
class TaskResult:
    """A finished task: its row, the decision if there is one, the trace of bound and incumbent, the bound's prices."""

    row: Row
    decision: Any = None
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    prices: NDArray[np.float64] | None = None


@dataclass
class _Raw:
    """What a method produced, before it is verified."""

    decision: Any
    status: str
    fields: dict[str, Any] = field(default_factory=dict)
    claimed: float | None = None
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    complaint: str | None = None
    scale: float = 0.0
    prices: NDArray[np.float64] | None = None


def find_spec(method: str) -> Spec:
    """Return the model or heuristic of that id."""
    return MODELS.get(method) if method in MODELS else HEURISTICS.get(method)


def specs() -> list[Spec]:
    """Return all registered methods, models first, papers in alphabetical order."""
    everything: list[Spec] = [*MODELS, *HEURISTICS]
    return sorted(everything, key=lambda spec: spec.paper)


def run_task(task: Task) -> TaskResult:
    """Run a task in this process; whatever the method does becomes a row.

    A method that cannot run on the instance is ``skipped`` with its reason, one that raises is an ``error``. Only
    running out of memory is raised.
    """
    began = time.perf_counter()
    try:
        result = _run(task, find_spec(task.method))
    except NotCertifiableError as reason:
        text = f"{reason}; in the instance, {furthest(_instance(task.fingerprint, task.instance_json))}"
        result = TaskResult(task.blank_row(status="skipped", reason=text))
    except NotApplicableError as reason:
        result = TaskResult(task.blank_row(status="skipped", reason=str(reason)))
    except MemoryError:
        raise  # a row needs memory as well; the pool writes it
    except Exception as error:  # any failure of a method is a row, so that one method cannot end a run
        result = TaskResult(task.blank_row(status="error", reason=_one_line(error)))
    row = result.row.replace(total_s=time.perf_counter() - began)
    return replace(result, row=row)


def _run(task: Task, spec: Spec) -> TaskResult:
    instance = _instance(task.fingerprint, task.instance_json)
    paper = PAPERS.get(spec.paper)
    view = _view(task.fingerprint, task.instance_json, spec.paper)
    reason = spec.skip(view)
    if reason is None and not task.limits.all_sizes:
        reason = spec.too_large(view)
    if reason:
        return TaskResult(task.blank_row(status="skipped", reason=reason))
    raw = _solve(spec, view, task) if isinstance(spec, ModelSpec) else _decide(spec, view, task)
    row = task.blank_row(status=raw.status, **raw.fields)
    if raw.decision is None:
        return TaskResult(row, None, raw.trace, raw.prices)
    began = clock.now()
    verdict = VERIFIERS.get(paper.id).check(view, raw.decision, spec.problem, spec.claims)
    violations = (*verdict.violations, *_disagreements(raw, verdict))
    row = row.replace(
        objective=verdict.objective,
        verified=not violations,
        violations=violations,
        metrics=dict(verdict.metrics),
        published=evaluated(instance.published, spec.id, {spec.id: _decided(verdict)}),
        check_s=clock.now() - began,
    )
    return TaskResult(row, _checked_decision(raw.decision, paper), raw.trace, raw.prices)


def _decided(verdict: Verdict) -> dict[str, Any]:
    """Return what the checker found of a decision, by quantity."""
    found = {**verdict.metrics, **verdict.quantities, "objective": verdict.objective}
    return {name: value for name, value in found.items() if value is not None}


def _checked_decision(decision: Any, paper: PaperSpec) -> Any:
    if not isinstance(decision, paper.decision):
        raise TypeError(f"a method of {paper.id} returns {paper.decision.__name__}, not {type(decision).__name__}")
    return decision


def _solve(spec: ModelSpec, view: Any, task: Task) -> _Raw:
    options = task.limits.options(task.seed)
    outcome = spec.run(view, replace(options, seeds=known_decisions(spec, view, options)))
    solution = outcome.solution
    bounds = spec.kind != "baseline"
    fields: dict[str, Any] = {
        "own_bound": solution.bound if bounds else None,
        "termination": f"{solution.termination}; {solution.solution_status}",
        "solve_s": solution.times.solve_s,
        "build_s": solution.times.build_s,
        "transfer_s": solution.times.transfer_s,
        "nodes": solution.nodes,
        "iterations": solution.iterations,
        "rows": solution.size.rows,
        "columns": solution.size.columns,
        "nonzeros": solution.size.nonzeros,
        "peak_mb": solution.peak_mb,
        "cross_check": solution.cross_check,
    }
    claimed = solution.objective if bounds else None
    trace, complaint = tuple(solution.trace), _second_opinion(solution)
    return _Raw(outcome.decision, solution.status, fields, claimed, trace, complaint, solution.scale, outcome.prices)


def _second_opinion(solution: Solution) -> str | None:
    if solution.cross_check is None or solution.cross_check <= CROSS_CHECK_TOLERANCE:
        return None
    return f"CBC finds another optimum: relative difference {solution.cross_check:.2g}"


def _decide(spec: HeuristicSpec, view: Any, task: Task) -> _Raw:
    context = Context(np.random.default_rng(task.seed), verified_oracle(task.limits.options(task.seed)))
    began = clock.now()
    decision = spec.run(view, context)
    solve_s = clock.now() - began
    guarantee = spec.shown(view, decision) if spec.shown else spec.guarantee(view)
    if guarantee and guarantee.factor is not None and guarantee.factor < 1:
        # Nothing is better than the optimum: where weights are 0, Zhou's 2 log λ is 0, as its proof takes λ > 2.
        guarantee = None
    fields = {
        "solve_s": solve_s,
        "guarantee": guarantee.text if guarantee else None,
        "guarantee_factor": guarantee.factor if guarantee else None,
    }
    return _Raw(decision, "feasible", fields)


def _disagreements(raw: _Raw, verdict: Verdict) -> list[str]:
    """Lines for a solver whose objective is not the checker's, or whom the second solver contradicts."""
    lines = [raw.complaint] if raw.complaint else []
    claimed, found = raw.claimed, verdict.objective
    if claimed is not None and found is not None and differ(claimed, found, ROUNDING * raw.scale):
        lines.append(f"the solver reports {claimed:.9g}, the checker finds {found:.9g}")
    return lines


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@functools.lru_cache(maxsize=8)
def _instance(fingerprint: str, text: str) -> Instance:
    return validate(json.loads(text), where=fingerprint[:12])


@functools.lru_cache(maxsize=16)
def _view(fingerprint: str, text: str, paper: str) -> Any:
    view: Callable[[Instance], Any] = PAPERS.get(paper).view
    return view(_instance(fingerprint, text))
