"""Logs of HiGHS: each solve writes a file of its own, and the files of one method are joined to one text."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LARGEST = 20_000_000
"""Most characters of a joined log."""

_number = itertools.count()


def settings(folder: Path | None) -> dict[str, Any]:
    """Return the options with which HiGHS logs to a new file in `folder`, not to the terminal; none without a folder.

    HiGHS empties the file when it opens it, so that each session needs its own. Names are in the order of sessions, and
    differ between processes. A session that solves repeatedly appends to its file.
    """
    if folder is None:
        return {}
    path = folder / f"{next(_number):09}-{os.getpid()}.log"
    return {"log_to_console": False, "log_file": str(path), "output_flag": True}


@contextmanager
def logging(wanted: bool) -> Iterator[Path | None]:
    """Yield a temporary folder for logs, or ``None`` if they are not wanted."""
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def joined(folder: Path) -> str:
    """Return the logs in a folder as one text of at most :data:`LARGEST` characters; it says how many are left out."""
    texts, length, files = [], 0, sorted(folder.glob("*.log"))
    for file in files:
        texts.append(file.read_text(errors="replace"))
        length += len(texts[-1])
        if length > LARGEST:
            break
    text = "\n".join(texts)
    left = len(files) - len(texts)
    cut = f"\n… cut off after {LARGEST:,} characters; {left:,} more logs were left out\n"
    return text[:LARGEST] + cut if length > LARGEST else text
