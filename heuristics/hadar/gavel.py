"""Gavel (Narayanan et al., OSDI 2020): optimal time shares from a linear program, and rounds that follow them.

*Shares.* ``Y[j, o]`` is the fraction of time that job ``j`` spends in option ``o``. In an option all its GPUs have one
type; a gang that no single type could hold has a mixed option (:mod:`schedgap.heuristics.simulator.gangs`)::

    Σ_o Y[j, o] ≤ 1,    Σ_j Σ_o usage[j, o, r]·Y[j, o] ≤ C_r,    Y ≥ 0

``hadar.gavel`` maximises the minimum over all jobs of (Gavel, section 4.1)::

    (W_j / w_j) · Σ_o X[j, o]·Y[j, o] / X_eq[j],    X_eq[j] = Σ_r X[j, r]·C_r / Σ_r C_r

with gang sizes ``W``, weights ``w`` and rates ``X``. This is throughput relative to that of an equal share of the
cluster; a gang of one GPU gets as much GPU time as a larger one. Many allocations attain the same minimum, and Gavel
leaves the choice to its solver. Here it is the allocation of largest total ``Σ W·X·Y / X_eq``, with the terms weighted
by 1 to 1.001 (:data:`TIES`) so that a single vertex is optimal. ``hadar.gavel_throughput`` maximises the total
throughput ``Σ W·X·Y`` in iterations per second, with the same weights. ``hadar.gavel?goal=makespan`` maximises the
minimum of ``Σ_o W·X·Y / iterations left``, which minimises the time until the last job is done at these rates (Gavel,
section 4.2).

``goal=water_filling`` continues where ``max_min`` leaves the rest to the total: jobs whose value cannot rise any more
keep it, the minimum of the others is maximised, and so on, until no job can gain except at the expense of one with no
higher value (Gavel, section 4.3, within one level). Gavel finds the jobs that cannot rise by an integer program; here
they are those with positive duals, which have no higher value in *any* optimum. There is always at least one.

``goal=finish_time_fairness`` minimises the largest ``ρ`` of Themis (Gavel, section 4.2): the total time that a job
takes, relative to the time it would take alone on one n-th of the cluster::

    ρ_j = (seconds since arrival + iterations left / Σ_o W·X·Y) / T_j,    T_j = E_j + iterations left / isolated rate

where ``E_j`` is the time that the completed work would have taken there, with the numbers ``n`` of jobs so far. For a
given ``ρ``, a job that has waited ``t`` seconds needs a rate of ``iterations left / (ρ·T − t)``: a max-min program. Its
duals bound the smallest ``ρ`` from below (:func:`fair_rates`), and a few programs suffice.


Jobs with the same gang, weight and (relative) rates form a class and get the same shares: averaging their shares in any
optimum is feasible and equally good. So the program has one variable per class and option, ``n_c·Y``. It stays in
HiGHS, whose simplex method restarts from the last basis when the numbers of jobs change, and results are cached by
these numbers. Shares are rounded to multiples of :data:`GRID`, so that solver noise decides no later tie.

*Rounds.* Shares are recomputed whenever the set of jobs changes. In a round, pairs of job and option are served by
priority ``Y / (rounds received in that option / rounds)``, both counted since the job arrived. Pairs that have received
no round come before all others, by their share (in Gavel's code, their priority is ``10⁹·Y``). Ties are broken by
arrival, index and type. A job runs in one option; an option that does not fit is skipped. Leftover GPUs go to jobs
without a share of their type, by arrival, index and rate: like Gavel, this leaves no GPU idle that a job could use.

*Differences from Gavel's simulator* (``scheduler/scheduler.py``): it recomputes shares at most every 1920 s and counts
the time received since then, starting with half a round for every job; it serves the types one after another rather
than in one order of priorities; it ends a round early when all its jobs are done; and it rounds steps down to integers.
In the version of its ``finish_time_fairness.py`` that we read, ``E_j`` is the time since arrival, and the isolated rate
is that of max-min shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from schedgap.heuristics.hadar.slotted import baseline
from schedgap.heuristics.simulator import Servers, State, Workload
from schedgap.heuristics.simulator.gangs import GangOptions, GangPolicy, in_order
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter

Goal = Literal["max_min", "water_filling", "throughput", "makespan", "finish_time_fairness"]

GRID = 1e-6
"""Time shares are rounded to multiples of this number."""

TIES = 1e-3
"""Terms of the total are weighted by 1 to 1 plus this number, so that a single vertex is optimal."""

SETTINGS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "solver": "simplex",
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
"""Options of HiGHS: the programs are small, and the tolerances are far below the perturbations that break ties."""

SLACK = 1e-9
"""Relative amount by which the minimum may fall short of its largest value when the total is maximised afterwards."""

STUCK = 1e-6
"""A class with at least this fraction of the total dual counts as unable to gain; duals below may be solver noise."""

CLOSE = 1e-6
"""Relative tolerance within which :func:`fair_rates` finds the smallest ``ρ``."""

CUTS = 60
"""Most programs that :func:`fair_rates` solves to find the smallest ``ρ``; 3 to 6 are usual."""


class _GavelProgram:
    """A linear program over classes of jobs, kept in HiGHS between solves.

    A column for each pair of class and option is the number of gangs that run there at a time; one more column is the
    minimum ``z``. The rows limit the gangs of each class to its number of jobs ``n_c`` and the GPUs of each type, and
    give each class a value of at least ``n_c·w_c·z``. Only the numbers ``n_c`` and the demands change between solves.
    """

    def __init__(self, member: Ints, value: Array, usage: Ints, capacity: Ints, classes: int, cost: Array) -> None:
        import highspy

        self._counts = np.zeros(classes, np.int64)
        self._demand, self._floor = np.zeros(classes), np.zeros(classes)
        highs = self._highs = highspy.Highs()
        for name, setting in SETTINGS.items():
            highs.setOptionValue(name, setting)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        no_values = np.zeros(0)
        no_indices = no_values.astype(np.int32)
        unbounded = np.full(cost.size, np.inf)
        highs.addCols(cost.size, cost, np.zeros(cost.size), unbounded, 0, no_indices, no_indices, no_values)
        columns_of = [np.flatnonzero(member == c).astype(np.int32) for c in range(classes)]
        for columns in columns_of:
            highs.addRow(-np.inf, 0.0, columns.size, columns, np.ones(columns.size))
        for r, gpus in enumerate(capacity.tolist()):
            users = np.flatnonzero(usage[:, r]).astype(np.int32)
            highs.addRow(-np.inf, float(gpus), users.size, users, usage[users, r].astype(float))
        for columns in columns_of:
            highs.addRow(0.0, np.inf, columns.size, columns, value[columns])

    def solve(self, counts: Ints, demand: Array, floor: Array, least: float, most: float) -> Array:
        """Solve the program for `counts` ``(c,)`` jobs in the classes; return the optimal values of the columns.

        The minimum `z` is between `least` and `most`; each class gets a value of at least ``demand·z + floor``.
        """
        from highspy import HighsModelStatus

        pairs, fairness = self._highs.getNumCol() - 1, self._highs.getNumRow() - counts.size
        for c in np.flatnonzero(counts != self._counts).tolist():
            self._highs.changeRowBounds(c, -np.inf, float(counts[c]))
        for c in np.flatnonzero(demand != self._demand).tolist():
            self._highs.changeCoeff(fairness + c, pairs, -float(demand[c]))
        for c in np.flatnonzero(floor != self._floor).tolist():
            self._highs.changeRowBounds(fairness + c, float(floor[c]), np.inf)
        self._counts, self._demand, self._floor = counts.copy(), demand.copy(), floor.copy()
        self._highs.changeColBounds(pairs, least, most)
        for _ in range(2):  # from the last basis and, if that fails, from scratch
            self._highs.run()
            if self._highs.getModelStatus() == HighsModelStatus.kOptimal:
                return np.asarray(self._highs.getSolution().col_value)
            self._highs.clearSolver()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        raise NotApplicableError(f"Gavel's shares: HiGHS ends with {status}; rates or GPU numbers too far apart?")

    def pull(self) -> Array:
        """Return how much each class ``(c,)`` limits `z` in the last solve: its dual times its demand; the sum is 1."""
        duals = np.asarray(self._highs.getSolution().row_dual)[-self._demand.size :]
        return np.asarray(np.abs(duals) * self._demand)


class ShareProgram:
    """A program that computes optimal time shares for any numbers of jobs in ``c`` classes.

    A job that runs in an option all the time has `value` ``(c, o)``, 0 for options that it does not have, and uses
    `usage` ``(c, o, k)`` of the GPUs `capacity` ``(k,)``. With a `weight` ``(c,)``, shares maximise the minimum of
    ``value/weight`` over the classes. If `filling`, they then maximise the minimum over the classes that can still
    gain, and so on. If all weights are 0, shares maximise the total value.
    """

    def __init__(self, value: Array, usage: Ints, capacity: Ints, weight: Array, filling: bool = False) -> None:
        self.shape, self.filling = value.shape, filling
        self._able, self._largest = value.any(axis=1), value.max(initial=1e-300)
        self.reweigh(weight)
        self._class, self._option = np.nonzero(value > 0)
        worth = value[self._class, self._option] / self._largest
        # Evenly spread over [0, 1) and, unlike multiples of one number, with pairwise different differences.
        spread = np.arange(1, worth.size + 1) ** 2 * 0.6180339887498949 % 1
        data = (self._class, worth, usage[self._class, self._option], capacity, weight.size)
        # Two programs, because each one's last basis is close to its next optimum.
        self._fair = _GavelProgram(*data, cost=np.append(np.zeros(worth.size), 1.0))
        self._total = _GavelProgram(*data, cost=np.append(worth * (1 + TIES * spread), 0.0))

    def reweigh(self, weight: Array) -> None:
        """Replace the weights of the classes, and forget the shares computed with the old ones."""
        weight = np.where(self._able, weight, 0.0)  # a class that can run nowhere demands nothing
        self._unit = max(weight.mean(), 1e-300)
        self._weight = weight / self._unit
        self._solved: dict[bytes, Array] = {}

    def least(self, counts: Ints) -> tuple[float, Array]:
        """Return the largest possible minimum of ``value/weight``, and how much each class ``(c,)`` limits it."""
        level = self._level(counts, self._weight * counts, np.zeros(counts.size))
        return level * self._largest / self._unit, self._fair.pull()

    def shares(self, counts: Ints) -> Array:
        """Return the ``(c, o)`` time shares of one job of each class, with `counts` ``(c,)`` jobs in the classes."""
        key = counts.tobytes()
        if key in self._solved:
            return self._solved[key]
        demand, floor, least = self._weight * counts, np.zeros(counts.size), 0.0
        if self.filling:
            demand, floor = np.zeros(counts.size), self._water_levels(counts, demand)
        elif demand.any():  # otherwise the minimum is unbounded
            least = self._level(counts, demand, floor)
        total = self._total.solve(counts, demand, floor, least * (1 - SLACK), least)[:-1]
        shares = np.zeros(self.shape)
        shares[self._class, self._option] = total / np.maximum(counts[self._class], 1)
        self._solved[key] = np.round(np.clip(shares, 0.0, 1.0) / GRID) * GRID
        return self._solved[key]

    def _level(self, counts: Ints, demand: Array, floor: Array) -> float:
        return max(float(self._fair.solve(counts, demand, floor, 0.0, np.inf)[-1]), 0.0)

    def _water_levels(self, counts: Ints, demand: Array) -> Array:
        """Return the ``(c,)`` values of the classes after water-filling.

        The minimum over the rising classes is maximised; those that cannot gain keep their value; then the minimum over
        the remaining ones is maximised, and so on.
        """
        rising, floor = demand.copy(), np.zeros(counts.size)
        while rising.any():
            level, pull = self._level(counts, rising, floor), self._fair.pull()
            stuck = (rising > 0) & (pull >= min(STUCK, pull.max()))
            floor[stuck] = (1 - SLACK) * level * rising[stuck]
            rising[stuck] = 0.0
        return floor


def fair_rates(program: ShareProgram, left: Array, waited_s: Array, alone_s: Array) -> Array:
    """Return the iterations per second ``(a,)`` that jobs need so that the largest ``ρ`` (see the module) is smallest.

    Jobs have `left` iterations to do, arrived `waited_s` seconds ago, and would take `alone_s` seconds in total if
    alone. A value of ``ρ`` says which rates the jobs need; with these as weights of `program`, all jobs can have
    `ratio` times their needs. The program's duals bound the rates of any other shares, and thereby ``ρ`` from below:
    the tangent of the concave harmonic mean gives the bound, which is the ``ρ`` of the next program.
    """
    ones = np.ones(left.size, np.int64)
    low, high = float((waited_s / alone_s).max()), math.inf
    rho = 2 * max(low, 1.0)
    for _ in range(CUTS):
        spare_s = np.maximum(rho * alone_s - waited_s, SLACK * alone_s)
        program.reweigh(left / spare_s)
        ratio, pull = program.least(ones)
        low, high = (low, rho) if ratio >= 1 else (rho, high)
        if abs(ratio - 1) <= CLOSE or high - low <= CLOSE * low:
            break
        pull, ratio = np.maximum(pull, SLACK), max(ratio, SLACK)
        rho += (1 / ratio - 1) * pull.sum() / (pull @ (alone_s / spare_s))
        if not low < rho < high:
            rho = (low + min(high, 3 * low)) / 2
    return np.asarray(left / spare_s)


def classes(work: Workload, gangs: GangOptions, goal: Goal) -> tuple[Ints, ShareProgram]:
    """Group jobs that get the same shares into classes; return the ``(n,)`` class of each job, and the program."""
    value = gangs.rates * work.gpus[:, None]
    weight = np.zeros(work.size)
    if goal in {"max_min", "water_filling"}:
        equal = work.rates @ gangs.capacity / gangs.capacity.sum()
        value = value / np.where(equal > 0, equal, 1.0)[:, None]
        weight = work.weight
    # After the division, jobs with proportional rates differ by rounding errors.
    scale = 10.0 ** np.floor(np.log10(np.where(value > 0, value, 1.0)))
    significant = np.round(value / scale, 9) * scale
    features = np.column_stack([work.gpus, weight, significant, gangs.usage.reshape(work.size, -1)])
    _, first, member = np.unique(features, axis=0, return_index=True, return_inverse=True)
    table = value[first], gangs.usage[first], gangs.capacity, weight[first]
    return member.ravel(), ShareProgram(*table, filling=goal == "water_filling")


@baseline(
    "hadar.gavel_throughput",
    "Gavel (Narayanan et al., OSDI 2020), total throughput, with the rounds of section 5",
    {"goal": "throughput"},
)
@baseline(
    "hadar.gavel",
    "Gavel (Narayanan et al., OSDI 2020), section 4.1, max-min fairness with the rounds of section 5",
    parameters=(
        Parameter(
            "goal",
            "objective of the shares: maximise the minimum throughput (section 4.1), also by water filling (4.3); or "
            "minimise the completion of the last job (4.2), or the largest ρ of Themis (4.2)",
            choices=("max_min", "water_filling", "makespan", "finish_time_fairness"),
        ),
    ),
)
class Gavel(GangPolicy):
    """The scheduler Gavel: a linear program gives jobs shares of time, which its rounds then follow."""

    def __init__(self, work: Workload, cluster: Servers, goal: Goal = "max_min") -> None:
        from schedgap.heuristics.hadar._kernels import serve

        super().__init__(work, cluster)
        self._serve: Callable[..., Ints] = serve
        self._goal, self._single = goal, goal in {"makespan", "finish_time_fairness"}
        if not self._single:
            self.member, self.program = classes(work, self.gangs, goal)
        self._alone_s, self._alone_rate = np.zeros(work.size), np.ones(work.size)
        self._left: Array = work.work.astype(float)
        self._rounds: Ints = np.zeros(work.size, np.int64)
        self._received: Ints = np.zeros(self.gangs.rates.shape, np.int64)
        self._jobs = self._in_order = np.zeros(0, np.int64)

    def _chosen(self, state: State) -> Ints:
        if not np.array_equal(state.jobs, self._jobs):
            self._jobs = state.jobs
            self._in_order = jobs = in_order(state)
            if self._single:
                self._account(state, jobs)
                shares = self._one_by_one(state, jobs)
            else:
                counts = np.bincount(self.member[jobs], minlength=self.program.shape[0]).astype(np.int64)
                shares = self.program.shares(counts)[self.member[jobs]]
            row, option = np.nonzero(shares)
            self._pairs = jobs[row], np.ascontiguousarray(option), shares[row, option]
        gangs, so_far = self.gangs, (self._rounds, self._received)
        return self._serve(*self._pairs, self._in_order, gangs.by_rate, *so_far, gangs.usage, gangs.capacity.copy())

    def _account(self, state: State, jobs: Ints) -> None:
        """Add to each job's time alone: how long an n-th of the cluster would have taken for the work done since.

        *Since* means since the last call. The rates on an n-th of the cluster are updated for the next call.
        """
        self._alone_s[state.jobs] += (self._left[state.jobs] - state.remaining) / self._alone_rate[state.jobs]
        self._left[state.jobs] = state.remaining
        # Alone, a gang of W GPUs has x GPUs of a type, an n-th of all, and runs there for x / W of the time.
        work = self.gangs.work
        time = self.gangs.capacity / (jobs.size * work.gpus[jobs, None])
        time /= np.maximum(time.sum(axis=1, keepdims=True), 1.0)
        alone = (time * work.rates[jobs]).sum(axis=1) * work.gpus[jobs]
        self._alone_rate[jobs] = np.where(alone > 0, alone, 1.0)

    def _one_by_one(self, state: State, jobs: Ints) -> Array:
        """Return the ``(a, o)`` shares from a program in which every job is its own class.

        The goals ``makespan`` and ``finish_time_fairness`` need this, because they depend on the work left of each job.
        """
        shares = np.zeros((jobs.size, self.gangs.rates.shape[1]))
        able = self.gangs.best_rate[jobs] > 0
        jobs = jobs[able]
        if not jobs.size:
            return shares
        left, value = self._left[jobs], self.gangs.rates[jobs] * self.gangs.work.gpus[jobs, None]
        program = ShareProgram(value, self.gangs.usage[jobs], self.gangs.capacity, left)
        if self._goal == "finish_time_fairness":
            waited_s = state.time_s - state.workload.arrival_s[jobs]
            program.reweigh(fair_rates(program, left, waited_s, self._alone_s[jobs] + left / self._alone_rate[jobs]))
        shares[able] = program.shares(np.ones(jobs.size, np.int64))
        return shares
