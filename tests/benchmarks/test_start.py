"""What a user waits for before anything is solved: the command, loading, importing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import instances
from instances.importers import import_trace

COMMAND = Path(sys.executable).with_name("harness")


def call(*args: str | Path) -> None:
    """Run a command to its end, quietly."""
    subprocess.run(list(map(str, args)), check=True, capture_output=True)


def test_help(bench) -> None:  # type: ignore[no-untyped-def]
    seconds = bench.time(lambda: call(COMMAND, "--help"), rounds=5)
    bench.line("harness --help", seconds, bench.reference(lambda: call(sys.executable, "-c", "pass")), "≤ 0.7 s")


def test_import_harness(bench) -> None:  # type: ignore[no-untyped-def]
    seconds = bench.time(lambda: call(sys.executable, "-c", "import harness"), rounds=5)
    bench.line("import harness", seconds, bench.reference(lambda: call(sys.executable, "-c", "pass")), "≤ 0.5 s")


def test_load_2000_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    seconds = bench.time(lambda: instances.load("gen/2000jobs"))
    bench.line("loading gen/2000jobs", seconds, None, "≤ 1 s")


def test_growth_of_loading(bench) -> None:  # type: ignore[no-untyped-def]
    sizes = (20, 200, 1000, 2000)
    seconds = []
    for jobs in sizes[:-1]:
        began = time.perf_counter()
        instances.load(f"gen/{jobs}jobs")
        seconds.append(time.perf_counter() - began)
    seconds.append(bench.time(lambda: instances.load("gen/2000jobs")))
    bench.growth("loading gen/<n>jobs", sizes, seconds)


def test_philly_import(bench, data_dir: Path) -> None:  # type: ignore[no-untyped-def]
    trace = data_dir / "philly/philly_first20000.csv"
    seconds = bench.time(lambda: import_trace("philly", trace))
    bench.line("importing 20,000 Philly jobs", seconds, None, "≤ 2 s")


def test_compare_200_jobs(bench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    command = [COMMAND, "compare", "--instance", "gen/200jobs", "--results", tmp_path]
    seconds = bench.time(lambda: call(*command), rounds=1)
    bench.line("harness compare --instance gen/200jobs, all papers", seconds, None, "≤ 60 s")
