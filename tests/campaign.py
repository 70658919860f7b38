"""Run all methods of a paper on many random instances and count rows that contradict one another.

``python tests/campaign.py ordinary 1000`` draws small instances of each paper in turn, ``extreme`` those of
:mod:`extremes`. Each seed is one instance. A row counts if it is WRONG, if a verified decision refutes its guarantee,
or if it ends in an error. ``--first`` is the first seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from extremes import extreme

from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import compare
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance

LIMITS = Limits(time_limit_s=0.3)
"""Searches are stopped early, because a row must be right even if its search was stopped."""


BATCH = 24
"""Number of instances that share worker processes.

Workers run methods as ``harness compare`` does, so a method that takes too much memory or time ends only its own row.
"""


def drawn(kind: str, seed: int) -> tuple[str, Instance]:
    """Return the instance of a seed, and the pattern of the methods to run on it."""
    if kind == "extreme":
        return "*", extreme(seed)
    papers = sorted(RANDOM.ids())
    paper = papers[seed % len(papers)]
    instance = RANDOM.get(paper).draw(np.random.default_rng(seed))
    return f"{paper}.*", instance.model_copy(update={"name": f"ordinary-{seed}"})


def rows(kind: str, seeds: range, jobs: int) -> Iterator[Row]:
    """Run methods on the instances of these seeds, and yield the rows."""
    by_methods = defaultdict(list)
    for methods, instance in (drawn(kind, seed) for seed in seeds):
        by_methods[methods].append(instance)
    for methods, instances in by_methods.items():
        yield from compare(instances, methods, limits=LIMITS, jobs=jobs).rows


def wrong(row: Row) -> str:
    """Return what is wrong with a row, or an empty text."""
    if row.wrong:
        return f"WRONG: {'; '.join(row.violations)}"
    if row.refuted:
        return f"REFUTED: {row.refuted}"
    return f"{row.status}: {row.reason}" if row.status in ENDED_BADLY else ""


ENDED_BADLY = ("error", "out of memory", "unbounded")


def main() -> None:
    """Run the campaign; exit with status 1 if a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("ordinary", "extreme"))
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    last = asked.first + asked.count
    statuses, bad = Counter[str](), 0
    for first in range(asked.first, last, BATCH):
        seeds = range(first, min(first + BATCH, last))
        for row in rows(asked.kind, seeds, asked.jobs):
            statuses[row.status] += 1
            if words := wrong(row):
                bad += 1
                print(f"{row.instance}: {row.method}: {words}", flush=True)
        print(f"… {seeds[-1]}: {statuses.total()} rows, {bad} of them wrong", flush=True)
    print(f"{asked.count} instances, {statuses.total()} rows, {bad} of them wrong: {dict(statuses)}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
