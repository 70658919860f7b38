"""Models of moldable jobs, for Zhou and the admission example: branch and price, and enumeration of tiny instances."""

from schedgap.models.engine.moldable.generation import MoldablePricing, too_large
from schedgap.models.engine.moldable.jobs import CapacityGrid, MoldableJobs, runs
from schedgap.models.engine.moldable.placements import schedules, starts
from schedgap.models.engine.moldable.solving import solve

__all__ = [
    "CapacityGrid", "MoldableJobs", "MoldablePricing", "runs", "schedules", "solve", "starts",
    "too_large",
]  # fmt: skip
