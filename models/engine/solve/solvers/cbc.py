"""CBC: PuLP's bundled executable, or the one on the path. The trace is read from its log, even if CBC was killed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pulp

from schedgap.instances.registry import Status
from schedgap.models.engine.solve import files
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.solution import Solution, SolveOptions
from schedgap.models.engine.solve.solvers.answer import SolverRun, absent, wait

NUMBER = r"(-?[\d.]+(?:[eE][-+]?\d+)?)"
PROGRESS = re.compile(rf"After (\d+) nodes, .*?{NUMBER} best solution, best possible {NUMBER} \({NUMBER} seconds\)")
FOUND = re.compile(rf"Integer solution of {NUMBER} found .*\({NUMBER} seconds\)")
ROOT = re.compile(rf"Continuous objective value is {NUMBER} - {NUMBER} seconds")
BOUND = re.compile(rf"Lower bound:\s+{NUMBER}")
PRINTED = 1e-7
"""Largest difference between the objective that CBC prints, with eight decimals, and that of its column values."""

DIGITS = 5e-6
"""Largest relative rounding error of a number printed with six digits."""

NODES = re.compile(r"Enumerated nodes:\s+(\d+)")

STATUS: tuple[tuple[str, Status], ...] = (
    ("Optimal", "optimal"),
    ("Infeasible", "infeasible"),
    ("Integer infeasible", "infeasible"),
    ("Unbounded", "unbounded"),
)


def executable() -> str:
    """Return the path of the CBC executable."""
    path = shutil.which(pulp.PULP_CBC_CMD.pulp_cbc_path) or shutil.which("cbc")
    if path is None:
        raise absent("cbc", "install it from https://github.com/coin-or/Cbc (Debian: coinor-cbc)")
    return path


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form with CBC; if it is killed or interrupted, keep the last bound and incumbent value in its log."""
    program, attempt = executable(), SolverRun(form, options)
    settings = ["-timeMode", "elapsed", "-ratio", repr(options.rel_gap), "-randomCbcSeed", str(options.seed + 1)]
    settings += ["-threads", str(options.threads)] if options.threads > 1 else []
    settings += [] if options.time_limit_s is None else ["-sec", repr(options.time_limit_s)]
    settings += [] if options.nodes is None else ["-maxN", str(options.nodes)]
    with tempfile.TemporaryDirectory() as folder:
        model, log, output = (Path(folder) / name for name in ("model.mps", "log", "answer.sol"))
        names = files.write_numbered(form, model)
        command = [program, str(model), *settings, "-solve", "-solution", str(output)]
        with log.open("w") as out:
            attempt.begin()
            code = wait(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT), options)
        text = log.read_text(errors="replace")
        answer = files.read_solution("CBC", output.read_text()) if output.exists() and code == 0 else None
    return _read(attempt, names, text, answer, code)


def _read(attempt: SolverRun, names: list[str], log: str, answer: files.SolutionFile | None, code: int) -> Solution:
    form, sign = attempt.form, -1.0 if attempt.form.maximise else 1.0
    for line in log.splitlines():
        if match := PROGRESS.search(line):
            _, best, possible, at = match.groups()
            attempt.reached(sign * float(best), sign * _least(possible), float(at))
        elif match := FOUND.search(line):
            attempt.reached(sign * float(match[1]), None, float(match[2]))
        elif match := ROOT.search(line):
            attempt.reached(None, sign * _least(match[1]), float(match[2]))
    last = attempt.trace[-1].bound if attempt.trace else None
    bound = None if last is None else last - form.offset
    if answer is None:
        why = f"killed by signal {-code}" if code < 0 else f"exited with status {code}: {log.strip()[-200:]}"
        return attempt.ended("interrupted" if code < 0 else "error", why, bound=bound)
    status: Status = next((s for words, s in STATUS if answer.status.startswith(words)), "error")
    solved = bool(attempt.trace and attempt.trace[-1].incumbent is not None) or not form.integer.any()
    # CBC 2.10 reports infeasible if time runs out during presolve ("Pre-processing says infeasible or unbounded").
    late = status == "infeasible" and attempt.late
    if answer.status.startswith("Stopped") or late:
        timed = late or "time" in answer.status
        status = attempt.stopped(solved) if timed else "gap left" if solved else "interrupted"
    elif status in ("infeasible", "unbounded", "error"):
        return attempt.ended(status, answer.status, bound=bound if status == "error" else None)
    values = np.array([answer.values.get(name, 0.0) for name in names]) if solved or status == "optimal" else None
    objective = None if values is None or answer.objective is None else sign * answer.objective
    if values is not None and objective is not None and abs(objective - (own := float(form.cost @ values))) <= PRINTED:
        objective = own
    if match := BOUND.search(log):
        bound = sign * _least(match[1])
    elif status == "optimal":
        bound = objective
    nodes = NODES.search(log)
    return attempt.ended(status, answer.status, values, objective, bound, int(nodes[1]) if nodes else 0)


def _least(printed: str) -> float:
    """Return the smallest number that would be printed as `printed`, since a bound that was rounded up is not valid.

    If there is a decimal point, as in the summary, the last digit was rounded; progress has at most six digits.
    """
    decimals = len(printed.partition(".")[2])
    number = float(printed)
    return number - max(0.5 * 10.0**-decimals if decimals and "e" not in printed else 0.0, DIGITS * abs(number))
