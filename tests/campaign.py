"""Run all methods of a paper on many random instances and count rows that contradict one another.

``python tests/campaign.py ordinary 1000`` draws small instances of each paper in turn, ``extreme`` those of
:mod:`extremes`. Each seed is one instance. A row counts if it is WRONG, if a verified decision refutes its guarantee,
or if it ends in an error. ``--first`` is the first seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context

import numpy as np
from extremes import extreme

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.run import compare_here
from schedgap.harness.engine.task import Limits
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance

LIMITS = Limits(time_limit_s=0.3)
"""Searches that would go on for long are cut: a row that is stopped must be right, too."""


def drawn(kind: str, seed: int) -> tuple[Instance, list[str]]:
    """Return the instance of a seed, and patterns of the methods to run on it."""
    if kind == "extreme":
        return extreme(seed), ["*"]
    papers = sorted(RANDOM.ids())
    paper = papers[seed % len(papers)]
    return RANDOM.get(paper).draw(np.random.default_rng(seed)), [f"{paper}.*"]


def told(kind: str, seed: int) -> tuple[int, list[str], Counter[str]]:
    """Return a seed, what is wrong on its instance, and how often each status occurs."""
    instance, methods = drawn(kind, seed)
    rows = compare_here(instance, methods, limits=LIMITS).rows
    return seed, list(_wrong(rows)), Counter(row.status for row in rows)


def _wrong(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        if row.wrong:
            yield f"{row.method}: WRONG: {'; '.join(row.violations)}"
        elif row.refuted:
            yield f"{row.method}: REFUTED: {row.refuted}"
        elif row.status in ("error", "out of memory", "unbounded"):
            yield f"{row.method}: {row.status}: {row.reason}"


def main() -> None:
    """Run the campaign; exit with status 1 if a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("ordinary", "extreme"))
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.count)
    statuses, bad = Counter[str](), 0
    # The executor of concurrent.futures starts no new workers once each has run its share of tasks.
    with get_context("forkserver").Pool(asked.jobs, maxtasksperchild=200) as pool:
        for seed, lines, status in pool.imap(partial(told, asked.kind), seeds):
            statuses += status
            bad += len(lines)
            for line in lines:
                print(f"{asked.kind} {seed}: {line}", flush=True)
            if (seed - asked.first) % 100 == 99:
                print(f"… {seed}: {statuses.total()} rows, {bad} of them wrong", flush=True)
    print(f"{len(seeds)} instances, {statuses.total()} rows, {bad} of them wrong: {dict(statuses)}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
