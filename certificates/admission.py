"""The admission example: moldable jobs with utilities and deadlines, on servers with room for workers and PSs."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .basics import Data, require, up
from .moldable import WEIGHED, MoldablePacking
from .packing import by_slots
from .reading.admission import admission_of
from .reading.moldable import RawMoldable as Runs
from .rules import register


class AdmissionPacking(MoldablePacking):
    """The admission example: jobs with utilities and deadlines, on servers with room for some workers and some PSs.

    Jobs start at least `late` slots after their arrival slot.
    """

    late = 1

    def reading(self, data: Data) -> Runs:
        self.admission = admission_of(data)
        own = self.admission.slot_s, self.admission.slots
        require((self.slot_s, self.slots) == own, "slots are not the instance's own")
        self.begin = self.admission.arrival.tolist()
        return self.admission.moldable

    def ends(self) -> None:
        self.earliest, self.worth = [a + self.late for a in self.begin], []
        for j, (a, due) in enumerate(zip(self.begin, self.admission.deadline.tolist(), strict=True)):
            worth = np.full(self.slots + 2, -math.inf)
            first = 1 + self.late  # the unit of prices may be too small for what earlier ends would be worth
            worth[a + first : due + 1] = self.admission.utilities.value(j, np.arange(first, due - a + 1) * self.slot_s)
            worth[-1] = 0
            self.worth.append(up(worth, self.unit))


register("admission.utility", partial(by_slots, AdmissionPacking), WEIGHED)
register("admission.from_arrival", partial(by_slots, partial(AdmissionPacking, late=0)), WEIGHED)
