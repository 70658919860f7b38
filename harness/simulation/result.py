"""Simulated schedulers side by side: what :func:`.simulate` returns, and what tables and pages are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.harness.figures import Drawings, Plots, draw
from schedgap.harness.simulation.bounds import Bound
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.simulation.sensitive import Rounds
from schedgap.heuristics.simulator import Trace
from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Simulation:
    """What :func:`schedgap.harness.simulate` returns.

    Attributes
    ----------
    rows
        One per instance and policy, in the order in which they were named.
    traces, rounds
        Histories by policy, and what the rounds of those that give out CPUs and memory are worth; of the last instance
        where there are several.
    folder
        Results folder, where the run was saved.
    interrupted
        Whether Ctrl-C ended it before all policies had finished.
    meta
        Content of ``run.json``.
    instances
        Instances by fingerprint.
    bounds
        Certified lower bounds, and reasons where there is none.
    """

    rows: list[SimulationRow]
    traces: Mapping[str, Trace] = field(default_factory=dict)
    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    folder: Path | None = None
    interrupted: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    bounds: Sequence[Bound] = ()

    @property
    def ok(self) -> bool:
        """Whether every policy ended in order and every history was confirmed."""
        return all(row.ok for row in self.rows)

    @property
    def table(self) -> pd.DataFrame:
        """One line per row, columns as in :class:`schedgap.harness.simulation.rows.SimulationRow`."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.rows])

    @property
    def plot(self) -> Plots:
        """The figures of the histories (of the last instance), as methods: ``simulation.plot.gantt()``."""
        return Plots(self)

    def figures(self) -> Drawings:
        """Draw all figures."""
        return draw(self)

    def to_html(self) -> str:
        """Return the self-contained page."""
        from schedgap.harness.report import to_html

        return to_html(self)

    def _repr_html_(self) -> str:
        from schedgap.harness.report import to_fragment

        return to_fragment(self)
