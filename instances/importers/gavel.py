"""Gavel's traces with its throughput table (stanford-futuredata/gavel).

``formats.toml`` has the layout of both. Here are the rates of the jobs by the table: worker type →
``('job type', scale factor)`` → ``"null"`` → iterations/s of the WHOLE job alone on its GPUs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from schedgap.instances.canonical import one_line, read_bytes, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.clusters import chip, count
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.table import CONTROL, LARGEST, Jobs, sifted

KEY = re.compile(r"\('([^']{1,200})', ([1-9]\d{0,5})\)")
SPREAD = "_unconsolidated"

Table = Mapping[str, Mapping[tuple[str, int], float]]
"""GPU type → (job type, scale factor) → iterations/s of the whole job."""


def gavel(path: Path, frame: pd.DataFrame, options: Options) -> Jobs:
    """Return the jobs of a trace, with the rates that the throughput table of the options has for them."""
    table = read_table(Path(options.throughputs)) if options.throughputs else {}
    asked = pd.Series(list(zip(frame["model"], frame["gpus"], strict=True)), index=frame.index)
    known = {(kind, gpus): rates(kind, int(gpus), table) for kind, gpus in set(asked)}
    frame = frame.assign(tenant=frame["model"].str.split(" (", regex=False).str[0], rates=asked.map(known.__getitem__))
    if "slo" in frame:
        frame["slo"] = frame["slo"].where(frame["slo"] > 0)
    jobs, left_out = sifted(frame, {NO_GPU: frame["gpus"] == 0})
    if not options.throughputs:
        return jobs, left_out, {}
    name = Path(options.throughputs).name
    recorded = [one for one, given in zip(asked.reindex(jobs.index), jobs["rates"], strict=True) if given]
    notes = [f"rates of {count(len(recorded))} from {name}: whole job's / scale factor"]
    if inexact := sum(not all(one in whole for whole in table.values()) for one in recorded):
        n = count(inexact)
        notes.append(f"{name} lacks the scale factor of {n}: rate of one GPU as at its largest smaller scale factor")
    return jobs, left_out, {"notes": notes}


def rates(kind: str, gpus: int, table: Table) -> dict[str, float]:
    """Return iterations/s of one GPU of each type; a missing scale factor takes the largest smaller one's."""
    found = {}
    for gpu, whole in table.items():
        scale = max((s for k, s in whole if k == kind and s <= gpus), default=None)
        if scale is not None:
            found[gpu] = whole[kind, scale] / scale
    return found if any(found.values()) else {}


def read_table(path: Path) -> Table:
    """Return Gavel's throughput JSON, or raise where it is not of that form."""
    try:
        data = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{path}: not valid JSON: {one_line(error)}") from error
    if not isinstance(data, dict) or not data:
        raise InstanceError(f"{path}: a throughput table is an object: GPU type → job type → rates")
    strange = next((gpu for gpu in data if not 0 < len(gpu) <= 200 or CONTROL.search(gpu)), None)
    if strange is not None:
        raise InstanceError(f"{path}: {shown(strange)}: the name of a GPU type, e.g. v100")
    table = {chip(g): whole_rates(path, g, kinds) for g, kinds in data.items() if not g.endswith(SPREAD)}
    if not table:
        raise InstanceError(f"{path}: only rates spread over servers (*{SPREAD}): give those of v100, …")
    return table


def whole_rates(path: Path, gpu: str, kinds: object) -> dict[tuple[str, int], float]:
    """Return the rates of all job types on one GPU type."""
    if not isinstance(kinds, dict) or not kinds:
        raise InstanceError(f"{path}: {shown(gpu)}: an object: ('job type', scale factor) → rates")
    found = {}
    for key, entry in kinds.items():
        match = KEY.fullmatch(key)
        if match is None:
            raise InstanceError(f"{path}: {shown(gpu)}: {shown(key)}: a key is written ('job type', scale factor)")
        rate = entry.get("null") if isinstance(entry, dict) else None
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= LARGEST or math.isnan(rate):
            where = f"{shown(gpu)}: {shown(key)}: null = {shown(rate)}"
            raise InstanceError(f"{path}: {where}: iterations per second of the whole job, 0 or more")
        found[match[1], int(match[2])] = float(rate)
    return found
