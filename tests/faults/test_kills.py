"""Processes of running studies are killed at random; a resumed run must end with the table of an undisturbed run.

``make test`` does not run these tests: ``make faults`` does, and ``FAULTS=500 make faults`` kills about 500 times.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from clusters import start_scheduler, start_worker
from conftest import HARNESS

from schedgap.harness.studies.folders import reopen

KILLS, RUNS = 6, 3
"""Most kills during one study, and number of runs that they are spread over; each run resumes the one before."""

NUMBER = -(-int(os.environ.get("FAULTS", "20")) // KILLS)
"""Number of studies that are disturbed."""

STALL_S, LOST_S = 20.0, 900.0
"""Seconds without progress after which a run here counts as stuck, and seconds after which a run on a cluster does.

Processes of a cluster are never idle, so that only the length of the run shows that it is stuck.
"""

CLOCKED = {"seconds", "duration_s", "peak_mb", "trace"}

SWEEP = """
title = "A small sweep"
instances = ["paper/walkthrough", "paper/oef-eq1"]
methods = ["admission.online", "admission.columns", "oef.g*"]
seeds = [0, 1]
"""

STUDIES = {
    "compare": ["compare", "--instance", "paper/oef-eq1", "--instance", "paper/walkthrough", "--paper", "oef"],
    "bounds": ["compare", "--instance", "paper/hadar-fig1", "--method", "hadar.[og]*", "--method", "hadar.p1"],
    "sweep": ["sweep", "SWEEP"],
    "simulate": ["simulate", "--instance", "paper/hadar-fig1", "--policy", "srtf", "fifo", "hadar.gavel", "tiresias"],
    "audit": ["audit", "--claim", "oef.slip.*", "--claim", "admission.slip.*", "--effort", "0.1"],
}


class Cluster:
    """A Dask scheduler with two workers; processes that were killed are started again before the next run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def words(self) -> list[str]:
        """Start missing processes, and return the words of the command line that name the cluster."""
        if not self.processes or self.processes[0].poll() is not None:
            self.stop()
            scheduler, self.address = start_scheduler(self.folder)
            self.processes = [scheduler]
        self.processes = [process for process in self.processes if process.poll() is None]
        self.processes += [start_worker(self.address) for _ in range(3 - len(self.processes))]
        return ["--dask", self.address]

    def stop(self) -> None:
        """Kill all processes of the cluster that still run."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def alive(process: psutil.Process) -> bool:
    """Return whether a process runs and is no zombie."""
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


class Run:
    """A study that is started as a command; its results folder is below `where`, and is resumed if it exists."""

    def __init__(self, name: str, where: Path, cluster: Cluster | None = None) -> None:
        (where / "runs").mkdir(exist_ok=True)
        (where / "sweep.toml").write_text(SWEEP)
        words = [str(where / "sweep.toml") if word == "SWEEP" else word for word in STUDIES[name]]
        words += cluster.words() if cluster else ["--jobs", "2"]
        words += ["--no-report", "--results", str(where / "runs"), "--format", "csv"]
        for folder in (where / "runs").iterdir():
            words += ["--resume", str(folder)]
        self.where, self.cluster, self.began, self.seen = where, cluster, time.monotonic(), set[psutil.Process]()
        self.idle_s, self.used, self.since = 0.0, -1.0, self.began
        with (where / "errors").open("w") as errors:
            quiet = subprocess.DEVNULL
            self.process = subprocess.Popen([HARNESS, *words], stdout=quiet, stderr=errors, start_new_session=True)

    def family(self, *others: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """Return the running processes of the study and those of `others`, each with its descendants."""
        found = []
        for process in (self.process, *others):
            with suppress(psutil.NoSuchProcess):
                found += [one := psutil.Process(process.pid), *one.children(recursive=True)]
        return found

    def goes_on(self, seconds: float) -> bool:
        """Wait for some seconds or until the study ends; return whether it still runs."""
        until = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < until:
            self._watch()
            time.sleep(0.2)
        return self.process.poll() is None

    def _watch(self) -> None:
        with suppress(psutil.Error):  # workers of a killed fork server still work, in nobody's family
            self.seen = {one for one in self.seen | set(self.family()) if alive(one)}
            if (used := sum(sum(one.cpu_times()[:2]) for one in self.seen)) != self.used:
                self.used, self.since = used, time.monotonic()
        self.idle_s = max(self.idle_s, time.monotonic() - self.since)
        assert self.idle_s < STALL_S, "a stall"
        assert time.monotonic() - self.began < LOST_S, "a run that does not end"

    def kill(self, rng: np.random.Generator) -> str:
        """Kill one random process of the study or its cluster; return the role that it had."""
        family = self.family(*(self.cluster.processes if self.cluster else ()))
        with suppress(psutil.NoSuchProcess):
            victim = family[int(rng.integers(len(family)))]
            role = self._role(victim)
            victim.send_signal(signal.SIGKILL)
            return role
        return "one that has just ended"

    def _role(self, process: psutil.Process) -> str:
        words, parent = " ".join(process.cmdline()), process.ppid()
        if process.pid == self.process.pid:
            return "main"
        for part in ("resource_tracker", "dask_scheduler", "dask_worker"):
            if part in words:
                return part
        above = " ".join(psutil.Process(parent).cmdline())
        return "worker" if "forkserver" in above else "fork server"

    def end(self) -> None:
        """Wait for the study's end; check that no process is left and that it printed no traceback."""
        self.goes_on(float("inf"))
        _, left = psutil.wait_procs(list(self.seen), timeout=STALL_S)
        assert not left
        errors = (self.where / "errors").read_text()
        assert "Traceback" not in errors, errors
        for folder in (self.where / "runs").iterdir():
            if not (folder / "run.json").exists():  # it was killed before it had begun
                shutil.rmtree(folder)


def shown(where: Path) -> list[str]:
    """Return the rows of the only results folder, without times and without the folder's path."""
    (folder,) = (where / "runs").iterdir()
    rows = [row.as_dict() for row in reopen(folder).rows]
    timeless = [{k: v for k, v in row.items() if k not in CLOCKED and not k.endswith("_s")} for row in rows]
    return [repr(row).replace(str(folder), "") for row in timeless]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, list[str]]]:
    """Return the seconds and the rows of each study when nothing is killed."""
    found = {}
    for name in STUDIES:
        run = Run(name, tmp_path_factory.mktemp(name))
        run.end()
        seconds = time.monotonic() - run.began
        Run(name, run.where).end()  # tries again what took too long where inner loops were compiled first
        found[name] = seconds, shown(run.where)
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a Dask cluster that is not started yet, and stop it at the end."""
    pytest.importorskip("distributed")
    found = Cluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Return a counter of what was killed, and print it at the end."""
    killed: Counter[str] = Counter()
    yield killed
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nkilled: {killed.total()}", dict(killed))


@pytest.mark.parametrize("seed", range(NUMBER))
def test_a_killed_run_resumes_to_the_same_table(
    seed: int, undisturbed: dict[str, tuple[float, list[str]]], cluster: Cluster, tally: Counter[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    name = sorted(STUDIES)[int(rng.integers(len(STUDIES)))]
    seconds, rows = undisturbed[name]
    on = cluster if rng.random() < 0.25 else None
    left = KILLS
    for _ in range(RUNS):
        run = Run(name, tmp_path, on)
        while left and run.goes_on(seconds * rng.random() / 3):
            tally[run.kill(rng)] += 1
            left -= 1
        run.end()
        if not left:
            break
    Run(name, tmp_path, on).end()
    assert shown(tmp_path) == rows
