"""Other solvers on the same arrays: equal optima, valid bounds, and a clear sentence if there is no answer."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyomo.environ as pyo
import pytest
from conftest import PATIENCE_S, Command, examples, with_incumbent
from hard import market_split
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgap as sg
from schedgap.harness.show.page import blocks
from schedgap.harness.show.table import Table
from schedgap.harness.studies.compare import summary
from schedgap.harness.studies.compare.run import certify
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.models import MODELS
from schedgap.models.engine.solve import (
    SOLVERS,
    Solution,
    SolveOptions,
    TracePoint,
    build,
    compile_model,
    files,
    solve,
)
from schedgap.models.engine.solve.options import LICENSED
from schedgap.models.engine.solve.solution import Times
from schedgap.models.engine.solve.solvers import answer, cbc
from schedgap.models.engine.solve.solvers.whole import whole
from schedgap.models.registry import PAPERS

FREE = [solver for solver in SOLVERS if solver not in LICENSED]
LINEAR = ("highs:pdlp", "mpax")
FIG1, WALKTHROUGH, EQ1 = "paper/hadar-fig1", "paper/walkthrough", "paper/oef-eq1"


def need(solver: str) -> None:
    """Skip the test if the package that a solver needs is not installed."""
    packages = {"scip": "pyscipopt", "cp-sat": "ortools", "highs:hipo": "highspy_extras", "mpax": "mpax"}
    if solver in packages:
        pytest.importorskip(packages[solver])


def random_mip(seed: int) -> pyo.ConcreteModel:
    """Return a bounded, feasible integer program with a constant, a fixed column and a column that others determine."""
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), domain=pyo.Integers, bounds=lambda m, j: (-int(j % 2), 3))
    m.total, m.fixed = pyo.Var(), pyo.Var(bounds=(2, 2))
    m.room = pyo.ConstraintList()
    for weights in rng.uniform(0, 5, (rows, n)).round(int(rng.integers(0, 17))).tolist():
        m.room.add(sum(w * m.x[j] for j, w in enumerate(weights)) <= 2 * n)
    m.sum = pyo.Constraint(expr=m.total == m.fixed + sum(m.x[j] for j in m.x))
    m.few = pyo.Constraint(expr=m.total <= n + 2.5)
    worth = rng.normal(size=n).tolist()
    m.gain = pyo.Objective(
        expr=7.25 + m.total / 3 + sum(w * m.x[j] for j, w in enumerate(worth)),
        sense=pyo.maximize if seed % 2 else pyo.minimize,
    )
    return m


@pytest.mark.parametrize("solver", [solver for solver in FREE if solver not in LINEAR])
@pytest.mark.parametrize("seed", range(examples(2)))
def test_all_find_the_same_optimum(solver: str, seed: int) -> None:
    need(solver)
    expected = solve(random_mip(seed))
    found = solve(random_mip(seed), SolveOptions(solver=solver, time_limit_s=PATIENCE_S))
    assert found.status == expected.status == "optimal"
    assert found.solver == solver
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    assert found.bound == pytest.approx(expected.objective, rel=2e-6)
    assert found.column_values is not None
    form = compile_model(random_mip(seed))
    assert form.cost @ found.column_values + form.offset == pytest.approx(expected.objective, rel=1e-6)
    assert found.trace[-1].incumbent == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("solver", [solver for solver in FREE if solver not in ("cp-sat", "mpax")])
def test_linear_programs(solver: str) -> None:
    """CP-SAT takes whole numbers only; of mpax, prices are compared as well, in a test of its own."""
    need(solver)
    found = MODELS.get("oef.cooperative.full").solve(sg.load(EQ1), solver=solver)
    assert found.status == "optimal"
    assert (found.objective, found.bound) == (pytest.approx(4.5, rel=1e-5), pytest.approx(4.5, rel=1e-5))


def test_two_interior_points_of_highs_are_two_solvers(tmp_path: Path) -> None:
    """HiGHS's own "ipm" is HiPO where that is installed, so that both names meant the same."""
    need("highs:hipo")
    told = {}
    for solver in ("highs:ipm", "highs:hipo"):
        (logs := tmp_path / solver.replace(":", "-")).mkdir()
        MODELS.get("oef.cooperative.full").solve(sg.load("gen/oef-4"), solver=solver, logs=logs)
        told[solver] = "".join(log.read_text() for log in logs.iterdir())
    assert "IPX model has" in told["highs:ipm"]
    assert "IPX model has" not in told["highs:hipo"]


def sides() -> pyo.ConcreteModel:
    """Return a program with an equation, a row with two sides, a row with none, a free column and a constant."""
    m = pyo.ConcreteModel()
    m.x, m.free = pyo.Var([1, 2], bounds=(0, 4)), pyo.Var()
    m.same = pyo.Constraint(expr=m.free == m.x[1] - m.x[2])
    m.between = pyo.Constraint(expr=(-1, m.x[1] - 2 * m.x[2], 3))
    m.anything = pyo.Constraint(expr=(None, m.x[1] + m.x[2], 100))
    m.gain = pyo.Objective(expr=2 * m.x[1] - 3 * m.free + 7, sense=pyo.maximize)
    return m


def test_prices_of_mpax_are_those_of_highs() -> None:
    need("mpax")
    expected, found = solve(sides()), solve(sides(), SolveOptions(solver="mpax?primal_importance=2"))
    assert (found.status, found.solver) == ("optimal", "mpax?primal_importance=2")
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    assert found.bound == pytest.approx(expected.objective, rel=1e-6)
    for name, price in expected.duals.items():
        assert found.duals[name] == pytest.approx(price, abs=1e-5)
    for name, cost in expected.reduced_costs.items():
        assert found.reduced_costs[name] == pytest.approx(cost, abs=1e-5)


def test_a_row_of_mpax_is_verified_and_certified() -> None:
    need("mpax")
    (row,) = sg.compare("gen/20jobs", ["gavel.makespan_fluid"], solvers="mpax", jobs=1).rows
    (exact,) = sg.compare("gen/20jobs", ["gavel.makespan_fluid"], jobs=1).rows
    assert (row.solver, row.status) == ("mpax", "optimal")
    assert row.own_bound == pytest.approx(exact.own_bound, rel=1e-6)


def test_mpax_that_is_not_installed_is_skipped_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotApplicableError, match=r"mpax is not installed: pip install 'schedgap\[gpu\]'"):
        solve(sides(), SolveOptions(solver="mpax"))


def test_mpax_out_of_time_keeps_what_its_prices_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    need("mpax")
    monkeypatch.setattr(answer, "GRACE_S", PATIENCE_S)
    program = build(MODELS.get("gavel.makespan_fluid").build, PAPERS.get("hadar").view(sg.load("gen/20jobs")))
    found = solve(program, SolveOptions(solver="mpax?eps_abs=1e-30&eps_rel=1e-30", time_limit_s=1e-3))
    assert (found.status, found.objective) == ("time limit without incumbent", None)
    assert found.bound is not None
    assert found.bound == pytest.approx(solve(program).objective, rel=1e-3)


def impossible() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 3))
    m.odd = pyo.Constraint(expr=2 * m.x[1] + 2 * m.x[2] == 3)
    m.gain = pyo.Objective(expr=m.x[1])
    return m


@pytest.mark.parametrize("solver", ["cbc", "scip", "cp-sat"])
def test_that_nothing_is_feasible_is_an_answer(solver: str) -> None:
    need(solver)
    found = solve(impossible(), SolveOptions(solver=solver))
    assert (found.status, found.objective, found.bound) == ("infeasible", None, None)


def test_what_cbc_calls_infeasible_when_its_time_is_up_is_no_proof() -> None:
    log = "Continuous objective value is 1 - 0.77 seconds\nPre-processing says infeasible or unbounded\n"
    said = files.SolutionFile("CBC", "Integer infeasible", 1.0, {}, complete=False)
    one = answer.SolverRun(compile_model(market_split()), SolveOptions(solver="cbc", time_limit_s=60.0))
    one.begin()
    assert cbc._read(one, [], log, said, 0).status == "infeasible"
    one.began -= 60.0
    found = cbc._read(one, [], log, said, 0)
    assert (found.status, found.termination) == ("time limit without incumbent", "Integer infeasible")
    assert found.bound == pytest.approx(1.0 + one.form.offset, abs=1e-4)


@pytest.mark.parametrize("solver", ["cbc", "scip", "cp-sat"])
def test_a_time_limit_leaves_incumbent_and_bound(solver: str) -> None:
    need(solver)
    found = with_incumbent(lambda limit_s: solve(market_split(), SolveOptions(solver=solver, time_limit_s=limit_s)))
    assert found.status == "time limit with incumbent"
    assert found.objective is not None
    assert found.bound is not None
    assert 0.99 <= found.bound < found.objective
    assert [point.time_s for point in found.trace] == sorted(point.time_s for point in found.trace)


def test_without_a_solution_there_may_be_no_bound() -> None:
    need("cp-sat")
    found = solve(market_split(), SolveOptions(solver="cp-sat", time_limit_s=1e-3))
    assert (found.status, found.objective, found.bound) == ("time limit without incumbent", None, None)


BOUNDED = {"cbc": "After 0 nodes", "scip": r'"bound": \d', "cp-sat": r'"bound": \d'}
"""A text in each solver's log from which on it has a bound."""


@pytest.mark.parametrize("solver", BOUNDED)
def test_a_killed_program_leaves_its_bound(solver: str) -> None:
    need(solver)
    before = set(psutil.Process().children(recursive=True))

    def kill() -> None:
        """Kill the solver's program as soon as its log has a bound."""
        while True:
            time.sleep(0.05)
            for child in set(psutil.Process().children(recursive=True)) - before:
                with contextlib.suppress(psutil.Error):  # a short-lived child may end between the list and the look
                    logs = [Path(file.path) for file in child.open_files() if file.path.endswith("log")]
                    if any(re.search(BOUNDED[solver], log.read_text()) for log in logs):
                        child.send_signal(signal.SIGKILL)
                        return

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = solve(market_split(), SolveOptions(solver=solver, time_limit_s=PATIENCE_S))
    killer.join()
    assert found.status == "interrupted"
    assert found.termination == "killed by signal 9"
    assert found.objective is None
    assert found.bound is not None
    assert 0.99 <= found.bound <= 2


def test_a_bound_is_never_rounded_up() -> None:
    assert cbc._least("8.250") == pytest.approx(8.2495)
    assert cbc._least("-8.10143e+06") <= -8101435
    assert cbc._least("7") == pytest.approx(6.999965)
    assert cbc._least("0") == 0.0


# ---------------------------------------------------------------- whole numbers


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_what_follows_from_integer_columns_is_substituted(seed: int) -> None:
    form = compile_model(random_mip(seed))
    reduced = whole(form)
    assert reduced.form.integer.all()
    rng = np.random.default_rng(seed)
    values = rng.integers(reduced.form.lower, reduced.form.upper + 1).astype(float)
    back = reduced.back(values)
    equal = form.row_lower == form.row_upper
    assert (form.matrix @ back)[equal] == pytest.approx(form.row_lower[equal])
    assert reduced.form.cost @ values + reduced.form.offset == pytest.approx(form.cost @ back + form.offset)
    inside = ((form.matrix @ back <= form.row_upper + 1e-9) & (form.matrix @ back >= form.row_lower - 1e-9)).all()
    left = reduced.form.matrix @ values
    kept = (left <= reduced.form.row_upper + 1e-9).all() and (left >= reduced.form.row_lower - 1e-9).all()
    assert bool(inside) == bool(kept)


def test_p1_is_a_model_in_whole_numbers() -> None:
    form = compile_model(MODELS.get("hadar.p1").build(PAPERS.get("hadar").view(sg.load(FIG1))))
    assert not form.integer.all()
    assert whole(form).form.integer.all()


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("method", "solver", "told"),
    [
        ("oef.efficiency", "cp-sat", r"cp-sat takes whole numbers only, and 6 columns \(x\[0,0\], …\) are continuous"),
        ("hadar.p1", "highs:pdlp", "highs:pdlp takes models without integer columns only"),
        ("hadar.p1", "mpax", "mpax takes models without integer columns only"),
        (
            "hadar.p2.columns",
            "scip",
            "adds rows or columns to its model as it goes, for which it needs highs",
        ),
        ("synergy.jct", "cbc", "it is not solved as one program, and never calls cbc"),
        ("hadar.p1", "xpress", "xpress is not installed: put AMPL's driver 'xpress' on the path"),
    ],
)
def test_why_not_is_a_sentence(method: str, solver: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(solver)
    monkeypatch.setenv("PATH", "/usr/bin")
    instance = "paper/synergy-example" if method.startswith("synergy") else EQ1 if method.startswith("oef") else FIG1
    with pytest.raises(NotApplicableError, match=told):
        MODELS.get(method).solve(sg.load(instance), solver=solver)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--solver", "scipp"], "solver = 'scipp': must be highs or highs:ipm"),
        (["--solver", "scip", "--method", "hadar.p1?solver=cbc"], "'solver' is given twice"),
    ],
)
def test_wrong_words_end_in_one_line(words: list[str], told: str, command: Command) -> None:
    done = command("compare", "--instance", FIG1, "--method", "hadar.p1", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_unknown_solver_in_python() -> None:
    with pytest.raises(UsageError, match="unknown solver 'scpi'; did you mean scip"):
        SolveOptions(solver="scpi")


def test_solvers_without_a_model_to_solve_are_a_mistake() -> None:
    with pytest.raises(UsageError, match="solver = scpi: no chosen method is a model, so there is nothing to solve"):
        sg.compare("paper/oef-eq1", "oef.gandiva_fair", solvers="scpi")


# ---------------------------------------------------------------- with a licence

STUB = """#!{python}
import re, sys
assert "lim:time=5.0" in sys.argv and "mip:bestbound=1" in sys.argv, sys.argv
if "-v" in sys.argv:
    print("x-Stub 12.0.1 (Linux), driver(20250101), MP(20250101)")
    raise SystemExit
stub = next(word for word in sys.argv[1:] if word.endswith(".nl"))
lines = open(stub).read().splitlines()
columns, rows = map(int, lines[1].split()[:2])
values = [0.0] * columns
{values}
with open(stub[:-3] + ".sol", "w") as out:
    out.write("stub 12.0.1: {message}\\n\\nOptions\\n3\\n1\\n1\\n0\\n")
    out.write("%d\\n0\\n%d\\n%d\\n" % (rows, columns, columns))
    out.write("\\n".join(map(repr, values)) + "\\nobjno 0 {code}\\n")
    out.write("suffix 6 1 10 0 0\\nbestbound\\n0 {bound}\\n")
"""


def gurobi(folder: Path, monkeypatch: pytest.MonkeyPatch, **told: Any) -> None:
    """Put a fake program on the path that answers like AMPL's driver for Gurobi."""
    program = folder / "gurobi"
    script = STUB.replace("assert", "if '-v' not in sys.argv: assert").format(python=sys.executable, **told)
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def pair() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 3))
    m.room = pyo.Constraint(expr=2 * m.x[1] + 3 * m.x[2] <= 7)
    m.gain = pyo.Objective(expr=3 * m.x[1] + 4 * m.x[2] + 1, sense=pyo.maximize)
    return m


@pytest.mark.parametrize(
    ("code", "status"), [(0, "optimal"), (200, "infeasible"), (400, "time limit with incumbent"), (500, "error")]
)
def test_a_driver_of_ampl_is_asked_through_pyomo(
    code: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gurobi(tmp_path, monkeypatch, values="values = [2.0, 1.0]", message="told", code=code, bound=11.5)
    found = solve(pair(), SolveOptions(solver="gurobi", time_limit_s=5.0))
    assert (found.status, found.solver) == (status, "gurobi")
    if code in (0, 400):
        assert (found.objective, found.bound) == (11.0, 11.5)
        assert found.values == {"x[1]": 2.0, "x[2]": 1.0}


def test_a_driver_that_answers_nonsense_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gurobi(tmp_path, monkeypatch, values="raise SystemExit(3)", message="", code=0, bound=0)
    found = solve(pair(), SolveOptions(solver="gurobi", time_limit_s=5.0))
    assert (found.status, found.objective, found.bound) == ("error", None, None)


# ---------------------------------------------------------------- comparisons


def test_a_row_per_solver_is_verified(tmp_path: Path) -> None:
    for solver in ("scip", "cp-sat"):
        need(solver)
    names = ("highs", "scip", "cp-sat", "cbc", "copt")
    found = sg.compare(FIG1, ["hadar.p1", "hadar.fifo"], solvers=names, jobs=1, results=tmp_path)
    rows = {row.method: row for row in found.rows}
    assert list(rows) == ["hadar.p1", *(f"hadar.p1?solver={name}" for name in names[1:]), "hadar.fifo"]
    told = [(row.solver, row.status, row.verified) for row in rows.values() if row.kind == "exact"]
    assert told == [*((name, "optimal", True) for name in names[:-1]), (None, "skipped", None)]
    (table,) = [block for block in blocks(found) if isinstance(block, Table) and block.caption.startswith("Solvers")]
    assert [row[0].text for row in table.rows] == list(names)
    assert "--solver scip" in found.meta["command"]
    ran: list[str] = []
    methods = ["hadar.p1?solver=scip", "hadar.p1?solver=cbc"]
    noted = lambda one: None if one.helps else ran.append(one.row.method)  # noqa: E731
    again = sg.compare(FIG1, methods, jobs=1, resume=found.folder, on_result=noted)
    assert (ran, [row.solver for row in again.rows]) == ([], ["cbc", "scip"])


def test_success_is_claimed_and_correct_is_checked() -> None:
    row = sg.compare(WALKTHROUGH, ["admission.offline"], jobs=1).rows[0]
    liar = row.replace(method="admission.offline?solver=cbc", objective=400.0, claimed_bound=400.0, key="liar")
    slow = row.replace(method="admission.offline?solver=scip", status="time limit without incumbent", solve_s=20.0)
    slow = slow.replace(objective=None, claimed_bound=None, own_bound=None, verified=None, integral_s=20.0)
    lines = {line.solver: line for line in summary.by_solver(certify([row, liar, slow]), 20.0)}
    assert (lines["highs"].success, lines["highs"].correct, lines["highs"].wrong) == (1, 1, ())
    assert (lines["cbc"].success, lines["cbc"].correct) == (1, 0)
    assert lines["cbc"].wrong == ("admission.offline on paper/walkthrough",)
    assert (lines["scip"].success, lines["scip"].failed, lines["scip"].geometric_s) == (0, 1, pytest.approx(20.0))
    assert lines["cbc"].geometric_s == pytest.approx(20.0)


def test_primal_dual_integral() -> None:
    points = (TracePoint(1.0, None, 10.0), TracePoint(2.0, 5.0, 10.0), TracePoint(3.0, 10.0, 10.0))
    done = Solution("optimal", "", trace=points, times=Times(solve_s=4.0))
    assert summary.integral(done, 100.0) == pytest.approx(2.0 + 0.5)
    stopped = Solution("time limit with incumbent", "", trace=points[:2], times=Times(solve_s=10.0))
    assert summary.integral(stopped, 10.0) == pytest.approx(2.0 + 8 * 0.5)
    assert summary.integral(Solution("error", "", times=Times(solve_s=1.0)), 10.0) == pytest.approx(10.0)
    assert (summary.gap_of(-1.0, 1.0), summary.gap_of(0.0, 0.0), summary.gap_of(None, 1.0)) == (1.0, 0.0, 1.0)


def test_sweep_files_name_solvers(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'title = "t"\nmethods = ["oef.efficiency"]\ninstances = ["paper/oef-eq1"]\nsolvers = ["highs", "cbc"]\n'
    )
    assert [row.solver for row in sg.sweep(file, jobs=1).rows] == ["highs", "cbc"]
    file.write_text(file.read_text().replace('"cbc"', '"cbb"'))
    with pytest.raises(UsageError, match=r"s\.toml: oef\.efficiency: solver = 'cbb': must be highs or"):
        sg.sweep(file, jobs=1)


def test_programs_end_with_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "GRACE_S", 0.1)
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE_S})"])
    assert answer.wait(process, SolveOptions(time_limit_s=0.2)) == -signal.SIGKILL


def test_options_of_a_run_say_its_solver() -> None:
    assert json.loads(json.dumps(MODELS.get("hadar.p1?solver=highs:ipm").settings)) == {"solver": "highs:ipm"}
    assert MODELS.get("hadar.p1?solver=highs").id == "hadar.p1"
