"""What a log's size costs: reading, checking, and certifying; growth with jobs, and against one job at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import simulated, swf

from schedgap.harness.check import judge
from schedgap.harness.engine.certificates import certificate
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import Context
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.models import MODELS
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers import prove

SIZES = (12_500, 25_000, 50_000, 100_000)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return a log of each size as a file."""
    paths = {jobs: tmp_path_factory.mktemp("logs") / f"{jobs}.swf" for jobs in SIZES}
    for jobs, path in paths.items():
        path.write_text(swf(simulated(jobs)))
    return paths


def read(path: Path) -> Instance:
    return import_trace("swf", path, Options(history=True))


def growth(bench: Any, name: str, works: dict[int, Callable[[], Any]]) -> None:
    bench.growth(name, list(works), [bench.time(work) for work in works.values()], most=1.25)


def test_reading(bench, logs) -> None:  # type: ignore[no-untyped-def]
    """Read a log into an instance of columns; the reference makes all jobs one by one afterwards."""
    growth(bench, "reading a log, over jobs", {jobs: lambda path=path: read(path) for jobs, path in logs.items()})
    one = read(logs[SIZES[0]])
    ours, theirs = bench.time(lambda: read(logs[SIZES[0]])), bench.reference(lambda: tuple(one.jobs))
    bench.line("reading a log, against making its jobs as objects", ours, theirs, "no target")


def test_rules_and_checks(bench, logs) -> None:  # type: ignore[no-untyped-def]
    """Run each rule for schedules, and check its schedule."""
    found = {jobs: read(path) for jobs, path in logs.items()}
    views = {jobs: PAPERS.get("rigid").view(one) for jobs, one in found.items()}
    context = Context(np.random.default_rng(0), lambda model, view: None)
    for name in ("executed", "fcfs", "easy", "conservative", "sjf", "srtf", "tiresias"):
        spec = HEURISTICS.get(f"rigid.{name}")
        decided = {jobs: spec.run(view, context) for jobs, view in views.items()}
        works = {jobs: lambda view=view, spec=spec: spec.run(view, context) for jobs, view in views.items()}
        growth(bench, f"schedule of {name}, over jobs", works)
        if name == "executed":
            checks = {j: lambda j=j, decided=decided: judge(found[j], decided[j], "rigid.flow") for j in SIZES}
            growth(bench, "check of a schedule, over jobs", checks)


@pytest.mark.parametrize("objective", ["flow", "slowdown", "weighted", "makespan"])
def test_certificates(bench, logs, objective: str) -> None:  # type: ignore[no-untyped-def]
    """Certify the closed-form bound from the raw instance."""
    spec, works = MODELS.get(f"rigid.bound?objective={objective}" if objective != "flow" else "rigid.bound"), {}
    for jobs, path in logs.items():
        one = read(path)
        view, options = PAPERS.get("rigid").view(one), SolveOptions()
        proof = prove(spec.problem, view, spec.run(view, options), options)
        about = {"instance": one.fingerprint, "method": spec.id, "problem": spec.problem}
        works[jobs] = lambda about=about, proof=proof, one=one: certificate(about, proof, one.plain)
    growth(bench, f"certificate of {objective}, over jobs", works)
