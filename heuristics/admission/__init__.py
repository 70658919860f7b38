"""The primal–dual admission algorithm of the walk-through: utilities, deadlines, co-location."""

from schedgap.heuristics.admission import online  # noqa: F401 -- it registers itself
