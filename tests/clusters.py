"""Dask clusters of separate processes, for tests that kill some of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, wait_for


def dask(*words: str) -> subprocess.Popen[bytes]:
    """Start one of Dask's commands in a process group of its own, without output."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:], "--no-dashboard"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True, cwd=ROOT)


def start_scheduler(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a Dask scheduler without workers; return it and its address, which it writes to a file in `folder`."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    process = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    wait_for(lambda: file.exists() and file.read_text().endswith("}"), process)
    return process, json.loads(file.read_text())["address"]


def start_worker(address: str) -> subprocess.Popen[bytes]:
    """Start a Dask worker with one thread; without a nanny, nothing restarts it after it is killed."""
    return dask("worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
