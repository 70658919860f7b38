"""Logs of simulated clusters of any size, as SWF, as ``sacct -P`` prints them, or as CSV, for benchmarks of size.

::

    PYTHONPATH=src:. python -m tests.benchmarks.logs 100000 swf > log.swf

Jobs arrive by day more than by night, have gangs of 1 to 64 GPUs and run times from seconds to days. They start by EASY
backfilling with the users' time limits, so that the log is one that a cluster could have written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import Context
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS

BEGAN = 1_767_225_600
"""The first moment of a log, 1 January 2026, as seconds since 1970."""

GANGS = {1: 0.45, 2: 0.12, 4: 0.14, 8: 0.17, 16: 0.06, 32: 0.04, 64: 0.02}
LIMITS_S = 3600 * np.array([1, 2, 4, 8, 12, 24, 48, 72])
DAY_S, WEEK_S = 86_400, 604_800


def simulated(jobs: int, seed: int = 0, gpus: int = 2000, load: float = 0.8) -> pd.DataFrame:
    """Return a log with this many jobs; the load is the work over what all GPUs can do until the last arrival.

    Columns are ``id, submit, start, end`` (seconds since 1970), ``gpus``, ``limit`` (seconds), ``user`` and ``status``.
    """
    rng = np.random.default_rng(seed)
    gang = rng.choice(list(GANGS), jobs, p=list(GANGS.values()))
    duration = np.clip(rng.lognormal(7.5, 1.9, jobs), 5, 3 * DAY_S).astype(np.int64)
    span = int((gang * duration).sum() / (gpus * load))
    # Arrivals are thinned: by night a third, at weekends half.
    tried = np.sort(rng.uniform(0, span, 3 * jobs))
    busy = (1 + 2 * ((tried % DAY_S) > DAY_S / 3)) / 3 * np.where(tried % WEEK_S > 5 * DAY_S, 0.5, 1.0)
    kept = tried[rng.random(tried.size) < busy]
    submit = np.sort(rng.choice(kept, jobs, replace=kept.size < jobs)).astype(np.int64)
    least = np.minimum(duration * rng.lognormal(0.8, 0.8, jobs).clip(1.0), LIMITS_S[-1])
    limit = LIMITS_S[np.searchsorted(LIMITS_S, np.maximum(least, duration))]
    log = pd.DataFrame(
        {
            "id": np.arange(1, jobs + 1),
            "submit": BEGAN + submit,
            "start": BEGAN + submit - 1,  # a wait of -1 is one that is not known
            "end": BEGAN + submit - 1 + duration,
            "gpus": gang,
            "limit": limit,
            "user": rng.zipf(1.5, jobs).clip(max=300),
            "status": np.where(rng.random(jobs) < 0.8, "COMPLETED", "FAILED"),
        }
    )
    start = log["submit"] + waits(log, gpus)
    return log.assign(start=start, end=start + duration)


def waits(log: pd.DataFrame, gpus: int) -> NDArray[np.int64]:
    """Return ``(n,)`` seconds for which the jobs of a log, sorted by submission, wait under EASY backfilling."""
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "log.swf").write_text(swf(log, gpus))
        view = PAPERS.get("rigid").view(import_trace("swf", path, Options(history=True)))
    rule = HEURISTICS.get("rigid.easy?estimates=requested")
    found = rule.run(view, Context(np.random.default_rng(0), lambda model, view: None))
    return np.asarray(np.rint((found.start - view.release) * view.tick_s).astype(np.int64))


def swf(log: pd.DataFrame, gpus: int = 2000) -> str:
    """Return a log in the Standard Workload Format."""
    unknown = np.full(len(log), -1)
    run, whole = log["end"] - log["start"], log["status"].eq("COMPLETED").astype(int)
    columns = [
        *(log["id"], log["submit"] - BEGAN, log["start"] - log["submit"], run, log["gpus"], unknown, unknown),
        *(log["gpus"], log["limit"], unknown, whole, log["user"], *[unknown] * 6),
    ]
    lines = pd.DataFrame(dict(enumerate(columns))).to_csv(sep=" ", header=False, index=False)
    return f"; Version: 2.2\n; UnixStartTime: {BEGAN}\n; MaxProcs: {gpus}\n{lines}"


def sacct(log: pd.DataFrame) -> str:
    """Return a log as ``sacct -P`` prints it."""
    lines = pd.DataFrame(
        {
            "JobID": log["id"],
            "JobName": "train",
            "User": "u" + log["user"].astype(str),
            "Partition": "gpu",
            **{name.title(): pd.to_datetime(log[name], unit="s").dt.strftime("%FT%T") for name in ("submit", "start")},
            "End": pd.to_datetime(log["end"], unit="s").dt.strftime("%FT%T"),
            "TimelimitRaw": log["limit"] // 60,
            "State": log["status"],
            "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=" + log["gpus"].astype(str) + ",node=1",
        }
    )
    return str(lines.to_csv(sep="|", index=False))


def csv(log: pd.DataFrame) -> str:
    """Return a log as CSV, with the columns that ``harness certify csv`` expects."""
    return str(log[["id", "submit", "start", "end", "gpus"]].to_csv(index=False))


if __name__ == "__main__":
    sys.stdout.write({"swf": swf, "sacct": sacct, "csv": csv}[sys.argv[2]](simulated(int(sys.argv[1]))))
