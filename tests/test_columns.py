"""Column generation on random packing problems with known columns, against scipy and an enumeration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from schedgap.models.engine.columns import (
    Choice,
    Columns,
    DescentOptions,
    Domain,
    Generated,
    GenerationOptions,
    Inserting,
    Master,
    Oracle,
    Packing,
    PackingOptions,
    Priced,
    Windows,
    descend,
    generate,
    lagrangian,
    statement,
    windows,
)
from schedgap.models.engine.solve import Solution, SolveOptions, build, solve

TIGHT = GenerationOptions(gap=1e-9)


@dataclass(frozen=True)
class Known(Oracle):
    """A packing problem whose columns are all known, as oracle for pricing and for inserting columns.

    The end of a column is the rank of its value among those of its block.
    """

    packing: Packing
    columns: Columns
    several: int = 1

    @staticmethod
    def of(packing: Packing, columns: Columns, several: int = 1) -> Known:
        ranks = [np.unique(-columns.value[columns.block == b]) for b in range(packing.blocks)]
        ends = max((len(rank) for rank in ranks), default=0)
        ranks = [rank if len(rank) else np.zeros(1) for rank in ranks]
        worth = np.array([np.pad(-rank[:ends], (0, max(ends - len(rank), 0)), "edge") for rank in ranks])
        end = [int(np.searchsorted(ranks[b], -v)) for b, v in zip(columns.block, columns.value, strict=True)]
        packing = replace(packing, worth=worth.reshape(packing.blocks, ends))
        return Known(packing, replace(columns, end=np.array(end, np.int64)), several)

    @property
    def domain(self) -> Domain:
        return Domain.of(self.packing)

    def __call__(self, prices: np.ndarray, domain: Domain) -> Priced:
        columns = domain.packing.lifted(self.columns)
        profit = domain.profit(columns, prices)
        allowed = np.flatnonzero(profit > -np.inf)
        most = np.full(self.packing.blocks, -np.inf)
        np.maximum.at(most, self.columns.block, profit)
        by_end = np.full((self.packing.blocks, domain.ends), -np.inf)
        np.maximum.at(by_end, (self.columns.block, self.columns.end), profit)
        order = allowed[np.lexsort((-profit[allowed], self.columns.block[allowed]))]
        rank = np.arange(len(order)) - np.searchsorted(self.columns.block[order], self.columns.block[order])
        return Priced(most, columns.take(np.sort(order[rank < self.several])), by_end)

    def insert(self, block: int, room: np.ndarray, prices: np.ndarray) -> Choice | None:
        dense = self.columns.use.toarray()
        fits = (self.columns.block == block) & (dense <= room[:, None] + 1e-9).all(axis=0)
        profit = np.where(fits, self.columns.profit(prices), -np.inf)
        if not fits.any() or (profit.max() <= 0 and not self.packing.cover):
            return None
        best = int(profit.argmax())
        rows = np.flatnonzero(dense[:, best])
        return Choice(float(self.columns.value[best]), rows, dense[rows, best])

    def generate(self, options: GenerationOptions | None = None) -> Generated:
        return generate(self.domain, self, options)

    def packer(self, found: Generated, options: PackingOptions | None = None) -> Inserting:
        return Inserting(self.packing, self.insert, found.bound, found.prices, options)

    def lp(self) -> float | None:
        """Return the optimum of the LP over all columns, found by scipy."""
        once = np.zeros((self.packing.blocks, len(self.columns)))
        once[self.columns.block, np.arange(len(self.columns))] = 1
        within = self.columns.use.toarray(), self.packing.capacity
        ones = np.ones(self.packing.blocks)
        if self.packing.cover:
            found = linprog(-self.columns.value, *within, A_eq=once, b_eq=ones)
        else:
            found = linprog(-self.columns.value, np.vstack([within[0], once]), np.concatenate([within[1], ones]))
        return -float(found.fun) if found.status == 0 else None

    def best(self) -> float | None:
        """Return the integer optimum, found by enumeration."""
        dense = self.columns.use.toarray()
        options = [
            [int(c) for c in np.flatnonzero(self.columns.block == b)] + ([] if self.packing.cover else [-1])
            for b in range(self.packing.blocks)
        ]
        values = [
            float(self.columns.value[chosen].sum())
            for combination in product(*options)
            if (dense[:, (chosen := [c for c in combination if c >= 0])].sum(axis=1) <= self.packing.capacity).all()
        ]
        return max(values, default=None)


@st.composite
def known(draw: Any, cover: bool | None = None) -> Known:
    rows, blocks = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    capacity = np.array(draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)), float)
    listed = []
    covering = draw(st.booleans()) if cover is None else cover
    for block in range(blocks):
        for _ in range(draw(st.integers(1, 4))):
            uses = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), float)
            used = np.flatnonzero(uses)
            listed.append((block, float(draw(st.integers(-3 if covering else 1, 9))), used, uses[used]))
    packing = Packing(capacity, blocks, covering, floor=-3.0 * blocks if covering else 0.0)
    return Known.of(packing, Columns.of(rows, listed), draw(st.integers(1, 3)))


@pytest.mark.parametrize("smoothing", [0.0, 0.6, 0.9])
@given(problem=known())
def test_reaches_the_lp_optimum_and_bounds_the_integer_one(problem: Known, smoothing: float) -> None:
    found = problem.generate(GenerationOptions(gap=1e-9, smoothing=smoothing))
    lp, best = problem.lp(), problem.best()
    if lp is None:
        assert found.ended == "infeasible"
        assert best is None
        return
    assert found.ended in ("gap", "exhausted")
    assert found.value == pytest.approx(lp, abs=1e-6)
    assert found.bound == pytest.approx(lp, abs=1e-6)
    assert found.unpriced == pytest.approx(0, abs=1e-9)
    if best is not None:
        assert found.bound >= best - 1e-6


@given(problem=known(), first=st.integers(1, 3))
def test_windows_are_a_relaxation_until_the_master_moves(problem: Known, first: int) -> None:
    """A master over windows of rows gives a valid bound; its next domain has every row and the LP's optimum."""
    problem = replace(problem, packing=replace(problem.packing, series=len(problem.packing.capacity)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(windows, "FIRST", first)
        found = problem.generate(TIGHT)
    lp = problem.lp()
    if lp is None or found.master is None:
        return
    assert found.bound >= lp - 1e-6
    assert found.value >= lp - 1e-6
    exact = generate(problem.domain, problem, TIGHT, master=found.master)
    assert exact.value == pytest.approx(lp, abs=1e-6)
    assert exact.bound == pytest.approx(lp, abs=1e-6)
    assert (exact.columns.use @ exact.x <= problem.packing.capacity + 1e-6).all()


@given(st.lists(st.floats(-9, 9), min_size=12, max_size=12), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_splits_are_where_most_is_taken_before_or_after_them(over: list[float], price: list[int]) -> None:
    """Windows are split where prices differ, and each part lies within one window.

    There are two series of six slots, in windows of two and of four slots.
    """
    at_first = Windows(np.array([0, 2, 6, 10]), 12, 6)
    prices = np.repeat(np.array(price[:4], float), [2, 4, 4, 2])
    finer, start, end = at_first.split(np.array(over), prices, 1.0, 0.0)
    assert len(start) == len(end) == 2 * (len(finer.start) - 4)
    assert set(at_first.start) <= set(finer.start.tolist())
    assert all(a in finer.start and b in finer.end for a, b in zip(start, end, strict=True))
    begins, middles, ends = np.split(start, 2)[0], np.split(start, 2)[1], np.split(end, 2)[1]
    for a, m, b in zip(begins, middles, ends, strict=True):
        moved = [max(sum(over[a:t]), sum(over[t:b])) for t in range(a + 1, b)]
        assert max(sum(over[a:m]), sum(over[m:b])) == pytest.approx(max(moved))
        assert max(moved) > 0


@given(problem=known(), numbers=st.lists(st.floats(0, 10), min_size=4, max_size=4))
def test_any_prices_bound(problem: Known, numbers: list[float]) -> None:
    prices = np.array(numbers[: len(problem.packing.capacity)])
    best = problem.best()
    if best is not None:
        assert lagrangian(problem.domain, prices, problem(prices, problem.domain).most) >= best - 1e-9


@given(problem=known(), numbers=st.lists(st.floats(0, 10), min_size=4, max_size=4))
def test_a_descent_keeps_the_best_bound_with_its_prices_and_columns(problem: Known, numbers: list[float]) -> None:
    """The bound holds, is that of its prices, and is no worse than where the descent began."""
    start, domain = np.array(numbers[: len(problem.packing.capacity)]), problem.domain
    found = descend(domain, problem, start, DescentOptions(rounds=20))
    lp = problem.lp()
    assert found.bound <= lagrangian(domain, start, problem(start, domain).most)
    assert (found.prices >= 0).all()
    assert found.bound == lagrangian(domain, found.prices, problem(found.prices, domain).most)
    assert (np.bincount(found.columns.block, minlength=1) <= 1).all()
    if lp is not None:
        assert found.bound >= lp - 1e-6
        profit = found.columns.profit(found.prices).sum()
        assert found.bound == pytest.approx(profit + found.prices @ problem.packing.capacity)


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_for_many_blocks_is_near_the_lp(seed: int) -> None:
    """With hundreds of blocks, the descent ends within 0.1 % of the optimum of all columns."""
    rng = np.random.default_rng(seed)
    listed = []
    for block in range(300):
        for _ in range(3):
            rows = np.flatnonzero(rng.random(6) < 0.5)
            listed.append((block, float(rng.uniform(1, 9)), rows, rng.integers(1, 4, len(rows)).astype(float)))
    problem = Known.of(Packing(np.full(6, 200.0), 300, floor=0.0), Columns.of(6, listed))
    found, lp = descend(problem.domain, problem, np.ones(6)), problem.lp()
    assert lp is not None
    assert lp - 1e-6 <= found.bound <= lp * 1.001


@given(problem=known())
def test_the_master_agrees_with_its_statement_in_pyomo(problem: Known) -> None:
    found = problem.generate(TIGHT)
    if found.ended == "infeasible" or not len(found.columns):
        return
    stated = solve(build(statement, problem.packing, found.columns))
    assert stated.objective == pytest.approx(found.value, abs=1e-6)
    assert (found.columns.use @ found.x <= problem.packing.capacity + 1e-6).all()


@given(problem=known())
def test_dropping_idle_columns_changes_nothing(problem: Known) -> None:
    found = problem.generate(GenerationOptions(gap=1e-9, keep=0.0))
    lp = problem.lp()
    if lp is not None:
        assert found.value == pytest.approx(lp, abs=1e-6)


@given(problem=known(), ends=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), max_size=4))
def test_rows_that_leave_the_master_when_slack_return_when_violated(
    problem: Known, ends: list[tuple[int, int, int]]
) -> None:
    """From one domain to the next, the master has the optimum of a new one, and it satisfies all capacities."""
    master = Master(problem.domain, problem.columns, SolveOptions())
    master.solve()
    for block, first, last in [*ends, (0, 0, problem.domain.ends)]:
        domain = problem.domain.ending(min(block, problem.packing.blocks - 1), min(first, last), last)
        master.move(domain)
        moved, new = master.solve(), Master(domain, problem.columns, SolveOptions()).solve()
        assert moved.uncovered == pytest.approx(new.uncovered, abs=1e-6)
        if new.uncovered < 1e-6:
            assert moved.value == pytest.approx(new.value, abs=1e-6)
            assert (problem.columns.use @ moved.x <= problem.packing.capacity + 1e-6).all()


def test_only_rows_that_were_tight_stay_when_the_master_moves() -> None:
    """Two blocks want one unit each of two capacities: the one of 1 is tight, the one of 3 slack."""
    both = np.array([0, 1]), np.ones(2)
    problem = Known.of(Packing(np.array([1.0, 3.0]), 2), Columns.of(2, [(0, 2.0, *both), (1, 1.0, *both)]))
    master = Master(problem.domain, problem.columns, SolveOptions())
    assert master.solve().value == 2.0
    assert master.size.rows == 4
    master.move(problem.domain)
    assert master.size.rows == 3
    assert master.solve().value == 2.0


@given(problem=known())
def test_packs_a_solution_within_the_capacities(problem: Known) -> None:
    found = problem.generate(TIGHT)
    if found.ended == "infeasible":
        return
    packer = problem.packer(found)
    packer.offer({})
    for _ in range(4):
        packer.anneal()
    packed, best = packer.packed, problem.best()
    chosen = packed.columns
    assert len(set(chosen.block.tolist())) == len(chosen)
    assert (chosen.use.sum(axis=1) <= problem.packing.capacity + 1e-9).all()
    assert packed.value == pytest.approx(chosen.value.sum())
    assert packed.missing == (problem.packing.blocks - len(chosen) if problem.packing.cover else 0)
    if packed.missing == 0:
        assert best is not None
        assert packed.value == packer.incumbent <= best + 1e-9
        incumbents = [point.incumbent for point in packer.trace]
        assert incumbents == sorted(incumbents)


def test_costs_are_minimised_as_negative_values() -> None:
    columns = Columns.of(1, [(0, -5.0, np.array([0]), np.array([2.0])), (0, -7.0, np.array([0]), np.array([1.0]))])
    problem = Known.of(Packing(np.array([1.0]), 1, cover=True, floor=-100.0), columns)
    assert problem.generate().value == pytest.approx(-7)


def test_what_cannot_be_covered_is_proved_infeasible() -> None:
    columns = Columns.of(1, [(b, 1.0, np.array([0]), np.array([1.0])) for b in range(2)])
    problem = Known.of(Packing(np.array([1.0]), 2, cover=True, floor=0.0), columns)
    found = problem.generate()
    assert found.ended == "infeasible"
    assert found.bound < 0
    with pytest.raises(ValueError, match="need a column"):
        statement(Packing(np.array([1.0]), 3, cover=True), columns)


def test_a_little_less_cost_counts_also_beside_rewards_for_covered_blocks() -> None:
    worth = np.repeat([[-1e6, -2e6]], 200, axis=0)
    packer = Inserting(Packing(np.ones(1), 200, cover=True, worth=worth), lambda *asked: None, -1e8, np.zeros(1))
    assert packer.reward > 1e8
    assert packer.note(-7_964_274.0, 200)
    assert packer.note(-7_964_261.0, 200)
    assert not packer.note(-1.0, 199)
    assert packer.incumbent == -7_964_261.0


def test_lists_insert_blocks_in_the_order_of_their_ends() -> None:
    """Columns are inserted by ascending end, and the best list is kept: one block of most value excludes two others."""
    each = enumerate(((3.0, 2.0), (2.0, 1.0), (2.0, 1.0)))
    columns = Columns.of(1, [(block, value, np.array([0]), np.array([use])) for block, (value, use) in each])
    problem = Known.of(Packing(np.array([2.0]), 3), columns)
    packer = Inserting(problem.packing, problem.insert, 4.0, np.zeros(1))
    for ends, value in (([1, 2, 2], 3.0), ([2, 1, 1], 4.0), ([1, 2, 2], 4.0)):
        packer.follow(np.array(ends))
        assert packer.incumbent == value


def test_nothing_to_choose() -> None:
    nothing = Columns.of(2, [])
    for cover, ended in ((False, "exhausted"), (True, "infeasible")):
        problem = Known.of(Packing(np.ones(2), 0 if not cover else 1, cover), nothing)
        found = problem.generate()
        assert found.ended == ended
    assert Known.of(Packing(np.ones(2), 0), nothing).generate().value == 0


def test_limits_end_the_loop_with_a_valid_bound() -> None:
    rng = np.random.default_rng(1)
    listed = []
    for block in range(30):
        for _ in range(30):
            rows = np.flatnonzero(rng.random(20) < 0.3)
            listed.append((block, float(rng.integers(1, 50)), rows, np.ones(len(rows))))
    problem = Known.of(Packing(np.full(20, 3.0), 30), Columns.of(20, listed))
    full = problem.generate(TIGHT)
    assert full.value == pytest.approx(problem.lp(), rel=1e-7)
    for options, ended in (
        (GenerationOptions(gap=1e-9, iterations=3), "iterations"),
        (GenerationOptions(gap=1e-9, time_limit_s=0.0), "time limit"),
    ):
        short = problem.generate(options)
        assert short.ended == ended
        assert short.bound >= full.value - 1e-6
        assert short.value <= full.value + 1e-6
    bounds = [point.bound for point in full.trace]
    assert bounds == sorted(bounds, reverse=True)
    assert full.size.columns == len(full.columns)


def test_a_simplex_that_does_not_end_falls_back_to_the_dual(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns.of(1, [(b, 1.0 + b, np.array([0]), np.array([1.0])) for b in range(3)])
    master = Master(Known.of(Packing(np.array([2.0]), 3), columns).domain, columns, SolveOptions())
    run, runs = master._session.run, []

    def fail_once(*args: Any) -> Solution:
        runs.append(run(*args))
        return runs[-1] if len(runs) > 1 else replace(runs[-1], status="error")

    monkeypatch.setattr(master._session, "run", fail_once)
    assert master.solve().value == pytest.approx(5)
    assert len(runs) == 2


@given(seed=st.integers(0, 3))
def test_the_same_seed_packs_the_same(seed: int) -> None:
    rng = np.random.default_rng(5)
    listed = [
        (block, float(rng.integers(1, 50)), rows, np.ones(len(rows)))
        for block in range(12)
        for _ in range(6)
        if len(rows := np.flatnonzero(rng.random(8) < 0.4))
    ]
    problem = Known.of(Packing(np.full(8, 2.0), 12), Columns.of(8, listed))
    found = problem.generate(TIGHT)
    first, second = (problem.packer(found, PackingOptions(seed=seed)) for _ in range(2))
    for packer in (first, second):
        packer.offer({})
        for _ in range(10):
            packer.anneal()
    assert first.incumbent == second.incumbent
    assert (first.packed.columns.block == second.packed.columns.block).all()


def test_an_optimum_that_hides_its_infeasibility_is_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master is solved again if HiGHS calls an infeasible point optimal, which would end column generation."""
    packing = Packing(np.array([1.0, 1.0]), 2)
    listed = [(0, 3.0, np.array([0]), np.ones(1)), (1, 2.0, np.array([0]), np.ones(1))]
    problem = Known.of(packing, Columns.of(2, listed))
    master = Master(problem.domain, problem.columns, SolveOptions())
    run, answers = master._session.run, []

    def first_without_point(*args: Any) -> Solution:
        answers.append(run(*args))
        return replace(answers[-1], objective=None, column_values=None) if len(answers) == 1 else answers[-1]

    monkeypatch.setattr(master._session, "run", first_without_point)
    assert master.solve().value == pytest.approx(3.0)
    assert len(answers) == 2
    monkeypatch.setattr(master._session, "run", lambda *args: replace(run(*args), objective=None, column_values=None))
    assert master.solve().status == "error"
