"""Independent checkers: they re-check every constraint and claim of a decision and recompute its objective.

They read the raw instance (:mod:`schedgap.certificates.reading`) and use numpy only, never Pyomo or a solver. With
models and heuristics they share the class of a decision, and nothing else. (There is one exception: SciPy finds prices
for rounds, but any prices prove a bound.) Each paper's file registers its checker in :data:`VERIFIERS` and lists the
paper's constraints as rules (:mod:`schedgap.harness.check.rules`). :func:`judge` calls the checker of a problem.
"""

from __future__ import annotations

from schedgap.harness.check.registry import (
    KEPT,
    TOLERANCE,
    VERIFIERS,
    Verdict,
    VerifierSpec,
    differ,
    facts_of,
    judge,
    judge_asked,
)
from schedgap.instances.discovery import import_submodules

__all__ = ["KEPT", "TOLERANCE", "VERIFIERS", "Verdict", "VerifierSpec", "differ", "facts_of", "judge", "judge_asked"]

import_submodules(__name__)
