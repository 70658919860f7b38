"""Instances for tests of Synergy: those of :mod:`schedgap.instances.small.synergy`, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from schedgap.instances.schema import Instance
from schedgap.instances.small.synergy import (
    SYNERGY,
    V100,
    JobLike,
    Server,
    instance,
    job,
    matrix,
    mix,
    pipeline,
    pipelines,
    servers,
    small_one,
)

__all__ = [
    "SYNERGY",
    "V100",
    "JobLike",
    "Server",
    "instance",
    "job",
    "matrix",
    "mix",
    "pipeline",
    "pipelines",
    "resting",
    "servers",
    "small",
]


@st.composite
def small(
    draw: st.DrawFn, *, jobs: int = 5, chips: Sequence[str] = ("V100",), arrivals: Sequence[float] = (0.0,)
) -> Instance:
    """Draw a small instance, see :func:`small_one`."""
    return small_one(lambda among: draw(st.sampled_from(among)), jobs=jobs, chips=chips, arrivals=arrivals)


@st.composite
def resting(draw: st.DrawFn, *, jobs: int = 5, chips: Sequence[str] = ("V100",)) -> Instance:
    """Draw a small instance whose tables rise late, some from cells without progress."""
    found = draw(small(jobs=jobs, chips=chips))
    made = []
    for one in found.jobs:
        progress = np.array(one.sensitivity.progress)  # type: ignore[union-attr]
        less = np.maximum(progress - draw(st.sampled_from((0.0, *progress[:2, 0].tolist()))), 0.0) ** 3
        table = one.sensitivity.model_copy(update={"progress": tuple(map(tuple, less.tolist()))})  # type: ignore[union-attr]
        made.append(one.model_copy(update={"sensitivity": table}))
    return found.model_copy(update={"jobs": tuple(made)})
