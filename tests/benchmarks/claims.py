"""Random cases for every claim that a ratio holds, or what it rests on: ``python tests/benchmarks/claims.py``.

Each claim is audited with one seed after another until :data:`CASES` cases decide it. That takes hours, so it is no
test; docs/claims.md keeps the counts. Ids or patterns as arguments choose among the claims.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from itertools import count

import schedgap as sg

CASES = 1000
EFFORT = 2.0
SEED = 26

CLAIMS = (
    *("hadar.theorem-2", "hadar.theorem-2.kept", "hadar.theorem-2.round", "hadar.theorem-2.shown", "hadar.lemma-2"),
    *("zhou.theorem-3", "zhou.theorem-3.ra", "zhou.theorem-3.shown", "zhou.theorem-5", "zhou.theorem-5.ra"),
    *("zhou.lemma-1", "zhou.lemma-1.ra", "zhou.theorem-1.repaired", "zhou.theorem-6.repaired"),
    *("zhou.theorem-2", "zhou.theorem-7", "synergy.tune.clamped", "synergy.tune.ten-percent", "oef.theorem-5.1"),
)
"""Claims that a ratio, feasibility or optimality is guaranteed."""


def counted(claim: str) -> tuple[int, int, int]:
    """Return the cases that decide a claim, those beyond what it says, and the number of seeds."""
    tested = failed = 0
    for seed in count(SEED):
        (found,) = sg.audit(claims=claim, effort=EFFORT, seed=seed, jobs=1).rows
        if not found.finished:
            raise SystemExit(f"{claim}: {found.status}, seed {seed}")
        tested, failed = tested + found.stated.tested, failed + found.stated.failed
        if tested >= CASES:
            return tested, failed, seed - SEED + 1
    raise AssertionError("seeds do not end")


if __name__ == "__main__":
    chosen = [one for one in CLAIMS if any(fnmatchcase(one, pattern) for pattern in sys.argv[1:] or ["*"])]
    print("| claim | cases that decide | beyond what it says | seeds |\n|---|---:|---:|---:|")
    for one in chosen:
        tested, failed, seeds = counted(one)
        print(f"| {one} | {tested:,} | {failed:,} | {seeds} |", flush=True)
