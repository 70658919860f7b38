"""What a user waits for before anything is solved: starting the command, loading data, importing modules."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from schedgap import instances
from schedgap.instances.importers import import_trace

COMMAND = Path(sys.executable).with_name("harness")


def call(*args: str | Path) -> None:
    """Run a command to its end without output."""
    subprocess.run(list(map(str, args)), check=True, capture_output=True)


def test_help(bench) -> None:  # type: ignore[no-untyped-def]
    call(COMMAND, "--help")
    seconds = bench.time(lambda: call(COMMAND, "--help"), rounds=5)
    python = bench.reference(lambda: call(sys.executable, "-c", "pass"))
    bench.line("harness --help, against starting Python", seconds, python, "≤ 0.7 s", most=0.7)


def test_import_front(bench) -> None:  # type: ignore[no-untyped-def]
    seconds = bench.time(lambda: call(sys.executable, "-c", "import schedgap"), rounds=5)
    python = bench.reference(lambda: call(sys.executable, "-c", "pass"))
    bench.line("import schedgap, against starting Python", seconds, python, "≤ 0.5 s", most=0.5)


def test_load_2000_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    seconds = bench.time(lambda: instances.load("gen/2000jobs"))
    bench.line("loading gen/2000jobs", seconds, None, "≤ 1 s", most=1.0)


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
    bench.line("importing 20,000 Philly jobs", seconds, None, "≤ 2 s", most=2.0)


def memory_of(process: psutil.Process) -> float:
    """Return the megabytes that a process and its descendants hold; shared pages count once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total / 1e6


def watched(*args: str | Path) -> float:
    """Run a command to its end; return the largest number of megabytes that its processes held together."""
    process = psutil.Popen(list(map(str, args)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0.0
    while process.poll() is None:
        with suppress(psutil.Error):
            most = max(most, memory_of(process))
        time.sleep(0.2)
    assert process.returncode == 0
    return most


def test_compare_200_jobs(bench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    command = [COMMAND, "compare", "--instance", "gen/200jobs", "--results", tmp_path]
    most: list[float] = []
    seconds = bench.time(lambda: most.append(watched(*command)), rounds=1)
    note = f"peak memory of all its processes {max(most):.0f} MB"
    limit = 60.0 if max(most) < 2000 else 0.0
    bench.line("harness compare --instance gen/200jobs, all papers", seconds, None, "≤ 60 s, < 2 GB", note, most=limit)
