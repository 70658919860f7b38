"""Gavel (Narayanan et al., OSDI 2020): an optimal split of time by a linear program, and rounds that follow it.

*Shares.* ``Y[j, o]`` is the part of its time that job ``j`` is to spend in option ``o``, all its GPUs on one type (or
the mixed option of a gang that no single type could hold; see :mod:`schedgap.heuristics.simulator.gangs`)::

    Σ_o Y[j, o] ≤ 1,    Σ_j Σ_o usage[j, o, r]·Y[j, o] ≤ C_r,    Y ≥ 0

``hadar.gavel`` maximises the least of (Gavel, section 4.1)::

    (W_j / w_j) · Σ_o X[j, o]·Y[j, o] / X_eq[j],    X_eq[j] = Σ_r X[j, r]·C_r / Σ_r C_r

with gangs ``W``, weights ``w`` and rates ``X``: throughput relative to that of an equal share of the cluster, and a
gang of one GPU gets as much GPU time as a larger one. Many allocations have the same least value; Gavel leaves it to
its solver which one it gets. Here it is the one of largest total ``Σ W·X·Y / X_eq``, with the addends weighted by 1
to 1.001 (:data:`TIES`) such that one vertex is best. ``hadar.gavel_throughput`` maximises the total throughput ``Σ
W·X·Y`` in iterations per second, with the same weights. ``hadar.gavel?goal=makespan`` maximises the least ``Σ_o
W·X·Y / iterations left``: the time until the last job is done at these rates is least (Gavel, section 4.2).

``goal=water_filling`` goes on where ``max_min`` leaves the rest to the total: those whose value cannot rise any more
keep it, the least of the others is maximised, and so on, until nobody can gain but by taking from one who has no more
(Gavel, section 4.3, within one level). Gavel finds them by an integer program; here they are those with positive duals,
who have no more in *any* optimum, and there is always one.

``goal=finish_time_fairness`` minimises the largest ``ρ`` of Themis (Gavel, section 4.2), the time that a job takes in
all over the time that it would take on an n-th of the cluster for itself::

    ρ_j = (seconds since arrival + iterations left / Σ_o W·X·Y) / T_j,    T_j = E_j + iterations left / isolated rate

with ``E_j`` the seconds that what is done would have taken there, by the numbers ``n`` of jobs so far. For a given
``ρ``, who has waited ``t`` seconds needs a rate of ``iterations left / (ρ·T − t)``: a max-min program. The duals of one
``ρ`` bound the least one from below (:func:`fair_rates`), which takes a few programs.

On ``gen/hadar-480`` (rounds of 360 s, 10 s per restart) the last job is done after 357 h by either of the first two
goals, 346 h for the makespan and 363 h for finish-time fairness; the mean job is after 153, 153, 330 and 148 h. On
``gen/50jobs`` these are 32.4, 33.3, 31.9, 33.5 h and 2.7, 2.7, 3.3, 2.7 h.

Jobs with the same gang, weight and (relative) rates form a class and get the same shares: the average of their shares
in any optimum is feasible and as good. So the program has a variable per class and option, ``n_c·Y``; it is kept in
HiGHS, whose simplex method starts from the last basis when the numbers of jobs have changed, and its results are kept
by these numbers. Shares are rounded to multiples of :data:`GRID`, so that no later tie is decided by a solver's
noise.

*Rounds.* Shares are computed anew whenever the set of jobs has changed. In a round, the pairs of job and option go by
priority ``Y / (rounds received in that option / rounds)``, both counted since the job arrived; a pair that has
received none has priority over all that have, by its share (as in Gavel's code, where it is ``10⁹·Y``). Ties go by
arrival, index and type. A job runs in one option, and one that does not fit is passed over. GPUs that are left go to
jobs without a share of their type, by arrival, index and rate: Gavel leaves no GPU idle either that a job could use.

*Where this differs from Gavel's simulator* (``scheduler/scheduler.py``): it computes shares anew at most every 1920
s, and counts time received since then, beginning with half a round for everybody; it serves the types one after
another rather than in one order of priorities; it ends a round early when all its jobs are done and rounds steps down
to whole ones. In the version of its ``finish_time_fairness.py`` that we read, ``E_j`` is the time since arrival, and
the rate alone that of max-min shares.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from schedgap.heuristics.hadar.slotted import baseline
from schedgap.heuristics.simulator import Servers, State, Workload
from schedgap.heuristics.simulator.gangs import GangPolicy, Gangs, in_order
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter

Goal = Literal["max_min", "water_filling", "throughput", "makespan", "finish_time_fairness"]

GRID = 1e-6
"""Shares are multiples of this."""

TIES = 1e-3
"""Largest relative weight that breaks ties among optimal shares."""

NEW = 1e9
"""Factor on the share of a pair that has received no round yet."""

SETTINGS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "solver": "simplex",
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
"""Of HiGHS; programs are small, and tolerances far below the weights that break ties."""

SLACK = 1e-9
"""Relative amount by which the least value may fall short of its optimum in the second step."""

STUCK = 1e-6
"""Part of the level's whole dual from which on a class has no more: above the solver's noise."""

CLOSE = 1e-6
"""Relative distance at which the least ``ρ`` counts as found."""

CUTS = 60
"""Most programs for one ``ρ``; 3 to 6 are usual."""


class _Program:
    """One linear program over classes of jobs, kept in HiGHS between solves.

    Columns are the class–option pairs, in GPU gangs at a time, and the least value ``z``. Rows are a class's number of
    jobs, a type's GPUs, and a class's value of at least ``n_c·w_c·z``; all but the numbers ``n_c``, and what classes
    ask for, stay as they are.
    """

    def __init__(self, member: Ints, value: Array, usage: Ints, capacity: Ints, classes: int, cost: Array) -> None:
        import highspy

        self._counts = np.zeros(classes, np.int64)
        self._asked, self._floor = np.zeros(classes), np.zeros(classes)
        highs = self._highs = highspy.Highs()
        for name, setting in SETTINGS.items():
            highs.setOptionValue(name, setting)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        nothing = np.zeros(0)
        indices = nothing.astype(np.int32)
        free = np.full(cost.size, np.inf)
        highs.addCols(cost.size, cost, np.zeros(cost.size), free, 0, indices, indices, nothing)
        of_class = [np.flatnonzero(member == c).astype(np.int32) for c in range(classes)]
        for mine in of_class:
            highs.addRow(-np.inf, 0.0, mine.size, mine, np.ones(mine.size))
        for r, gpus in enumerate(capacity.tolist()):
            users = np.flatnonzero(usage[:, r]).astype(np.int32)
            highs.addRow(-np.inf, float(gpus), users.size, users, usage[users, r].astype(float))
        for mine in of_class:
            highs.addRow(0.0, np.inf, mine.size, mine, value[mine])

    def solve(self, counts: Ints, asked: Array, floor: Array, least: float, most: float) -> Array:
        """Return the optimal columns for the numbers of jobs of each class ``(c,)``, with `z` between two bounds.

        A class has a value of at least ``asked·z + floor``.
        """
        from highspy import HighsModelStatus

        pairs, fairness = self._highs.getNumCol() - 1, self._highs.getNumRow() - counts.size
        for c in np.flatnonzero(counts != self._counts).tolist():
            self._highs.changeRowBounds(c, -np.inf, float(counts[c]))
        for c in np.flatnonzero(asked != self._asked).tolist():
            self._highs.changeCoeff(fairness + c, pairs, -float(asked[c]))
        for c in np.flatnonzero(floor != self._floor).tolist():
            self._highs.changeRowBounds(fairness + c, float(floor[c]), np.inf)
        self._counts, self._asked, self._floor = counts.copy(), asked.copy(), floor.copy()
        self._highs.changeColBounds(pairs, least, most)
        for _ in range(2):  # from the last basis, and from none where that fails
            self._highs.run()
            if self._highs.getModelStatus() == HighsModelStatus.kOptimal:
                return np.asarray(self._highs.getSolution().col_value)
            self._highs.clearSolver()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        raise NotApplicableError(f"Gavel's shares: HiGHS ends with {status}; rates or numbers of GPUs too far apart?")

    def pull(self) -> Array:
        """Return ``(c,)`` by how much each class holds `z` down in the last solve, in parts of the whole."""
        duals = np.asarray(self._highs.getSolution().row_dual)[-self._asked.size :]
        return np.asarray(np.abs(duals) * self._asked)


class ShareProgram:
    """Optimal shares for any numbers of jobs of ``c`` classes.

    All the time in an option is worth `value` ``(c, o)`` to a job, as counted by the goal, 0 for options that it does
    not have, and takes `usage` ``(c, o, k)`` of the GPUs `capacity` ``(k,)``. With a `weight` ``(c,)`` the least
    ``value/weight`` is as large as can be, and if `filling` then the least of those who can have more, and so on; where
    all weights are 0, the total value.
    """

    def __init__(self, value: Array, usage: Ints, capacity: Ints, weight: Array, filling: bool = False) -> None:
        self.shape, self.filling = value.shape, filling
        self._able, self._largest = value.any(axis=1), value.max(initial=1e-300)
        self.reweigh(weight)
        self._class, self._option = np.nonzero(value > 0)
        worth = value[self._class, self._option] / self._largest
        # Spread evenly over [0, 1), and, unlike multiples of one number, without two differences that are equal.
        spread = np.arange(1, worth.size + 1) ** 2 * 0.6180339887498949 % 1
        given = (self._class, worth, usage[self._class, self._option], capacity, weight.size)
        # Each keeps its own last basis, which is close to its next optimum.
        self._fair = _Program(*given, cost=np.append(np.zeros(worth.size), 1.0))
        self._total = _Program(*given, cost=np.append(worth * (1 + TIES * spread), 0.0))

    def reweigh(self, weight: Array) -> None:
        """Take other weights from now on."""
        weight = np.where(self._able, weight, 0.0)  # who can run nowhere asks for nothing
        self._unit = max(weight.mean(), 1e-300)
        self._weight = weight / self._unit
        self._solved: dict[bytes, Array] = {}

    def least(self, counts: Ints) -> tuple[float, Array]:
        """Return the least ``value/weight``, and in parts of 1 how much each class ``(c,)`` holds it down."""
        level = self._level(counts, self._weight * counts, np.zeros(counts.size))
        return level * self._largest / self._unit, self._fair.pull()

    def shares(self, counts: Ints) -> Array:
        """Return ``(c, o)`` shares of a job of each class for the numbers of jobs ``(c,)``."""
        key = counts.tobytes()
        if key in self._solved:
            return self._solved[key]
        asked, floor, least = self._weight * counts, np.zeros(counts.size), 0.0
        if self.filling:
            asked, floor = np.zeros(counts.size), self._filled(counts, asked)
        elif asked.any():  # without anybody who asks for something, nothing bounds it
            least = self._level(counts, asked, floor)
        total = self._total.solve(counts, asked, floor, least * (1 - SLACK), least)[:-1]
        shares = np.zeros(self.shape)
        shares[self._class, self._option] = total / np.maximum(counts[self._class], 1)
        self._solved[key] = np.round(np.clip(shares, 0.0, 1.0) / GRID) * GRID
        return self._solved[key]

    def _level(self, counts: Ints, asked: Array, floor: Array) -> float:
        return max(float(self._fair.solve(counts, asked, floor, 0.0, np.inf)[-1]), 0.0)

    def _filled(self, counts: Ints, asked: Array) -> Array:
        """Return ``(c,)`` what classes have when the least value rises, and who can have no more keeps theirs."""
        rising, floor = asked.copy(), np.zeros(counts.size)
        while rising.any():
            level, pull = self._level(counts, rising, floor), self._fair.pull()
            stuck = (rising > 0) & (pull >= min(STUCK, pull.max()))
            floor[stuck] = (1 - SLACK) * level * rising[stuck]
            rising[stuck] = 0.0
        return floor


def fair_rates(program: ShareProgram, left: Array, waited_s: Array, alone_s: Array) -> Array:
    """Return the iterations per second that jobs need ``(a,)`` for the least largest ``ρ``.

    Jobs have `left` iterations, have been here for `waited_s` seconds, and would take `alone_s` in all by themselves.
    If the needs at some ``ρ`` are weights of `program`, the rates that all can have are `ratio` times these. The duals
    are a bound on all other rates, and so on ``ρ``: as the harmonic mean is concave, its tangent leads to a lower
    bound, where the next program begins.
    """
    one = np.ones(left.size, np.int64)
    low, high = float((waited_s / alone_s).max()), math.inf
    rho = 2 * max(low, 1.0)
    for _ in range(CUTS):
        spare_s = np.maximum(rho * alone_s - waited_s, SLACK * alone_s)
        program.reweigh(left / spare_s)
        ratio, pull = program.least(one)
        low, high = (low, rho) if ratio >= 1 else (rho, high)
        if abs(ratio - 1) <= CLOSE or high - low <= CLOSE * low:
            break
        pull, ratio = np.maximum(pull, SLACK), max(ratio, SLACK)
        rho += (1 / ratio - 1) * pull.sum() / (pull @ (alone_s / spare_s))
        if not low < rho < high:
            rho = (low + min(high, 3 * low)) / 2
    return np.asarray(left / spare_s)


def classes(work: Workload, gangs: Gangs, goal: Goal) -> tuple[Ints, ShareProgram]:
    """Return the class of every job, and the program over the classes."""
    value = gangs.rates * work.gpus[:, None]
    weight = np.zeros(work.size)
    if goal in {"max_min", "water_filling"}:
        equal = work.rates @ gangs.capacity / gangs.capacity.sum()
        value = value / np.where(equal > 0, equal, 1.0)[:, None]
        weight = work.weight
    # Jobs of the same rates but for a factor differ by rounding after the division.
    scale = 10.0 ** np.floor(np.log10(np.where(value > 0, value, 1.0)))
    significant = np.round(value / scale, 9) * scale
    alike = np.column_stack([work.gpus, weight, significant, gangs.usage.reshape(work.size, -1)])
    _, first, member = np.unique(alike, axis=0, return_index=True, return_inverse=True)
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
            "what shares do: maximise the least throughput (section 4.1), or that of one after another (4.3); minimise "
            "the time of the last job (4.2), or the largest ρ of Themis (4.2)",
            choices=("max_min", "water_filling", "makespan", "finish_time_fairness"),
        ),
    ),
)
class Gavel(GangPolicy):
    """Gavel as a simulation policy."""

    def __init__(self, work: Workload, cluster: Servers, goal: Goal = "max_min") -> None:
        super().__init__(work, cluster)
        self._goal, self._single = goal, goal in {"makespan", "finish_time_fairness"}
        if not self._single:
            self.member, self.program = classes(work, self.gangs, goal)
        self._alone_s, self._alone_rate = np.zeros(work.size), np.ones(work.size)
        self._left: Array = work.work.astype(float)
        self._rounds: Ints = np.zeros(work.size, np.int64)
        self._received: Ints = np.zeros(self.gangs.rates.shape, np.int64)
        self._jobs = self._order = np.zeros(0, np.int64)
        self._row, self._option, self._share = self._order, self._order, np.zeros(0)
        self._rest = (self._order, self._order)

    def _chosen(self, state: State) -> Ints:
        if not np.array_equal(state.jobs, self._jobs):
            self._jobs, jobs = state.jobs, in_order(state)
            if self._single:
                self._account(state, jobs)
                shares = self._one_by_one(state, jobs)
            else:
                counts = np.bincount(self.member[jobs], minlength=self.program.shape[0]).astype(np.int64)
                shares = self.program.shares(counts)[self.member[jobs]]
            row, self._option = np.nonzero(shares)
            self._row, self._share = jobs[row], shares[row, self._option]
            wanted = self.gangs.by_rate[jobs]
            self._rest = np.repeat(jobs, wanted.shape[1]), wanted.ravel()
        received = self._received[self._row, self._option]
        often = self._rounds[self._row] / np.maximum(received, 1)
        priority = self._share * np.where(received > 0, often, NEW)
        order = np.argsort(-priority, kind="stable")
        rows = np.concatenate((self._row[order], self._rest[0]))
        options = np.concatenate((self._option[order], self._rest[1]))
        chosen = self.gangs.take(rows, options)
        self._rounds[state.jobs] += 1
        running = np.flatnonzero(chosen >= 0)
        self._received[running, chosen[running]] += 1
        return chosen

    def _account(self, state: State, jobs: Ints) -> None:
        """Note what jobs did at their rates on an n-th of the last set's cluster, and these rates anew."""
        self._alone_s[state.jobs] += (self._left[state.jobs] - state.remaining) / self._alone_rate[state.jobs]
        self._left[state.jobs] = state.remaining
        # Alone, a gang of W has an n-th of each type's GPUs, and runs there a W-th of that in time, at most always.
        work = self.gangs.work
        time = self.gangs.capacity / (jobs.size * work.gpus[jobs, None])
        time /= np.maximum(time.sum(axis=1, keepdims=True), 1.0)
        alone = (time * work.rates[jobs]).sum(axis=1) * work.gpus[jobs]
        self._alone_rate[jobs] = np.where(alone > 0, alone, 1.0)

    def _one_by_one(self, state: State, jobs: Ints) -> Array:
        """Return ``(a, o)`` shares by a program of jobs of which no two are alike.

        It is one of what is left now, or of the time that each job has taken and would have taken alone.
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
