"""HiGHS alone on the exported file of a model, beside the model's own row: ``python tests/benchmarks/alone.py``.

Each model runs in a process of its own, once as a warm-up and five times measured. HiGHS reads the file and solves it
in this process, six times as well, of which the first is the warm-up. Times are medians in seconds.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import highspy

import schedgap as sg
from schedgap.harness.ask.export import export

REPEAT = 5
CASES = (
    ("oef.cooperative", "gen/oef-50"),
    ("oef.efficiency", "gen/oef-50"),
    ("gavel.makespan_fluid", "gen/200jobs"),
    ("synergy.lp1.free", "gen/200jobs"),
    ("synergy.lp2.min_fragments", "gen/20jobs"),
    ("zhou.ps.mincost", "gen/200jobs"),
    ("hadar.p1", "paper/hadar-fig1"),
    ("admission.offline", "paper/walkthrough"),
)


def alone(file: Path) -> tuple[float, float, float]:
    """Return the seconds in which HiGHS reads a file and solves it, and the optimum."""
    began = time.perf_counter()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.readModel(str(file))
    read = time.perf_counter()
    highs.run()
    return read - began, time.perf_counter() - read, highs.getObjectiveValue()


def lines() -> Iterator[str]:
    """Yield the rows of a Markdown table."""
    names = "read", "build", "transfer", "solve", "check", "certify", "total"
    yield f"| model | instance | {' | '.join(names)} | HiGHS: read | solve | total |"
    yield "|---" * 2 + "|---:" * (len(names) + 3) + "|"
    for method, instance in CASES:
        row = sg.compare(instance, method, limits=sg.Limits(repeat=REPEAT), jobs=1).rows[0]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.mps")
            export(method, instance, file)
            runs = [alone(file) for _ in range(1 + REPEAT)][1:]
        assert abs(abs(runs[0][2]) - abs(row.claimed_bound or 0.0)) <= 1e-5 * abs(runs[0][2]), method
        own = [getattr(row, f"{name}_s") or 0.0 for name in names]
        read, solve = (statistics.median(run[i] for run in runs) for i in (0, 1))
        times = " | ".join(f"{seconds:.4f}" for seconds in (*own, read, solve, read + solve))
        yield f"| `{method}` | `{instance}` | {times} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
