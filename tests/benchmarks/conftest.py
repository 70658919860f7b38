"""Benchmark lines: ours, the reference measured in the same run, their ratio and the target. Nothing is asserted.

``make bench`` prints every line and writes them to ``results/bench/lines.json`` with machine and versions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from harness import environment

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Line:
    """One line of the result: seconds (or a share) of ours and of the reference."""

    name: str
    ours: float
    reference: float | None
    ratio: float | None
    target: str
    note: str = ""


LINES: list[Line] = []


class Bench:
    """Times things and records lines; ours goes through pytest-benchmark, the reference through the same clock."""

    def __init__(self, benchmark: Any) -> None:
        self._benchmark = benchmark

    def time(self, function: Callable[[], Any], rounds: int = 3) -> float:
        """Return the median seconds of our side, measured by pytest-benchmark."""
        self._benchmark.pedantic(function, rounds=rounds, iterations=1)
        return float(self._benchmark.stats.stats.median)

    @staticmethod
    def reference(function: Callable[[], Any], rounds: int = 3) -> float:
        """Return the median seconds of the reference."""
        seconds = []
        for _ in range(rounds):
            began = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - began)
        return median(seconds)

    def line(self, name: str, ours: float, reference: float | None, target: str, note: str = "") -> None:
        """Record a line; the ratio is reference / ours: how many times faster ours is."""
        ratio = None if reference is None else reference / ours
        LINES.append(Line(name, ours, reference, ratio, target, note))
        self._benchmark.extra_info.update(asdict(LINES[-1]))

    def growth(self, name: str, sizes: Sequence[int], seconds: Sequence[float], note: str = "") -> None:
        """Record the exponent fitted to seconds over sizes (slope in log-log), beside the largest time."""
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        measured = ", ".join(f"{n}: {s:.3g} s" for n, s in zip(sizes, seconds, strict=True))
        self.line(f"{name}: exponent {exponent:.2f}", seconds[-1], None, "growth", f"{measured} {note}".strip())


@pytest.fixture
def bench(benchmark: Any) -> Bench:
    """Return the recorder of this benchmark."""
    return Bench(benchmark)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print all lines and write them as JSON."""
    if not LINES:
        return
    write = terminalreporter.write_line
    terminalreporter.section("benchmark lines (reference / ours)")
    write(f"{'what':<62} {'ours':>10} {'reference':>10} {'ratio':>8}  target")
    for line in LINES:
        reference = "–" if line.reference is None else f"{line.reference:.3g} s"
        ratio = "–" if line.ratio is None else f"{line.ratio:.3g}×"
        write(f"{line.name:<62} {line.ours:>8.3g} s {reference:>10} {ratio:>8}  {line.target}")
        if line.note:
            write(f"    {line.note}")
    folder = ROOT / "results" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": environment.machine(),
        "versions": environment.versions(),
        "lines": [asdict(x) for x in LINES],
    }
    (folder / "lines.json").write_text(json.dumps(content, indent=2) + "\n")
    write(f"written: {(folder / 'lines.json').relative_to(ROOT)}")
