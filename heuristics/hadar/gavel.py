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
to whole ones.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from schedgap.heuristics.hadar.slotted import baseline
from schedgap.heuristics.simulator import Servers, State, Workload
from schedgap.heuristics.simulator.gangs import GangPolicy, Gangs, in_order
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter

Goal = Literal["max_min", "throughput", "makespan"]

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


class _Program:
    """One linear program over classes of jobs, kept in HiGHS between solves.

    Columns are the class–option pairs, in GPU gangs at a time, and the least value ``z``. Rows are a class's number of
    jobs, a type's GPUs, and a class's value of at least ``n_c·w_c·z``; all but the numbers ``n_c`` stay as they are.
    """

    def __init__(self, member: Ints, value: Array, usage: Ints, capacity: Ints, weight: Array, cost: Array) -> None:
        import highspy

        self._weight = weight
        self._counts = np.zeros(weight.size, np.int64)
        highs = self._highs = highspy.Highs()
        for name, setting in SETTINGS.items():
            highs.setOptionValue(name, setting)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        nothing = np.zeros(0)
        indices = nothing.astype(np.int32)
        free = np.full(cost.size, np.inf)
        highs.addCols(cost.size, cost, np.zeros(cost.size), free, 0, indices, indices, nothing)
        of_class = [np.flatnonzero(member == c).astype(np.int32) for c in range(weight.size)]
        for mine in of_class:
            highs.addRow(-np.inf, 0.0, mine.size, mine, np.ones(mine.size))
        for r, gpus in enumerate(capacity.tolist()):
            users = np.flatnonzero(usage[:, r]).astype(np.int32)
            highs.addRow(-np.inf, float(gpus), users.size, users, usage[users, r].astype(float))
        for mine in of_class:
            highs.addRow(0.0, np.inf, mine.size, mine, value[mine])

    def solve(self, counts: Ints, least: float, most: float) -> Array:
        """Return the optimal columns for the numbers of jobs of each class ``(c,)``, with `z` between two bounds."""
        from highspy import HighsModelStatus

        pairs, fairness = self._highs.getNumCol() - 1, self._highs.getNumRow() - counts.size
        for c in np.flatnonzero(counts != self._counts).tolist():
            self._highs.changeRowBounds(c, -np.inf, float(counts[c]))
            self._highs.changeCoeff(fairness + c, pairs, -float(counts[c] * self._weight[c]))
        self._counts = counts.copy()
        self._highs.changeColBounds(pairs, least, most)
        for _ in range(2):  # from the last basis, and from none where that fails
            self._highs.run()
            if self._highs.getModelStatus() == HighsModelStatus.kOptimal:
                return np.asarray(self._highs.getSolution().col_value)
            self._highs.clearSolver()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        raise NotApplicableError(f"Gavel's shares: HiGHS ends with {status}; rates or numbers of GPUs too far apart?")


class ShareProgram:
    """Optimal shares for any numbers of jobs of ``c`` classes.

    All the time in an option is worth `value` ``(c, o)`` to a job, as counted by the goal, 0 for options that it does
    not have, and takes `usage` ``(c, o, k)`` of the GPUs `capacity` ``(k,)``. With a `weight` ``(c,)`` the least
    ``value/weight`` is as large as can be; where all are 0, the total value.
    """

    def __init__(self, value: Array, usage: Ints, capacity: Ints, weight: Array) -> None:
        self.shape = value.shape
        weight = np.where(value.any(axis=1), weight, 0.0)  # who can run nowhere asks for nothing
        self._weight = weight / max(weight.mean(), 1e-300)
        self._class, self._option = np.nonzero(value > 0)
        worth = value[self._class, self._option] / value.max(initial=1e-300)
        # Spread evenly over [0, 1), and, unlike multiples of one number, without two differences that are equal.
        spread = np.arange(1, worth.size + 1) ** 2 * 0.6180339887498949 % 1
        given = (self._class, worth, usage[self._class, self._option], capacity, self._weight)
        # Each keeps its own last basis, which is close to its next optimum.
        self._fair = _Program(*given, cost=np.append(np.zeros(worth.size), 1.0))
        self._total = _Program(*given, cost=np.append(worth * (1 + TIES * spread), 0.0))
        self._solved: dict[bytes, Array] = {}

    def shares(self, counts: Ints) -> Array:
        """Return ``(c, o)`` shares of a job of each class for the numbers of jobs ``(c,)``."""
        key, least = counts.tobytes(), 0.0
        if key in self._solved:
            return self._solved[key]
        if (self._weight * counts).any():  # without anybody who asks for something, nothing bounds it
            least = max(float(self._fair.solve(counts, 0.0, np.inf)[-1]), 0.0)
        total = self._total.solve(counts, least * (1 - SLACK), least)[:-1]
        shares = np.zeros(self.shape)
        shares[self._class, self._option] = total / np.maximum(counts[self._class], 1)
        self._solved[key] = np.round(np.clip(shares, 0.0, 1.0) / GRID) * GRID
        return self._solved[key]


def classes(work: Workload, gangs: Gangs, goal: Goal) -> tuple[Ints, ShareProgram]:
    """Return the class of every job, and the program over the classes."""
    value = gangs.rates * work.gpus[:, None]
    weight = np.zeros(work.size)
    if goal == "max_min":
        equal = work.rates @ gangs.capacity / gangs.capacity.sum()
        value = value / np.where(equal > 0, equal, 1.0)[:, None]
        weight = work.weight
    # Jobs of the same rates but for a factor differ by rounding after the division.
    scale = 10.0 ** np.floor(np.log10(np.where(value > 0, value, 1.0)))
    significant = np.round(value / scale, 9) * scale
    alike = np.column_stack([work.gpus, weight, significant, gangs.usage.reshape(work.size, -1)])
    _, first, member = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return member.ravel(), ShareProgram(value[first], gangs.usage[first], gangs.capacity, weight[first])


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
            "what shares maximise: the least throughput (section 4.1), or the least part of what is left (section 4.2)",
            choices=("max_min", "makespan"),
        ),
    ),
)
class Gavel(GangPolicy):
    """Gavel as a simulation policy."""

    def __init__(self, work: Workload, cluster: Servers, goal: Goal = "max_min") -> None:
        super().__init__(work, cluster)
        self._renewed = goal == "makespan"
        if not self._renewed:
            self.member, self.program = classes(work, self.gangs, goal)
        self._rounds: Ints = np.zeros(work.size, np.int64)
        self._received: Ints = np.zeros(self.gangs.rates.shape, np.int64)
        self._jobs = self._order = np.zeros(0, np.int64)
        self._row, self._option, self._share = self._order, self._order, np.zeros(0)
        self._rest = (self._order, self._order)

    def _chosen(self, state: State) -> Ints:
        if not np.array_equal(state.jobs, self._jobs):
            self._renew(state)
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

    def _shares(self, jobs: Ints) -> Array:
        """Return ``(a, o)`` shares by a program whose weights stay as they are."""
        counts = np.bincount(self.member[jobs], minlength=self.program.shape[0]).astype(np.int64)
        return self.program.shares(counts)[self.member[jobs]]

    def _soonest(self, state: State, jobs: Ints) -> Array:
        """Return ``(a, o)`` shares by a program of what is left now: no two jobs are alike."""
        left = np.zeros(self.gangs.work.size)
        left[state.jobs] = state.remaining
        value = self.gangs.rates[jobs] * self.gangs.work.gpus[jobs, None]
        program = ShareProgram(value, self.gangs.usage[jobs], self.gangs.capacity, left[jobs])
        return program.shares(np.ones(jobs.size, np.int64))

    def _renew(self, state: State) -> None:
        """Compute shares for another set of jobs, and put its pairs into the order in which ties go."""
        self._jobs, jobs = state.jobs, in_order(state)
        shares = self._soonest(state, jobs) if self._renewed else self._shares(jobs)
        row, self._option = np.nonzero(shares)
        self._row, self._share = jobs[row], shares[row, self._option]
        wanted = self.gangs.by_rate[jobs]
        self._rest = np.repeat(jobs, wanted.shape[1]), wanted.ravel()
