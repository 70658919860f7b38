"""Small instances for tests of Synergy, built from parts or drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawing import Shrinking
from hypothesis import strategies as st

from schedgap.instances.random_instances import synergy
from schedgap.instances.random_instances.synergy import (
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
)
from schedgap.instances.schema import Instance

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
    """Draw a small instance, see :func:`schedgap.instances.random_instances.synergy.draw`."""
    return synergy.draw(Shrinking(draw), jobs=jobs, chips=chips, arrivals=arrivals)


@st.composite
def resting(draw: st.DrawFn, *, jobs: int = 5, chips: Sequence[str] = ("V100",)) -> Instance:
    """Draw a small instance whose tables rise late; some jobs make no progress at the lowest levels."""
    found = draw(small(jobs=jobs, chips=chips))
    made = []
    for one in found.jobs:
        progress = np.array(one.sensitivity.progress)  # type: ignore[union-attr]
        less = np.maximum(progress - draw(st.sampled_from((0.0, *progress[:2, 0].tolist()))), 0.0) ** 3
        table = one.sensitivity.model_copy(update={"progress": tuple(map(tuple, less.tolist()))})  # type: ignore[union-attr]
        made.append(one.model_copy(update={"sensitivity": table}))
    return found.model_copy(update={"jobs": tuple(made)})
