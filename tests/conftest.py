"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real traces; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("SCHEDGAP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real traces are not here ({folder.name}/ beside the project, or SCHEDGAP_DATA)")
    return folder
