"""One iteration of column generation in several ways: adding columns to the master problem, and solving it again."""

from __future__ import annotations

from functools import cache
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp

from schedgap.models.engine.columns import Columns, Domain, Master, Packing, statement
from schedgap.models.engine.solve import SolveOptions, build, compile_model
from schedgap.models.engine.solve.session import DUAL_SIMPLEX, PRIMAL_SIMPLEX

ROWS, BLOCKS, KNOWN, NEW = 500, 100, 2000, 100
"""Numbers of capacity rows, blocks, known columns, and new columns per batch."""

USES = pytest.mark.parametrize("uses", [10, 50])
"""Number of capacity rows that each column uses."""


def columns(count: int, uses: int, seed: int) -> Columns:
    """Return random columns; those that use more are worth more."""
    rng = np.random.default_rng(seed)
    listed = []
    for c in range(count):
        rows = np.sort(rng.choice(ROWS, uses, replace=False))
        amount = rng.integers(1, 4, uses).astype(float)
        listed.append((c % BLOCKS, float(amount.sum() * rng.uniform(0.5, 1.5)), rows, amount))
    return Columns.of(ROWS, listed)


@cache
def case(uses: int) -> tuple[Packing, Columns, Columns]:
    """Return a packing problem of 500 rows, its known columns, and a batch of new ones."""
    packing = Packing(np.full(ROWS, 0.4 * BLOCKS * uses * 2 / ROWS), BLOCKS)
    return packing, columns(KNOWN, uses, 0), columns(NEW, uses, 1)


@cache
def basis(uses: int) -> Any:
    """Return the optimal basis of the master problem with the known columns."""
    packing, known, _ = case(uses)
    master = Master(Domain.of(packing), known, SolveOptions())
    master.solve()
    return master._session.highs.getBasis()


def solved(uses: int) -> tuple[Master, Columns]:
    """Return a master problem that is solved with the known columns, and the new columns."""
    packing, known, new = case(uses)
    master = Master(Domain.of(packing), known, SolveOptions())
    master._session.highs.setBasis(basis(uses))
    master.solve()
    return master, new


@USES
def test_adding_columns(bench, uses: int) -> None:  # type: ignore[no-untyped-def]
    """Time ``Master.add`` (``highspy.addCols``) against a rebuilt matrix, Pyomo, and Pyomo's persistent solver."""
    packing, known, new = case(uses)
    master, _ = solved(uses)
    ours = bench.time(lambda: master.add(new), rounds=9)
    both = Columns.joined([known, new])
    rebuilt = bench.reference(lambda: handed_over(packing, both, basis(uses)))
    pyomo = bench.reference(lambda: compile_model(build(statement, packing, both)))
    before = persistent_case(uses)
    persistent = bench.reference(lambda: grown(before, new), rounds=1)
    table = "0.13 / 4 / 205 / 195 ms" if uses == 10 else "0.2 / 12 / 750 / 700 ms"
    name = f"500 rows, 100 new columns of {uses} nonzeros"
    told = f"specification: add / matrix and basis / Pyomo anew / Pyomo persistent {table}"
    bench.line(f"{name}: add, against matrix and basis anew", ours, rebuilt, "≥ 10×", told, least=10.0)
    bench.line(f"{name}: add, against the Pyomo model anew", ours, pyomo, "≥ 100×", least=100.0)
    bench.line(f"{name}: add, against Pyomo's persistent interface", ours, persistent, "≥ 100×", least=100.0)


def handed_over(packing: Packing, both: Columns, known: Any) -> None:
    """Rebuild the matrix with known and new columns, and start from the old basis; new columns are nonbasic."""
    master = Master(Domain.of(packing), both, SolveOptions())
    extended = highspy.HighsBasis()
    more = [highspy.HighsBasisStatus.kLower] * NEW
    extended.col_status, extended.row_status = [*known.col_status, *more], known.row_status
    extended.valid = True
    master._session.highs.setBasis(extended)


def persistent_case(uses: int) -> tuple[Any, Any]:
    """Return a Pyomo model of the master problem in Pyomo's persistent solver, which is to be changed."""
    from pyomo.contrib.appsi.solvers import Highs

    packing, known, _ = case(uses)
    model = statement(packing, known)
    solver = Highs()
    solver.set_instance(model)
    return model, solver


def grown(persistent: tuple[Any, Any], new: Columns) -> None:
    """Add the new columns in Pyomo, which can only add variables and then change the rows that they are in."""
    model, solver = persistent
    model.more = pyo.Var(range(len(new)), domain=pyo.NonNegativeReals)
    by_row = sp.csr_array(new.use)
    for i in model.ROWS:
        cells = slice(by_row.indptr[i], by_row.indptr[i + 1])
        pairs = zip(by_row.indices[cells].tolist(), by_row.data[cells].tolist(), strict=True)
        model.within[i].set_value(model.within[i].body + sum(a * model.more[c] for c, a in pairs) <= model.capacity[i])
    for b in model.BLOCKS:
        own = sum(model.more[c] for c in np.flatnonzero(new.block == b).tolist())
        model.once[b].set_value(model.once[b].body + own <= 1)
    model.total.expr = model.total.expr + sum(float(v) * model.more[c] for c, v in enumerate(new.value))
    solver.update()


@USES
def test_solving_again(bench, uses: int) -> None:  # type: ignore[no-untyped-def]
    """After new columns the basis stays primal feasible: primal simplex goes on, dual simplex starts a phase one."""
    took: dict[int, list[float]] = {PRIMAL_SIMPLEX: [], DUAL_SIMPLEX: []}

    def run(strategy: int) -> None:
        master, new = solved(uses)
        master.add(new)
        master._session.set_option("simplex_strategy", strategy)
        before = master.times.solve_s
        master.solve()
        took[strategy].append(master.times.solve_s - before)

    bench.time(lambda: run(PRIMAL_SIMPLEX))
    bench.reference(lambda: run(DUAL_SIMPLEX))
    primal, dual = (float(np.median(took[s])) for s in (PRIMAL_SIMPLEX, DUAL_SIMPLEX))
    table = "250 against 450 ms" if uses == 10 else "330 against 750 ms"
    name = f"500 rows, 100 new columns of {uses} nonzeros: primal, against dual simplex"
    bench.line(name, primal, dual, "≥ 1×", f"specification: {table}", least=1.0)
