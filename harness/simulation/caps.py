"""What one simulation may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from instances.errors import UsageError


@dataclass(frozen=True)
class Caps:
    """What one simulation may take; see :class:`harness.pool.Caps`.

    Raises
    ------
    UsageError
        If the time limit is not a positive number.
    """

    time_limit_s: float = 3600.0
    memory_mb: int = 4096
    threads: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.time_limit_s < math.inf:
            raise UsageError(f"time_limit_s = {self.time_limit_s:g}: a positive number of seconds")

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which a worker is killed."""
        return self.time_limit_s
