"""Common types of the importers: format specs, the user's options, and the trace that the filling rules take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schedgap.instances.errors import UsageError
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.ranges import MAX_BAD
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

MAX_GPUS = 10_000_000
"""Most GPUs of one type that options may request."""

MAX_PER_GPU = 1e6
"""Most CPUs or gigabytes per GPU that options may request."""


@dataclass(frozen=True)
class Options:
    """The user's options for an import; everything else follows from the trace and the filling rules.

    Parameters
    ----------
    max_jobs
        Keep only the first `max_jobs` jobs by arrival; by default all.
    hours
        Keep only jobs that arrive in this half-open interval of hours after the first arrival.
    gangs
        Keep only jobs of these numbers of GPUs.
    split
        Shares of image, language and speech models, by which jobs get Synergy's models in place of the trace's.
    gpus
        The cluster: number of GPUs of each type (``{"V100": 36, "K80": 36}``).
    gpus_per_server
        GPUs of one server; the default depends on the format (4, and 8 for Synergy's traces).
    cpus_per_gpu, memory_gb_per_gpu
        CPUs and gigabytes of a server for each of its GPUs; 3 and 62.5 by default (Synergy's servers).
    throughputs
        Gavel's throughput table (JSON), for the rates of Gavel's job types.
    nodes
        Node list (CSV) of Alibaba's openb trace or of a log's servers, which defines the cluster.
    name
        Name of the instance; by default the format and the name of the file.
    history
        Whether to read when jobs started and ended, too; the cluster is then that of the log.
    columns
        Column names of a CSV log by meaning (``{"submit": "queued_at"}``).
    time_format, timezone
        Format of the times in a log (``%d.%m.%Y %H:%M``), and the zone of times without one (``Europe/Berlin``).
    resource
        Resource of a log of Slurm, PBS, LSF or Kubernetes that counts as GPUs: ``gpus``, ``cpus`` or ``nodes``; by
        default the first that it has.
    by_partition
        Whether each partition has its own GPUs.
    max_bad
        Largest percentage of rows that may be bad (unreadable or impossible); they are left out. One bad row is
        accepted, unless this is 0.
    """

    max_jobs: int | None = None
    hours: tuple[float, float] | None = None
    gangs: tuple[int, ...] = ()
    split: tuple[float, ...] = ()
    gpus: Mapping[str, int] | None = None
    gpus_per_server: int | None = None
    cpus_per_gpu: float | None = None
    memory_gb_per_gpu: float | None = None
    throughputs: Path | None = None
    nodes: Path | None = None
    name: str | None = None
    history: bool = False
    columns: Mapping[str, str] | None = None
    time_format: str | None = None
    timezone: str | None = None
    resource: str | None = None
    by_partition: bool = False
    max_bad: float = MAX_BAD


DEFAULTS = Options()


@dataclass(frozen=True)
class ImporterSpec:
    """A trace format.

    Parameters
    ----------
    layout
        Description of the format: columns, units, peculiarities, and how they are read.
    read
        ``read(rows, options)`` returns the instance of the file ``rows.path`` and notes what becomes of its rows
        (:class:`~schedgap.instances.importers.rows.FileRows`), or raises
        :class:`~schedgap.instances.errors.InstanceError`.
    recognise
        ``recognise(first_line)`` returns how many columns of this format the first line of a file has; 0 if the file
        does not have this format.
    history
        ``history(rows, options)`` is `read` including when jobs started and ended; ``None`` for traces without that.
    """

    id: str
    title: str
    layout: str
    source: str
    licence: str
    read: Callable[[FileRows, Options], Instance]
    recognise: Callable[[str], int]
    history: Callable[[FileRows, Options], Instance] | None = None


IMPORTERS: Registry[ImporterSpec] = Registry("importer")

REFERENCE = "V100"
"""GPU type on which durations count as recorded if the trace names none."""

NO_GPU = "they ask for 0 GPUs"
"""Reason to leave out jobs that run on CPUs only."""

MAX_GANG = 100_000
"""Largest gang that the schema takes."""

MAX_DURATION_S = 1e9
"""Longest run time, 31 years."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job as recorded in its trace; fields that the trace lacks are absent.

    Attributes
    ----------
    tenant
        Virtual cluster, user or job type; ``""`` if the trace has such a column but the field is empty.
    gpus_used
        GPUs by which the work is computed if the job shares a GPU (0.46 of one).
    gpu_type
        GPU type that the duration was recorded on.
    allowed
        GPU types that the job may use; empty for all.
    rates
        Recorded iterations/s of one GPU of each type.
    slo
        Deadline after arrival, in multiples of the time the job takes on the reference type.
    """

    id: str
    submit_s: float
    gpus: int
    tenant: str | None = None
    model: str | None = None
    iterations: int | None = None
    duration_s: float | None = None
    gpus_used: float | None = None
    gpu_type: str | None = None
    allowed: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    slo: float | None = None
    status: str | None = None


@dataclass(frozen=True)
class ImportedTrace:
    """A trace as read from its file; rules then fill in what it does not record, and make it an instance.

    Attributes
    ----------
    rows
        The fates of the file's rows.
    jobs
        Jobs in the order of the file.
    left_out
        Number of jobs left out by reason, in formats where a job is no row of the file.
    notes
        Decisions of the importer, one sentence each.
    tenants
        What the tenants are (``"virtual clusters"``), if the trace has them.
    gang_iterations
        Whether one iteration is a step of the whole gang, so that one GPU of a gang of four does a quarter of it.
    reference, suite
        GPU type that durations were recorded on if a job names none; suite of the catalogue in which models are looked
        up, by default the one named like the format.
    dated
        Whether arrivals are seconds since 1970, so that hours and days of the week are known.
    default_gpus, default_per_server
        Cluster if the user gives none: Gavel's simulated one, unless the format has its own.
    """

    format: str
    rows: FileRows
    jobs: Sequence[TraceJob]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tenants: str | None = None
    gang_iterations: bool = False
    reference: str = REFERENCE
    suite: str = ""
    default_gpus: Mapping[str, int] = field(default_factory=lambda: {"V100": 36, "P100": 36, "K80": 36})
    default_per_server: int = 4
    dated: bool = False


def import_trace(format: str, path: str | Path, options: Options = DEFAULTS) -> Instance:
    """Import a real trace as an instance.

    >>> sg.import_trace("philly", "cluster_job_log", sg.Options(max_jobs=500))  # doctest: +SKIP

    Returns
    -------
    Instance
        Jobs in the order of arrival, the first at 0 s, without a horizon. Each sentence of its `derived` says what was
        left out or filled in by rule. Rows that cannot be read or are impossible are left out, too.

    Raises
    ------
    UnknownNameError
        If there is no such format; the message suggests the closest names.
    UsageError
        If an option is out of range, contradicts another, or does not suit the format.
    InstanceError
        If the file cannot be read in that format, or more of its rows are bad than `max_bad` allows; the message names
        the file, line and field, and says what would be right.
    """
    return read_trace(format, path, options)[0]


def read_trace(format: str, path: str | Path, options: Options = DEFAULTS) -> tuple[Instance, FileRows]:
    """Return the instance of a real trace, and what became of each row of its file; see :func:`import_trace`."""
    spec = IMPORTERS.get(format)
    check_options(options, spec)
    if options.history and spec.history is None:
        raise UsageError(f"{spec.id}: traces of this format do not record when jobs started and ended")
    read = spec.history if options.history and spec.history else spec.read
    rows = FileRows(Path(path), options.max_bad)
    instance = read(rows, options)
    rows.close()
    return instance, rows


def check_options(options: Options, spec: ImporterSpec) -> None:
    """Raise `UsageError` on the first option that is out of range or contradicts another."""
    _check_jobs(options)
    if options.gpus_per_server is not None and not 1 <= options.gpus_per_server <= 10_000:
        raise UsageError(f"gpus_per_server = {options.gpus_per_server}: a server has 1 to 10000 GPUs")
    for name, value in (("cpus_per_gpu", options.cpus_per_gpu), ("memory_gb_per_gpu", options.memory_gb_per_gpu)):
        if value is not None and not 0 < value <= MAX_PER_GPU:
            raise UsageError(f"{name} = {value:g}: more than 0 and at most {MAX_PER_GPU:g} for each GPU of a server")
        if value is not None and options.nodes is not None:
            raise UsageError(f"{name} and nodes both describe the servers; give only one of them")
    if options.gpus is not None and options.nodes is not None:
        raise UsageError("gpus and nodes both describe the cluster; give only one of them")
    if options.gpus is not None and not options.gpus:
        raise UsageError("gpus = {}: a cluster has at least one GPU type, e.g. V100=36")
    for name, count in (options.gpus or {}).items():
        if (not name.strip() and not options.history) or len(name) > 200 or not name.isprintable():
            raise UsageError(f"gpus: {name!r} is not the name of a GPU type; write for example V100=36")
        if not 1 <= count <= MAX_GPUS:
            raise UsageError(f"gpus: {name} = {count}: give 1 to {MAX_GPUS} GPUs of a type, or omit the type")
    if options.throughputs is not None and spec.id != "gavel":
        raise UsageError(f"throughputs: the table is for Gavel's job types, which {spec.id} traces do not name")


def _check_jobs(options: Options) -> None:
    """Raise `UsageError` on the first option about jobs that is out of range."""
    if not 0 <= options.max_bad <= 100:
        raise UsageError(f"max_bad = {options.max_bad:g}: a percentage of rows, 0 to 100")
    if options.max_jobs is not None and options.max_jobs < 1:
        raise UsageError(f"max_jobs = {options.max_jobs}: keep at least one job")
    if options.hours is not None and not 0 <= options.hours[0] < options.hours[1]:
        raise UsageError("hours = {:g}, {:g}: two hours, 0 or more, the earlier first".format(*options.hours))
    if options.split and (len(options.split) != 3 or min(options.split) < 0 or sum(options.split) <= 0):
        raise UsageError(f"split = {options.split}: shares of image, language and speech models, such as 20,70,10")
    if options.history and (options.hours or options.gangs or options.split):
        raise UsageError("hours, gangs and split change the trace and cannot be combined with its history")
