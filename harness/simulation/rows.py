"""One row of a simulation: what a policy reached on an instance."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heuristics.simulator.metrics import Metrics

OK = frozenset({"done", "unfinished", "skipped"})
"""Statuses of policies that ended in order."""


@dataclass(frozen=True)
class SimulationRow:
    """One policy on one instance. Times in seconds; absent numbers are ``None``.

    Attributes
    ----------
    status
        ``done``, ``unfinished`` (jobs are left, see there), ``skipped`` (it cannot take the instance), or how it
        failed.
    ttd_s … rounds
        See :class:`heuristics.simulator.metrics.Metrics`; present in verified rows only.
    ttd_ratio, reference
        TTD divided by that of the policy `reference`, which is Hadar, or the first one.
    ttd_printed
        The same ratio as a paper printed it.
    ttd_bound_s, ttd_bound_ratio
        Certified lower bound on the TTD of any gang schedule, and TTD divided by it: an upper estimate of how far from
        the least TTD the policy is.
    unfinished
        Number of jobs that did not complete, by reason.
    published
        Numbers papers printed: ``{quantity, value, measured, agrees, unit, where, note}``.
    verified
        Whether the independent checker confirms the history; ``None`` where there is none.
    """

    instance: str
    fingerprint: str
    policy: str
    seed: int = 0
    round_s: float = 0.0
    restart_s: float = 0.0
    spread_factor: float = 1.0
    until_s: float | None = None
    status: str = "error"
    ttd_s: float | None = None
    reference: str | None = None
    ttd_ratio: float | None = None
    ttd_printed: float | None = None
    ttd_bound_s: float | None = None
    ttd_bound_from: str | None = None
    ttd_bound_ratio: float | None = None
    jct_mean_s: float | None = None
    jct_median_s: float | None = None
    jct_p99_s: float | None = None
    gru: float | None = None
    cru: float | None = None
    utility: float | None = None
    decision_mean_s: float | None = None
    decision_max_s: float | None = None
    restarts: int | None = None
    rounds: int | None = None
    jobs: int | None = None
    finished: int | None = None
    unfinished: Mapping[str, int] = field(default_factory=dict)
    published: tuple[Mapping[str, Any], ...] = ()
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    simulate_s: float | None = None
    check_s: float | None = None
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order."""
        return dataclasses.asdict(self)

    def replace(self, **changes: Any) -> SimulationRow:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def ok(self) -> bool:
        """Whether the policy ended in order and its history is confirmed."""
        return self.status in OK and self.verified is not False


FIELDS = tuple(f.name for f in dataclasses.fields(SimulationRow))
METRICS = tuple(f.name for f in dataclasses.fields(Metrics))
