"""Certificates of a whole comparison are accepted as written, and refused if one digit of a bound is changed."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from certified import EXAMPLES, checker, signed

from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.run import compare


def refused(files: list[Path]) -> dict[str, str]:
    """Run the checking script on certificates, and return the reason for each that it refuses."""
    command = [sys.executable, str(EXAMPLES / "check_certificate.py")]
    ran = (
        (file.name, subprocess.run([*command, str(file)], capture_output=True, text=True, check=False))
        for file in files
    )
    return {name: done.stderr.strip() for name, done in ran if done.returncode}


def other_digit(path: Path) -> None:
    """Change the first digit of the bound in a certificate."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    digit = re.search(r"[0-9]", text := repr(content["bound"]))
    assert digit
    changed = str((int(digit[0]) + 1) % 10)
    content["bound"] = float(text[: digit.start()] + changed + text[digit.end() :])
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def still_accepted(path: Path) -> bool:
    """Return whether a certificate with a bound that is slightly too good, and with right digests, is accepted."""
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    instance = json.loads((path.parent.parent / "instances" / f"{content['instance']}.json").read_bytes())
    sense, value = checker.proved(content, instance)
    stronger = content | {"bound": float(value) * (1 - sense * 1e-6)}
    try:
        checker.check(signed(stronger, instance), instance)
    except checker.RefusedError:
        return False
    return True


def test_every_bound_of_all_papers_is_proved(bench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """All bounds of all papers on ``gen/200jobs`` (five seconds per model) have certificates that are accepted."""
    found = compare("gen/200jobs", limits=Limits(time_limit_s=5.0), results=tmp_path, jobs=1)
    assert found.folder is not None
    files = sorted((found.folder / "certificates").iterdir())
    wrong: list[dict[str, str]] = []
    seconds = bench.time(lambda: wrong.append(refused(files)), rounds=1)
    stronger = [file.name for file in files if still_accepted(file)]
    for file in files:
        other_digit(file)
    kept = {file.name for file in files} - refused(files).keys()
    bounds = [row for row in found.rows if row.own_bound is not None]
    without = [row.method for row in bounds if row.proved_bound is None]
    odd = {"refused": wrong[-1], "accepted": [*kept, *stronger], "without": without}
    note = f"{len(files)} of {len(bounds)} bounds; {odd}"
    bench.line("certificates of all papers, gen/200jobs", seconds, None, "all accepted, changed ones refused", note)
    assert not any(odd.values())
