"""What a card is worth: OEF's first-order method by array library, and linear programs by solver, in ten minutes.

``python tests/benchmarks/gpu/measure.py FILE.json`` measures on the first NVIDIA card, and refuses without one. With
``--processor`` it runs the same lines on small sizes without a card, which tests do and which says what a processor
does. Each measurement is a process of its own, and is stopped if it takes too long, so that the others still run.

- *First order*: (10) with random speedups (each step to the next of ten types is 1 to 2 times) and one device per
  tenant: bound, envy-free allocation and gap when the time is up.
- *Programs*: HiGHS's interior points and PDLP, and MPAX, on the same arrays: seconds of the solver, its objective, and
  the bound that its prices prove (:func:`schedgap.models.engine.solve.dual_bound`).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import schedgap as sg
from schedgap.instances.views.oef import matrix_view
from schedgap.models import MODELS
from schedgap.models.engine.solve import SolveOptions, build, compile_model, dual_bound, solvers
from schedgap.models.oef.first_order import by_first_order
from schedgap.models.registry import PAPERS

TYPES = 10
LIBRARIES = ("compiled", "numpy", "jax", "torch")
SOLVERS = ("highs:ipm", "highs:hipo", "highs:pdlp", "mpax")

FIRST_ORDER = [
    *((3_000, arrays, False, 30) for arrays in ("compiled", "jax", "torch")),
    (3_000, "jax", True, 30),
    *((20_000, arrays, False, 120) for arrays in ("jax", "torch")),
]
"""Tenants, library, single precision, and seconds: 360 in all."""

PROGRAMS = [
    ("gavel.makespan_fluid", "hadar", "gen/200jobs?jobs=20000", 20),
    ("hadar.fluid", "hadar", "gen/200jobs", 20),
]
"""Models, their papers, instances, and seconds of each solver: 160 in all."""

SMALL_FIRST_ORDER = [(400, arrays, single, 2) for arrays in LIBRARIES[1:3] for single in (False, True)]
SMALL_PROGRAMS = [("gavel.makespan_fluid", "hadar", "gen/20jobs", 10)]

GRACE_S = 25
"""Seconds that a measurement may take beyond its limit, to start, compile, settle and stop."""


def card() -> str | None:
    """Return the name, driver and memory of the first NVIDIA card; ``None`` without one."""
    if shutil.which("nvidia-smi") is None:
        return None
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.strip().splitlines()[0] if told.returncode == 0 and told.stdout.strip() else None


def versions() -> dict[str, str]:
    """Return the versions of all packages that matter and are installed."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "highspy", "mpax", "jax", "jaxlib", "torch", "array-api-compat"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def first_order(tenants: int, arrays: str, single: bool, limit_s: float) -> dict[str, Any]:
    """Return bound, allocation and gap of OEF's method after so many seconds."""
    steps = 1 + np.random.default_rng(0).random((tenants, TYPES - 1))
    speedups = np.cumprod(np.c_[np.ones(tenants), steps], axis=1)
    view = matrix_view(speedups, np.full(TYPES, float(tenants // TYPES)))
    found = by_first_order(view, SolveOptions(time_limit_s=limit_s), arrays=arrays, single=single).solution
    return {
        "bound": found.bound,
        "objective": found.objective,
        "gap": found.gap,
        "termination": found.termination,
        "trace": found.trace,
    }


def program(method: str, paper: str, instance: str, solver: str, limit_s: float) -> dict[str, Any]:
    """Return what a solver says about a linear program, and what its prices prove."""
    form = compile_model(build(MODELS.get(method).build, PAPERS.get(paper).view(sg.load(instance))))
    found = solvers.run(form, SolveOptions(solver=solver, time_limit_s=limit_s))
    proved = None if found.row_duals is None else dual_bound(form, found.row_duals)
    return {
        "rows": form.matrix.shape[0],
        "columns": form.matrix.shape[1],
        "nonzeros": form.matrix.nnz,
        "status": found.status,
        "termination": found.termination,
        "iterations": found.iterations,
        "solve_s": found.times.solve_s,
        "objective": found.objective,
        "bound": proved,
    }


def measured(kind: str, given: list[Any]) -> dict[str, Any]:
    """Return a measurement, made in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--one", json.dumps([kind, given])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=given[-1] + GRACE_S)
        lines = done.stdout.strip().splitlines()
        found = json.loads(lines[-1]) if done.returncode == 0 else {"error": done.stderr.strip().splitlines()[-1][:200]}
    except subprocess.TimeoutExpired:
        found = {"error": "stopped: it took too long"}
    return {"kind": kind, "given": given, "seconds": time.perf_counter() - began, **found}


def main() -> None:
    """Measure everything and write it to a file after each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", type=Path, default=Path("gpu.json"))
    parser.add_argument("--processor", action="store_true", help="small sizes, without a card")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, given = json.loads(options.one)
        print(json.dumps({"first_order": first_order, "program": program}[kind](*given)))
        return
    name = card()
    if name is None and not options.processor:
        sys.exit("nothing is measured: nvidia-smi finds no card; --processor runs small sizes without one")
    orders, programs = (SMALL_FIRST_ORDER, SMALL_PROGRAMS) if options.processor else (FIRST_ORDER, PROGRAMS)
    plan = [("first_order", list(given)) for given in orders]
    plan += [("program", [*which, solver, limit_s]) for *which, limit_s in programs for solver in SOLVERS]
    told: dict[str, Any] = {
        "card": name or "none",
        "processor": platform.processor(),
        "versions": versions(),
        "rows": [],
    }
    for one in plan:
        told["rows"].append(measured(*one))
        print(json.dumps(told["rows"][-1])[:300], flush=True)
        options.file.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
