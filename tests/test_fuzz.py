"""Randomly changed inputs are read or refused properly; ``python tests/fuzzing.py 100000`` tries many more."""

from __future__ import annotations

from pathlib import Path

from fuzzing import faults


def test_no_input_ends_in_a_traceback_or_hangs(tmp_path: Path) -> None:
    assert not list(faults(100, 0, tmp_path))
