r"""How many schedules gangs have: the columns of P2, counted and not listed.

Counts are logarithms to base 10, since the numbers themselves have hundreds of digits.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views.hadar import ROUNDING, View
from schedgap.models.hadar.schedules import TooManyError, mixes

BUDGET = 20_000_000
"""Numbers of slots by pace that are looked at for all jobs together: about two seconds."""


def gang_schedules(view: View) -> tuple[float, bool]:
    """Return the logarithm of the number of minimal schedules of all gangs, and whether it is a lower bound only.

    A schedule is minimal if it needs each of its slots (:mod:`schedgap.models.hadar.schedules`). Which slots run at
    which pace does not matter for that, only how many; the number of ways to pick them is a multinomial coefficient,
    times the mixes of GPU types of each pace.
    """
    from scipy.special import logsumexp  # takes 0.05 s, and few count

    jobs, logs, partly = view.possible.tolist(), [np.array([-np.inf])], False
    for job in jobs:
        try:
            found = mixes(view, job)
        except TooManyError:
            found, partly = mixes(view, job, extreme=True), True
        values, count = np.unique([pace for _, pace in found if pace > 0], return_counts=True)
        paces = list(zip(values.tolist(), count.tolist(), strict=True))  # ascending, with the mixes of each
        need = float(view.workload.work[job]) * (1 - ROUNDING)
        slots, budget = int(view.slots - view.arrival[job]), BUDGET // len(jobs)
        while len(paces) > 1 and math.prod(min(slots, math.ceil(need / p)) + 1 for p, _ in paces[1:]) > budget:
            paces, partly = paces[1:], True
        logs += [_frontier(need, slots, paces[lowest:]) for lowest in range(len(paces))]
    return float(logsumexp(np.concatenate(logs))) / math.log(10), partly


def _frontier(need: float, slots: int, paces: list[tuple[float, int]]) -> Array:
    """Return logarithms of the numbers of minimal schedules that use the first pace, by slots of the others.

    With the first pace the slowest in use, its number of slots follows from those of the others.
    """
    from scipy.special import gammaln

    rate = np.array([pace for pace, _ in paces])
    ways = np.log([number for _, number in paces])
    axes = [np.arange(min(slots, math.ceil(need / pace)) + 1) for pace in rate[1:]]
    others = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]) if axes else np.zeros((0, 1))
    left = need - rate[1:] @ others
    others, left = others[:, left > 0], left[left > 0]
    slowest = np.ceil(left / rate[0])
    number = np.concatenate([slowest[None], others])
    idle = slots - number.sum(axis=0)
    number, idle = number[:, idle >= 0], idle[idle >= 0]
    chosen = gammaln(slots + 1) - gammaln(number + 1).sum(axis=0) - gammaln(idle + 1)
    return np.asarray(chosen + ways @ number)
