"""The one way to solve a model: every outcome is reported properly, and numbers are certified or left out."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from conftest import PATIENCE_S, with_incumbent
from hard import market_split
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from schedgap.instances.errors import UsageError
from schedgap.models.engine.solve import (
    CROSS_CHECK_TOLERANCE,
    NotLinearError,
    Session,
    SolveOptions,
    build,
    building,
    compile_model,
    counted,
    dual_bound,
    solve,
)

EXACT = SolveOptions(rel_gap=0.0)


def knapsack(domain: Any = pyo.Reals, sense: Any = pyo.maximize) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.ITEMS = pyo.Set(initialize=["lamp", "book"])
    m.size = pyo.Param(m.ITEMS, initialize={"lamp": 2, "book": 3})
    m.worth = pyo.Param(m.ITEMS, initialize={"lamp": 3, "book": 4})
    m.x = pyo.Var(m.ITEMS, bounds=(0, 1), domain=domain)

    @m.Constraint()
    def room(m: Any) -> Any:
        return sum(m.size[i] * m.x[i] for i in m.ITEMS) <= 4

    sign = 1 if sense == pyo.maximize else -1
    m.gain = pyo.Objective(rule=lambda m: sum(sign * m.worth[i] * m.x[i] for i in m.ITEMS), sense=sense)
    return m


@pytest.mark.parametrize(("sense", "sign"), [(pyo.maximize, 1), (pyo.minimize, -1)])
def test_lp_optimum_with_duals_and_reduced_costs(sense: Any, sign: int) -> None:
    solution = solve(build(knapsack, sense=sense), SolveOptions(cross_check=True))
    assert solution.status == "optimal"
    assert (solution.termination, solution.solution_status) == ("Optimal", "Feasible")
    assert solution.objective == pytest.approx(sign * 17 / 3)
    assert solution.bound == solution.objective
    assert solution.gap == 0
    assert solution.values == pytest.approx({"x[lamp]": 1, "x[book]": 2 / 3})
    # One more unit of room is worth 4/3; the lamp's reduced cost is what a second lamp would add.
    assert solution.duals == pytest.approx({"room": sign * 4 / 3})
    assert solution.reduced_costs == pytest.approx({"x[lamp]": sign / 3, "x[book]": 0}, abs=1e-12)
    assert solution.cross_check is not None
    assert solution.cross_check <= CROSS_CHECK_TOLERANCE
    assert solution.basis is not None
    assert (solution.size.rows, solution.size.columns, solution.size.nonzeros, solution.size.integers) == (
        1,
        2,
        2,
        0,
    )
    assert solution.times.solve_s > 0
    assert solution.peak_mb is not None
    assert solution.peak_mb > 10


def test_mip_optimum_has_bound_nodes_and_trace_but_no_duals() -> None:
    solution = solve(build(knapsack, domain=pyo.Binary), SolveOptions(cross_check=True))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(4)
    assert solution.bound == pytest.approx(4)
    assert solution.nodes is not None
    assert solution.duals == {}
    assert solution.cross_check == pytest.approx(0)
    assert solution.trace[-1].incumbent == pytest.approx(4)
    times = [point.time_s for point in solution.trace]
    assert times == sorted(times)


def infeasible() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.y = pyo.Var(bounds=(0, 1))
    m.c = pyo.Constraint(expr=m.x + m.y >= 3)
    m.o = pyo.Objective(expr=m.x + m.y)
    return m


def unbounded() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    m.c = pyo.Constraint(expr=m.x >= m.y)
    m.o = pyo.Objective(expr=m.x)
    return m


def infeasible_integer() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    m.c = pyo.Constraint(expr=2 * m.x == 7)
    m.o = pyo.Objective(expr=m.x)
    return m


def violated_constant() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 1)), pyo.Var()
    m.y.fix(5)
    m.c = pyo.Constraint(expr=m.y <= 2)
    m.o = pyo.Objective(expr=m.x + 1)
    return m


@pytest.mark.parametrize(
    ("builder", "status"),
    [
        (infeasible, "infeasible"),
        (infeasible_integer, "infeasible"),
        (violated_constant, "infeasible"),
        (unbounded, "unbounded"),
    ],
)
def test_no_optimum_is_an_answer(builder: Callable[[], pyo.ConcreteModel], status: str) -> None:
    for model in (build(builder), builder()):
        solution = solve(model)
        assert solution.status == status
        assert solution.objective is None
        assert not solution.has_incumbent


def test_reading_values_without_incumbent_says_why() -> None:
    model = build(infeasible)
    with pytest.raises(ValueError, match="no incumbent to read x from \\(infeasible\\)"):
        solve(model).array(model.x)


def test_time_limit_with_incumbent_keeps_it_and_the_bound() -> None:
    solution = with_incumbent(lambda limit_s: solve(market_split(), SolveOptions(time_limit_s=limit_s)))
    assert solution.status == "time limit with incumbent"
    assert solution.objective is not None
    assert solution.bound is not None
    assert solution.bound <= solution.objective
    assert solution.gap is not None
    assert solution.gap > 0


@pytest.mark.parametrize("limit", [{"time_limit_s": 1e-6}, {"nodes": 0}])
def test_limit_without_incumbent(limit: dict[str, Any]) -> None:
    solution = solve(market_split(n=60, m=12), SolveOptions(**limit))
    assert solution.status == "time limit without incumbent"
    assert solution.objective is None


def test_lp_time_limit_counts_each_run_of_a_session() -> None:
    session = Session(compile_model(build(knapsack)), SolveOptions(time_limit_s=PATIENCE_S))
    for _ in range(3):
        assert session.run().status == "optimal"


def test_ctrl_c_interrupts_a_solve_and_keeps_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    record, told = Session._record, list[bool]()

    def interrupt(session: Session, event: Any, bound: float | None) -> None:
        record(session, event, bound)
        if session._trace[-1].incumbent is not None and not told:
            told.append(True)
            _thread.interrupt_main()

    monkeypatch.setattr(Session, "_record", interrupt)
    solution = solve(market_split(), SolveOptions(time_limit_s=PATIENCE_S))
    assert solution.status == "interrupted"
    assert solution.objective is not None


def test_ctrl_c_during_a_small_lp_is_heard_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Highs(highspy.Highs):
        def run(self) -> Any:
            _thread.interrupt_main()
            return super().run()

    monkeypatch.setattr(highspy, "Highs", Highs)
    session = Session(compile_model(build(knapsack)), SolveOptions())
    before = signal.getsignal(signal.SIGINT)
    assert session.run().status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit_s": 0}, "time limit = 0 s: a solve needs a positive number of seconds"),
        ({"time_limit_s": float("nan")}, "time limit = nan s"),
        ({"rel_gap": -1}, "relative gap = -1: a gap is 0 or more"),
        ({"threads": 0}, "threads = 0: a solve takes from one thread to 1024"),
        ({"threads": 10**6}, "threads = 1000000: a solve takes from one thread to 1024"),
        ({"seed": -1}, "seed = -1: a seed lies between 0 and 2147483647"),
        ({"seed": 99999999999}, "seed = 99999999999: a seed lies between 0 and 2147483647"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", "\\(")):
        SolveOptions(**options)


def test_mip_start_is_used_and_its_names_are_checked() -> None:
    start = {"x[lamp]": 0.0, "x[book]": 1.0}
    assert solve(build(knapsack, domain=pyo.Binary), SolveOptions(mip_start=start)).objective == pytest.approx(4)
    with pytest.raises(UsageError, match="MIP start names 'x\\[chair\\]'"):
        solve(build(knapsack, domain=pyo.Binary), SolveOptions(mip_start={"x[chair]": 1.0}))


def test_warm_start_from_a_basis_needs_no_iteration() -> None:
    first = solve(build(knapsack), SolveOptions(method="simplex"))
    again = solve(build(knapsack), SolveOptions(method="simplex", basis=first.basis))
    assert again.iterations == 0
    assert again.objective == pytest.approx(first.objective)


def test_threads_and_seed_may_change_between_solves() -> None:
    for threads in (1, 2, 1):
        options = SolveOptions(threads=threads, seed=threads)
        assert solve(build(knapsack, domain=pyo.Binary), options).objective == pytest.approx(4)


def test_unknown_highs_options_are_errors() -> None:
    session = Session(compile_model(build(knapsack)), SolveOptions())
    with pytest.raises(ValueError, match="refuses option no_such_option"):
        session.set_option("no_such_option", 1)


def quadratic() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=(m.x - 3) ** 2)
    return m


def test_what_does_not_compile_goes_through_pyomos_own_interface() -> None:
    model = build(quadratic)
    with pytest.raises(NotLinearError):
        compile_model(model)
    solution = solve(build(quadratic))
    assert (solution.path, solution.status) == ("pyomo", "optimal")
    assert solution.values["x"] == pytest.approx(3, abs=1e-5)


def test_two_objectives_are_not_linear_programming() -> None:
    model = build(knapsack)
    model.second = pyo.Objective(expr=model.x["lamp"])
    with pytest.raises(NotLinearError, match="exactly one active objective, and this one has 2"):
        compile_model(model)


def test_building_restores_pyomos_settings_even_after_an_error() -> None:
    import gc

    import pyomo.core.base.constraint as module

    before = module.TEMPLATIZE_CONSTRAINTS

    def build_badly() -> None:
        with building():
            assert not gc.isenabled()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        build_badly()
    assert before == module.TEMPLATIZE_CONSTRAINTS
    assert gc.isenabled()


def test_range_rows_and_fixed_and_idle_variables() -> None:
    def model() -> pyo.ConcreteModel:
        m = pyo.ConcreteModel()
        m.x = pyo.Var([0, 1, 2], bounds=(-5, 5))
        m.x[2].fix(1.5)
        m.idle = pyo.Var([0], bounds=(2, 3))
        m.c = pyo.Constraint(expr=(1, m.x[0] + m.x[1] + m.x[2], 4))
        m.o = pyo.Objective(expr=m.x[0] + 2 * m.x[1] + m.x[2])
        return m

    built = build(model)
    solution = solve(built, SolveOptions(cross_check=True))
    assert solution.array(built.x) == pytest.approx([4.5, -5, 1.5])
    assert solution.array(built.idle) == pytest.approx([2])
    assert solution.duals["c"] == pytest.approx(1)
    assert solution.cross_check == pytest.approx(0)


def test_session_adds_rows_and_columns() -> None:
    session = Session(compile_model(build(knapsack)), SolveOptions())
    assert session.run().objective == pytest.approx(17 / 3)
    session.add_rows(np.array([-np.inf]), np.array([1.0]), sp.csr_array([[1.0, 1.0]]))
    assert session.run().objective == pytest.approx(4)
    session.add_columns(np.array([10.0]), np.zeros(1), np.ones(1), sp.csc_array([[1.0], [0.0]]))
    assert session.run().objective == pytest.approx(14)


def random_lp(seed: int) -> Callable[[], pyo.ConcreteModel]:
    def builder() -> pyo.ConcreteModel:
        rng = np.random.default_rng(seed)
        rows, columns = rng.integers(1, 6, 2)
        a, b, c = rng.normal(size=(rows, columns)), rng.uniform(0, 5, rows), rng.normal(size=columns)
        m = pyo.ConcreteModel()
        m.R, m.C = pyo.RangeSet(0, rows - 1), pyo.RangeSet(0, columns - 1)
        m.a = pyo.Param(m.R, m.C, initialize={(i, j): float(a[i, j]) for i in m.R for j in m.C})
        m.b = pyo.Param(m.R, initialize=dict(enumerate(b.tolist())))
        m.c = pyo.Param(m.C, initialize=dict(enumerate(c.tolist())))
        m.x = pyo.Var(m.C, bounds=(-1, 2))
        m.row = pyo.Constraint(m.R, rule=lambda m, i: sum(m.a[i, j] * m.x[j] for j in m.C) <= m.b[i] + 3)
        m.o = pyo.Objective(
            rule=lambda m: sum(m.c[j] * m.x[j] for j in m.C), sense=pyo.maximize if seed % 2 else pyo.minimize
        )
        return m

    return builder


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_templates_agree_with_plain_rules_scipy_and_cbc(seed: int) -> None:
    builder = random_lp(seed)
    fast = solve(build(builder), SolveOptions(cross_check=True))
    plain = solve(builder())
    assert fast.objective == pytest.approx(plain.objective, abs=1e-9)
    assert fast.cross_check is not None
    assert fast.cross_check <= CROSS_CHECK_TOLERANCE
    form = compile_model(builder())
    sign = -1 if form.maximise else 1
    peer = linprog(
        sign * form.cost,
        A_ub=form.matrix,
        b_ub=form.row_upper,
        bounds=list(zip(form.lower, form.upper, strict=True)),
    )
    assert fast.objective == pytest.approx(sign * peer.fun, abs=1e-7)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_any_row_prices_bound_the_optimum(seed: int, prices: int) -> None:
    form = compile_model(build(random_lp(seed)))
    optimum = solve(build(random_lp(seed))).objective
    assert optimum is not None
    y = np.random.default_rng(prices).normal(size=len(form.row_lower))
    bound = dual_bound(form, y)
    assert bound is not None
    assert bound >= optimum - 1e-9 if form.maximise else bound <= optimum + 1e-9


def test_optimal_prices_give_the_optimum_itself() -> None:
    form = compile_model(build(knapsack))
    solution = solve(build(knapsack))
    assert solution.row_duals is not None
    assert dual_bound(form, solution.row_duals) == pytest.approx(solution.objective)


@pytest.mark.parametrize("domain", [pyo.NonNegativeReals, pyo.Binary])
def test_declared_units_leave_the_answer_in_those_of_the_model(domain: Any) -> None:
    """Values, objective, bound, prices and reduced costs do not depend on the units that a model declares."""

    def far(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
        counted(m, [(m.x["lamp"], 0.25), (m.room, 7.0), (m.gain, 1e4)])
        return m

    plain, in_units = (solve(given, EXACT) for given in (build(knapsack, domain), far(build(knapsack, domain))))
    assert in_units.objective == pytest.approx(plain.objective)
    assert in_units.bound == pytest.approx(plain.bound)
    for what in ("values", "duals", "reduced_costs"):
        assert getattr(in_units, what) == pytest.approx(getattr(plain, what))
    if domain is pyo.NonNegativeReals:
        assert plain.duals["room"] == pytest.approx(4 / 3)


def test_pyomo_is_imported_with_the_first_model_and_has_all_names_for_plug_ins() -> None:
    code = (
        "import sys, schedgap as sg, schedgap.models as models; print('pyomo.core' in sys.modules)\n"
        "models.get('oef.cooperative').solve(sg.load('paper/oef-eq1')); print('scipy.stats' in sys.modules)\n"
        "from pyomo.environ import *; import pyomo.environ; print(ConcreteModel is pyomo.environ.ConcreteModel)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert out.stdout.split() == ["False", "False", "True"]
