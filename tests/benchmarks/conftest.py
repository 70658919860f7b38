"""Benchmarks measure our code beside a reference, and report seconds, ratio and target; nothing is asserted.

``make bench`` prints every line and writes them to ``results/bench/lines.json`` with machine and versions. With
``BENCH_ROUNDS=1`` everything is measured once: for a quick look, since medians of three are what counts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

import numpy as np
import pytest

from schedgap.harness.engine import environment
from schedgap.instances.canonical import write_atomically

ROOT = Path(__file__).resolve().parents[2]
MOST_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "99"))


@dataclass(frozen=True)
class Line:
    """One measurement: a line of the printed results.

    Attributes
    ----------
    section
        The file that measured it.
    name
        What was measured.
    ours, reference
        Seconds that our code and the reference take.
    ratio
        Seconds of the reference divided by ours: how many times faster our code is.
    target
        The target in words, from the specification.
    met
        Whether our seconds are at most `most` and the ratio is at least `least`, as far as these are given.
    capped
        Whether the reference was stopped early, so that the ratio is a lower bound.
    recorded
        Whether the reference's seconds are a number on record, not measured in this run.
    note
        Remarks on the measurement.
    sizes, seconds, exponent
        For a line on growth: sizes, seconds at each, and the slope fitted to them in log-log scale.
    gap, goal
        For a line on a gap: the gap between bound and schedule, and the gap that is the goal.
    """

    section: str
    name: str
    ours: float
    reference: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    capped: bool = False
    recorded: bool = False
    note: str = ""
    sizes: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    exponent: float | None = None
    gap: float | None = None
    goal: float | None = None


LINES: list[Line] = []
ABSENT: list[tuple[str, str]] = []
"""Measurements that are not possible here: name and reason."""


class Bench:
    """Times functions and records result lines; pytest-benchmark times our side, the same clock times the reference."""

    most_rounds = MOST_ROUNDS

    def __init__(self, benchmark: Any, section: str) -> None:
        self._benchmark, self._section = benchmark, section
        self._timed = False

    def time(self, function: Callable[[], Any], rounds: int = 3) -> float:
        """Return the median seconds of our side; the first call in a benchmark is measured by pytest-benchmark."""
        if self._timed:
            return self.reference(function, rounds)
        self._timed = True
        self._benchmark.pedantic(function, rounds=min(rounds, MOST_ROUNDS), iterations=1)
        return float(self._benchmark.stats.stats.median)

    @staticmethod
    def reference(function: Callable[[], Any], rounds: int = 3) -> float:
        """Return the median seconds of the reference's side."""
        seconds = []
        for _ in range(min(rounds, MOST_ROUNDS)):
            began = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - began)
        return median(seconds)

    def line(
        self,
        name: str,
        ours: float,
        reference: float | None,
        target: str,
        note: str = "",
        *,
        most: float | None = None,
        least: float | None = None,
        capped: bool = False,
        recorded: bool = False,
    ) -> None:
        """Record a line.

        Parameters
        ----------
        name, ours, reference, target, note, capped, recorded
            See :class:`Line`.
        most, least
            Most seconds of ours, and least ratio, that meet the target.
        """
        ratio = None if reference is None else reference / ours
        asked = [] if most is None else [ours <= most]
        if least is not None:
            asked.append(ratio is not None and ratio >= least)
        met = all(asked) if asked else None
        self._keep(Line(self._section, name, ours, reference, ratio, target, met, capped, recorded, note))

    def gap(self, name: str, seconds: float, gap: float, goal: float, note: str, *, enough: bool = True) -> None:
        """Record the gap between bound and schedule after some seconds; `enough` is what else the goal asks."""
        met, target = gap <= goal and enough, f"gap {100 * gap:.3g} %, goal {100 * goal:.3g} %"
        self._keep(Line(self._section, name, seconds, target=target, met=met, note=note, gap=gap, goal=goal))

    def growth(
        self, name: str, sizes: Sequence[int], seconds: Sequence[float], note: str = "", most: float | None = None
    ) -> None:
        """Fit seconds over sizes in log-log scale, and record the exponent; it should be at most `most`."""
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        measured = ", ".join(f"{n}: {s:.3g} s" for n, s in zip(sizes, seconds, strict=True))
        self._keep(
            Line(
                self._section,
                f"{name}: exponent {exponent:.2f}",
                seconds[-1],
                target="growth" if most is None else f"growth, exponent ≤ {most:g}",
                met=None if most is None else exponent <= most,
                note=f"{measured} {note}".strip(),
                sizes=tuple(sizes),
                seconds=tuple(seconds),
                exponent=exponent,
            )
        )

    def absent(self, name: str, reason: str) -> NoReturn:
        """Note that something cannot be measured here, and skip the rest of the benchmark."""
        ABSENT.append((name, " ".join(reason.split())))
        pytest.skip(reason)

    def _keep(self, line: Line) -> None:
        LINES.append(line)
        self._benchmark.extra_info.setdefault("lines", []).append(asdict(line))


@pytest.fixture
def bench(benchmark: Any, request: pytest.FixtureRequest) -> Bench:
    """Return the object with which a benchmark times and records."""
    return Bench(benchmark, Path(request.node.fspath).stem.removeprefix("test_"))


def printed(line: Line) -> str:
    """Return a result line as printed text."""
    reference = "–" if line.reference is None else f"{line.reference:.3g} s{'*' if line.recorded else ''}"
    ratio = "–" if line.ratio is None else f"{'≥ ' if line.capped else ''}{line.ratio:.3g}×"
    met = {True: "✓", False: "✗", None: " "}[line.met]
    return f"{met} {line.name:<80} {line.ours:>8.3g} s {reference:>10} {ratio:>9}  {line.target}".rstrip()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print all lines and write them as JSON."""
    if not LINES:
        return
    write = terminalreporter.write_line
    terminalreporter.section("benchmark lines (ratio = reference / ours)")
    write(f"  {'what':<80} {'ours':>10} {'reference':>10} {'ratio':>9}  target")
    section = ""
    for line in LINES:
        if line.section != section:
            section = line.section
            write(f"{section}:")
        write(printed(line))
        if line.note:
            write(f"      {line.note}")
    if ABSENT:
        write("not measured:")
    for name, reason in ABSENT:
        write(f"  {name}: {reason}")
    write("✓ target met, ✗ not met; ≥: the reference was stopped; *: on record, not measured in this run")
    folder = ROOT / "results" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": environment.machine(),
        "load": environment.load(),
        "versions": environment.versions(),
        "lines": [asdict(x) for x in LINES],
        "absent": dict(ABSENT),
    }
    path = folder / "lines.json"
    write_atomically(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
    write_goals(folder / "goals.md")
    missed = sum(line.met is False for line in LINES)
    write(f"{len(LINES)} lines, {missed} targets not met; written: {path.relative_to(ROOT)}")


def write_goals(path: Path) -> None:
    """Write the lines with gaps and goals as a Markdown table, if there are any."""
    rows = [
        f"| {x.name} | {100 * x.gap:.3g} % | {100 * x.goal:.3g} % | {'✓' if x.met else '✗'} | {x.ours:.3g} | {x.note} |"
        for x in LINES
        if x.gap is not None and x.goal is not None
    ]
    if rows:
        machine = ", ".join(f"{name} {value}" for name, value in environment.machine().items())
        where = f"{datetime.now(UTC):%Y-%m-%d}; {machine}, load at the end {environment.load()}."
        head = [where, "", "| model, instance | gap | goal | | seconds | |", "|---|---|---|---|---|---|"]
        write_atomically(path, ("\n".join([*head, *rows]) + "\n").encode())
