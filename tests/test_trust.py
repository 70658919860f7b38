"""Nothing false is shown as certified, nothing of a stranger's folder runs, nothing valid ends in an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("harness")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder whose modules have the names of ours and of those we use, and leave a mark where they run."""
    names = ("models", "heuristics", "harness", "numpy", "json", "random", "struct", "multiprocessing", "instances/a")
    (tmp_path / "instances").mkdir()
    for name in (*names, "instances/__init__"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')\nraise OSError")
    return tmp_path


def test_workers_execute_nothing_of_the_folder_that_the_command_is_started_in(hostile: Path) -> None:
    command = [COMMAND, "compare", "--instance", "paper/oef-eq1", "--method", "oef.g*", "--no-report", "--jobs", "2"]
    found = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=120, check=False)
    assert not (hostile / "executed").exists(), (hostile / "executed").read_text()
    assert (found.returncode, found.stderr.count("Traceback")) == (0, 0), found.stderr
    assert "oef.gavel" in found.stdout
