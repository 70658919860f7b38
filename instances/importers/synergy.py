"""Synergy's traces (msr-fiddle/synergy): id, model, arrival, iterations, GPUs; comma-separated, no header.

Arrivals are in SECONDS, in all of them: that is the clock of Synergy's simulator, which replays such a file
without conversion and divides by 3600 where it prints hours. The static trace (``static_100job_…``) arrives
at 0.001 s times the id, a tie-break of jobs that are all there at the start; the dynamic one
(``dynamic_srtf.log``) at whole seconds of a Poisson process of 30 jobs per hour. (In hours, the dynamic trace
would span 16 months, for a published average JCT of 3 to 5 hours.)

An iteration is a step of the whole gang, as long on four GPUs as on one: the rate of one GPU is the model's
divided by the GPUs of the gang. Without another cluster, the trace gets the one that it ran on: 32 V100 on
four servers.
"""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import (
    Column,
    arrival,
    check_format,
    check_unique,
    gang,
    numbers_at,
    parse_lines,
    read_text,
    work,
)
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = {
    0: Column("id", "whole", "the number of the job, from 0"),
    1: Column("model", "text", "the name of a model"),
    2: arrival("arrival"),
    3: work("iterations"),
    4: gang("GPUs"),
}


def recognise(line: str) -> int:
    """Return 5 for a first line of five comma-separated fields, all numbers but the model."""
    return numbers_at(line, width=5, positions=(0, 2, 3, 4))


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a Synergy trace (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(path)
    check_format(path, text, "synergy", "a line has 5 comma-separated fields: id, model, arrival, iterations, GPUs")
    frame = parse_lines(path, text, COLUMNS, 5, ",")
    check_unique(path, frame["id"])
    used = frame[frame["GPUs"] > 0]
    jobs = [
        TraceJob(
            id=f"job-{row['id']:.0f}",
            submit_s=row["arrival"],
            gpus=int(row["GPUs"]),
            model=row["model"],
            iterations=int(row["iterations"]),
        )
        for row in used.to_dict("records")
    ]
    trace = Trace(
        "synergy",
        path,
        jobs,
        {NO_GPU: len(frame) - len(used)},
        notes=("arrivals read as seconds: the clock of Synergy's simulator",),
        gang_iterations=True,
        default_gpus={"V100": 32},
        default_per_server=8,
    )
    return to_instance(trace, options)


IMPORTERS.register(
    ImporterSpec(
        id="synergy",
        title="Synergy trace",
        layout=__doc__,
        source="Synergy (Mohan et al., OSDI 2022), msr-fiddle/synergy",
        licence="MIT",
        read=read,
        recognise=recognise,
    )
)
