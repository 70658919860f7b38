"""Further formats of traces and logs, on made-up files: as published, with their oddities, and certified by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_samples import SAMPLES

from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.schema import Instance


def read(tmp_path: Path, format: str, text: str, history: bool = True, **options: Any) -> Instance:
    path = tmp_path / f"log.{format}"
    path.write_text(text)
    return import_trace(format, path, Options(history=history, **options))


# Shockwave


def test_shockwave_has_gavel_s_job_types_with_a_mode_and_a_duration(tmp_path: Path) -> None:
    found = read(tmp_path, "shockwave", SAMPLES["shockwave"], history=False)
    small, large = found.jobs
    assert (small.model, small.submit_s, small.gpus, small.weight, small.duration_s) == (
        "LM (batch size 40)",
        0,
        1,
        2.5,
        40,
    )
    assert (large.tenant, large.submit_s, large.gpus, large.iterations) == ("ResNet-18", 43, 2, 7332)
    assert large.rates == {"V100": pytest.approx(7332 / 100 / 2)}
    assert small.deadline_s == pytest.approx(1.5 * 40)
    assert large.deadline_s is None
    assert found.cluster.gpus_by_type == {"V100": 32}
    assert found.derived[:2] == (
        "1 of 3 jobs left out: they ask for 0 GPUs",
        "the batch size of 1 job stays what it is at the beginning; in the trace it changes",
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("accordion", "elastic", 'line 1: mode = "elastic": static, accordion or gns'),
        ("\t100\t50\n", "\t100\n", "line 1: not shockwave: a line has 12 tab-separated fields"),
        ("\t40\t7\n", "\t\t7\n", 'line 2: duration = "": seconds'),
        ("\t40\t7\n", "\t40\n", "line 2: 11 fields instead of 12"),
    ],
)
def test_shockwave_s_lines_are_checked(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        read(tmp_path, "shockwave", SAMPLES["shockwave"].replace(old, new), history=False)
    assert told in str(caught.value)
