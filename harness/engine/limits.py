"""What one task of a study may take."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from schedgap.instances.errors import UsageError
from schedgap.instances.ranges import LEAST_MEMORY_MB, MOST_MEMORY_MB

if TYPE_CHECKING:
    from schedgap.models.solve import SolveOptions


@dataclass(frozen=True)
class Limits:
    """What one task may take.

    Parameters
    ----------
    time_limit_s
        Seconds for the solver, or for a task that does not solve. Models that cannot prove search until it is reached:
        20 s keep ``gen/200jobs`` with all papers at two minutes on two cores.
    rel_gap, threads
        Passed to the solver.
    memory_mb
        Memory cap of a worker process.
    all_sizes
        Run methods above their stated size, too.
    cross_check
        Ask PuLP/CBC for a second opinion on every model.

    Raises
    ------
    UsageError
        If a limit is impossible.
    """

    time_limit_s: float = 20.0
    rel_gap: float = 1e-6
    threads: int = 1
    memory_mb: int = 4096
    all_sizes: bool = False
    cross_check: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.time_limit_s < math.inf:
            raise UsageError(f"time limit = {self.time_limit_s:g} s: must be a positive number of seconds")
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            right = f"a worker takes between {LEAST_MEMORY_MB} and {MOST_MEMORY_MB} MB"
            raise UsageError(f"memory = {self.memory_mb} MB: {right}")

    def given(self, usual: Limits) -> dict[str, Any]:
        """Return what differs from the usual limits, by option of the command line."""
        named = {"time_limit_s": "time-limit", "all_sizes": "all"}
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {named.get(name, name): value for name, value in values.items() if value != getattr(usual, name)}

    def options(self, seed: int) -> SolveOptions:
        """Return the solver's options.

        Raises
        ------
        UsageError
            If a limit is impossible for the solver.
        """
        from schedgap.models.solve import SolveOptions

        return SolveOptions(
            time_limit_s=self.time_limit_s,
            rel_gap=self.rel_gap,
            threads=self.threads,
            seed=seed,
            cross_check=self.cross_check,
        )
