"""The environment of a run: versions, machine, commit, digest of the code, and usable cores and memory."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("instances", "certificates", "models", "heuristics", "harness")
MEASURED = ("schedgap", "pyomo", "highspy", "numpy", "scipy", "pandas", "networkx", "pulp", "pydantic")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    numbers = {"python": platform.python_version()}
    for name in MEASURED:
        try:
            numbers[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            numbers[name] = "not installed"
    return numbers


def machine() -> dict[str, str]:
    """Return the processor, cores, memory and operating system (no host name)."""
    memory, processor = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    return {
        "processor": processor,
        "cores": str(cores()),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def load() -> str:
    """Return the load of the machine: the mean number of processes of the last minute that ran or waited for a core."""
    return f"{os.getloadavg()[0]:.1f}"


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def memory_capped(limit_mb: float) -> Iterator[None]:
    """Limit the data segment of this process to `limit_mb` within the block; larger allocations fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    cap = int(limit_mb * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (cap if hard == resource.RLIM_INFINITY else min(cap, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def held_mb(pid: int | None) -> float:
    """Return the size of a process's data segment in MB, which the cap limits; 0 if the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def waited_for_core_s(pid: int | None) -> float:
    """Return the seconds that a process was ready but had no processor; 0 if the system does not tell.

    Of several threads, the one that waited longest counts.
    """
    waits = [0]
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                waits.append(int((thread / "schedstat").read_text().split()[1]))
    return max(waits) / 1e9


def git_commit() -> str | None:
    """Return the commit of the checkout this code runs from (``+changes`` if it was edited), or ``None``."""
    try:
        if Path(_git("rev-parse", "--show-toplevel")) != ROOT:
            return None  # installed inside another repository, the user's
        commit = _git("rev-parse", "HEAD")
        return commit + ("+changes" if _git("status", "--porcelain", "--", *PACKAGES) else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*args: str) -> str:
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


@functools.cache
def code_digest() -> str:
    """Return a digest of the source and data files of all packages; runs resume only results of the same code."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in {".py", ".toml", ".json"}:
                digest.update(path.relative_to(ROOT).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
