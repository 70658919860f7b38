"""The task of testing one claim in a worker process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedgap.harness.engine.task import Task
from schedgap.harness.show.text import clean
from schedgap.harness.studies.audit import claims  # noqa: F401 -- registers the claims, once for all workers
from schedgap.harness.studies.audit.lab import ClaimLab
from schedgap.harness.studies.audit.row import CLAIMS, Finding


@dataclass(frozen=True)
class ClaimTask(Task[Finding]):
    """A claim to test, with the seed and the effort of its random cases."""

    claim: str
    seed: int = 0
    effort: float = 1.0

    def identity(self) -> Mapping[str, Any]:
        return {"claim": self.claim, "seed": self.seed, "effort": self.effort}

    def attempt(self) -> Finding:
        began = time.perf_counter()
        lab = ClaimLab(self.claim, self.seed, self.effort)
        finding = lab.finding(CLAIMS.get(self.claim).check(lab))
        return finding.replace(seconds=time.perf_counter() - began, key=self.key)

    def failed(self, status: Any, reason: str) -> Finding:
        return Finding(self.claim, reason=clean(reason, 300), key=self.key)
