"""Models of elastic jobs, for Zhou and the admission example: column generation, all placements of tiny instances."""

from models.elastic.generation import (
    CELLS,
    ElasticJobs,
    Grid,
    Insertion,
    Pricing,
    bound,
    coarse,
    runs,
    schedule,
    solve,
)
from models.elastic.placements import Placement, placements

__all__ = [
    "CELLS",
    "ElasticJobs",
    "Grid",
    "Insertion",
    "Placement",
    "Pricing",
    "bound",
    "coarse",
    "placements",
    "runs",
    "schedule",
    "solve",
]
