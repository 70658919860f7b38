"""One claim: what a worker process does."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from harness.audit import claims  # noqa: F401 -- registers the claims, once for all workers
from harness.audit.finding import Finding
from harness.audit.lab import Lab
from harness.audit.registry import CLAIMS
from harness.render.text import clean
from harness.simulation.caps import Caps


@dataclass(frozen=True)
class ClaimTask:
    """A claim to try."""

    claim: str
    seed: int = 0
    effort: float = 1.0
    limits: Caps = field(default_factory=Caps)

    def run(self) -> Finding:
        """Try it; whatever goes wrong becomes a failed finding."""
        began = time.perf_counter()
        spec = CLAIMS.get(self.claim)
        try:
            evidence = spec.check(Lab(spec.id, self.seed, self.effort))
        except MemoryError:
            raise  # a finding needs memory as well; the pool writes it
        except Exception as error:  # any failure of a check is a finding, so that one claim cannot end an audit
            return self.failed("error", f"{type(error).__name__}: {error}")
        return Finding(spec.id, evidence, seconds=time.perf_counter() - began)

    def failed(self, status: Any, reason: str) -> Finding:
        """Return the finding of a claim that could not be tried to the end."""
        return Finding(self.claim, reason=clean(reason, 300))
