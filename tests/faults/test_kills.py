"""Kills of random processes of random studies at random moments; a resumed run ends in the undisturbed table.

Not part of ``make test``: ``make faults`` runs it, ``FAULTS=500 make faults`` as often.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from conftest import HARNESS

from schedgap.harness.engine.study import reopen

NUMBER = int(os.environ.get("FAULTS", "20"))
STALL_S = 20.0
CLOCKED = {"seconds", "duration_s", "peak_mb", "trace"}

STUDIES = {
    "compare": ["compare", "--instance", "paper/oef-eq1", "--instance", "paper/walkthrough", "--paper", "oef"],
    "sweep": ["compare", "--instance", "paper/hadar-fig1", "--method", "hadar.[og]*", "--method", "hadar.p1"],
    "simulate": ["simulate", "--instance", "paper/hadar-fig1", "--policy", "srtf", "fifo", "hadar.gavel", "tiresias"],
    "audit": ["audit", "--claim", "oef.slip.*", "--claim", "admission.slip.*", "--effort", "0.1"],
}


def run(words: list[str], where: Path) -> subprocess.Popen[str]:
    """Start a study whose results folder is made in `where`."""
    command = [HARNESS, *words, "--no-report", "--jobs", "2", "--results", str(where), "--format", "csv"]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def shown(where: Path) -> list[str]:
    """Return the rows of the only results folder, without what a clock decides and where it is."""
    (folder,) = where.iterdir()
    rows = [row.as_dict() for row in reopen(folder).rows]
    timeless = [{k: v for k, v in row.items() if k not in CLOCKED and not k.endswith("_s")} for row in rows]
    return [repr(row).replace(str(folder), "") for row in timeless]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, list[str]]]:
    """Return seconds and rows of each study."""
    found = {}
    for name, words in STUDIES.items():
        where = tmp_path_factory.mktemp(name)
        began, process = time.monotonic(), run(words, where)
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, 1), errors
        found[name] = (time.monotonic() - began, shown(where))
    return found


@pytest.mark.parametrize("seed", range(NUMBER))
def test_a_killed_run_resumes_to_the_same_table(seed: int, undisturbed: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    name = sorted(STUDIES)[int(rng.integers(len(STUDIES)))]
    seconds, rows = undisturbed[name]
    process = run(STUDIES[name], tmp_path)
    time.sleep(seconds * rng.random())
    try:
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
        family[int(rng.integers(len(family)))].send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        pass  # it has ended already
    _, errors = process.communicate(timeout=seconds * 3 + STALL_S)
    assert "Traceback" not in errors, errors
    folders = list(tmp_path.iterdir())
    if not any((folder / "run.json").exists() for folder in folders):
        for folder in folders:
            shutil.rmtree(folder)
    resume = [word for folder in tmp_path.iterdir() for word in ("--resume", str(folder))]
    process = run([*STUDIES[name], *resume], tmp_path)
    _, errors = process.communicate(timeout=seconds * 3 + STALL_S)
    assert "Traceback" not in errors, errors
    assert shown(tmp_path) == rows
