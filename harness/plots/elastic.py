"""What figures of elastic jobs share: the bars of runs in a Gantt chart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.plots.gantt import Bars, merged
from schedgap.instances.elastic import Runs

Ints = NDArray[np.int64]


def bars(runs: Runs, held: Ints, slot_s: float, first: int) -> Bars:
    """Return the bars of runs, times in seconds from the start of slot `first`.

    Parameters
    ----------
    runs
        A verified decision.
    held
        ``(e,)`` how many rows of its server each entry fills.
    slot_s
        Length of a slot in seconds.
    first
        Number of the first slot.
    """
    some = held > 0
    run = runs.run[some]
    start = (runs.start[run] - first) * slot_s
    return merged(runs.job[run], runs.server[some], held[some], start, start + runs.slots[run] * slot_s)
