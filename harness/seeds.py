"""Decisions that models can start from: what the heuristics of a problem decide, checked."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from harness.verify import VERIFIERS
from heuristics import HEURISTICS, Context, HeuristicSpec
from instances.errors import NotApplicableError
from instances.registry import PAPERS
from models import MODELS, ModelSpec, oracle
from models.solve import Seed, Seeds, SolveOptions

PATIENCE = (0.125, 1.0)
"""Parts of the time that one heuristic may take: the quick ones come first, those that need more are tried again."""


def known_decisions(spec: ModelSpec, view: Any, options: SolveOptions) -> Seeds:
    """Return what runs the heuristics of a model's problem for it, and keeps the decisions that pass the checker.

    Those of wider problems (rejecting jobs, interrupting them) are tried, too: what they decide may be within this one.
    They run in a forked process, which the kernel ends when a heuristic has had its time.

    Parameters
    ----------
    spec, view
        The model, and what it is going to decide on.
    options
        Seed of the heuristics, and limits of the models whose optima they round.
    """

    def decide(seconds: float | None) -> list[Seed]:
        waiting = [h for h in HEURISTICS if _related(spec, h) and not (h.skip(view) or h.too_large(view))]
        limit = math.inf if seconds is None else seconds
        ends = time.perf_counter() + limit
        found: list[Seed] = []
        for share in PATIENCE:
            late: list[HeuristicSpec] = []
            while waiting and (left := ends - time.perf_counter()) > 0:
                done = list(_decided(spec, view, options, waiting, min(share * limit, left), ends))
                found += [seed for seeds in done for seed in seeds]
                late += waiting[len(done) : len(done) + 1]
                waiting = waiting[len(done) + 1 :]
            waiting = late
        return found

    return decide


def _related(spec: ModelSpec, heuristic: HeuristicSpec) -> bool:
    """Say whether decisions of a heuristic can be decisions of a model's problem: one problem restricts the other."""
    if spec.paper != heuristic.paper:
        return False
    paper = PAPERS.get(spec.paper)
    return spec.problem in paper.wider(heuristic.problem) or heuristic.problem in paper.wider(spec.problem)


def _decided(
    spec: ModelSpec, view: Any, options: SolveOptions, which: Sequence[HeuristicSpec], each: float, ends: float
) -> Iterator[list[Seed]]:
    """Yield the decisions of one heuristic after another, until one takes longer than `each` seconds or time is up."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            _send(spec, view, options, which, each, ends, writer)
        finally:
            os._exit(0)
    writer.close()
    try:
        while True:
            yield reader.recv()
    except EOFError:
        return
    finally:
        reader.close()
        os.waitpid(child, 0)


def _send(
    spec: ModelSpec,
    view: Any,
    options: SolveOptions,
    which: Sequence[HeuristicSpec],
    each: float,
    ends: float,
    writer: Connection,
) -> None:
    for heuristic in which:
        left = min(each, ends - time.perf_counter())
        if left < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3))
        writer.send(_checked(spec, heuristic, view, options))


def _checked(spec: ModelSpec, heuristic: HeuristicSpec, view: Any, options: SolveOptions) -> list[Seed]:
    """Return the decision of a heuristic for a model's problem, nothing where it has none that passes the checker."""
    context = Context(np.random.default_rng(options.seed), verified_oracle(options))
    try:
        decision = heuristic.run(view, context)
        verdict = VERIFIERS.get(spec.paper).check(view, decision, spec.problem, spec.claims)
    except Exception:  # what a heuristic fails by stands in its own row
        return []
    if verdict.objective is None or verdict.violations:
        return []
    return [Seed(heuristic.id, decision, verdict.objective)]


def verified_oracle(options: SolveOptions) -> Callable[[str, Any], Any]:
    """Return an oracle under the limits of the run, whose decisions have passed the checker."""

    def decide(model: str, view: Any) -> Any:
        spec = MODELS.get(model)
        decision = oracle(model, view, replace(options, cross_check=False, seeds=None))
        if found := VERIFIERS.get(spec.paper).check(view, decision, spec.problem, spec.claims).violations:
            raise NotApplicableError(f"the optimum of {model} to start from is not verified: {found[0]}")
        return decision

    return decide
