"""Tasks on an existing Dask cluster: the same tasks, the same limits, each in a process of its own that can be killed.

Workers come from Dask's own tools (``dask worker tcp://…``, or its clients for Slurm, Kubernetes and SSH) and need the
same version of this project. One thread per worker is right (``--nthreads 1``): a thread occupies a core.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from schedgap.harness.engine.pool import Worker
from schedgap.harness.engine.task import R, Task
from schedgap.harness.environment import code_digest
from schedgap.harness.text import clean
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import Plugin, dumps, loaded, restore

if TYPE_CHECKING:
    from distributed import Client

ADDRESS = re.compile(r"(tcp|tls|ucx|wss?)://[^\s/]+:\d+")
"""Addresses of schedulers; Dask would look for others for a long time."""

CONNECT_S = 10.0
"""Seconds in which the scheduler must answer."""

WORKERS_S = 30.0
"""Seconds in which the first worker must have joined."""


def connect(address: str) -> Client:
    """Return a client of the cluster at this address; raise `UsageError` without Dask, or if nobody answers there."""
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--dask needs the extra packages of pip install 'schedgap[dask]'") from error
    if not ADDRESS.fullmatch(address):
        raise UsageError(f"--dask {address}: a scheduler's address is written as tcp://host:8786")
    # What it has to say about lost connections, it says in lines of the log; here they are rows and one last line.
    for name in ("distributed", "distributed.client"):  # Dask gives the second a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"--dask {address}: no Dask scheduler answers there: {why}") from error
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError as error:
        client.close()
        how = f"start one with: dask worker {address} --nthreads 1"
        raise UsageError(f"--dask {address}: no worker has joined within {WORKERS_S:g} s; {how}") from error
    return client


class Cluster:
    """The workers of the cluster whose scheduler has this address (:func:`connect`)."""

    def __init__(self, address: str) -> None:
        self.client = connect(address)

    def run(self, tasks: Iterable[Task[R]]) -> Iterator[R]:
        """Run tasks and yield each result as it finishes, each task's once.

        A worker that dies has its tasks run elsewhere; a task on which several workers died (Dask's setting
        ``distributed.scheduler.allowed-failures``, 3) is a failed row, and so are those lost with the scheduler.
        """
        from distributed import as_completed

        submit = self.client.submit
        given = submit(tuple, loaded(), pure=False)  # travels once to each worker, not with each task
        futures = {
            submit(run_remotely, given, dumps(task), key=f"schedgap-{task.key}", pure=False, retries=0): task
            for task in tasks
        }
        for future in as_completed(futures, loop=self.client.loop):
            task = futures[future]
            try:
                result: R = pickle.loads(future.result())
            except (Exception, asyncio.CancelledError) as error:  # whatever the cluster raises is a row, as in the pool
                what = clean(f"{type(error).__name__}: {error}", 240)
                result = task.failed("error", f"lost on the cluster: {what}")
            yield result
            future.release()

    def close(self) -> None:
        """Leave the cluster, which takes back what has not run."""
        self.client.close()


def run_remotely(given: Sequence[Plugin], content: bytes) -> bytes:
    """Run a pickled task on a worker of the cluster, in a process of its own under its limits; pickle its result."""
    restore(given)
    task: Task[Any] = pickle.loads(content)
    if code_digest() != task.code:
        return dumps(task.failed("error", f"the worker runs other code ({code_digest()}, wanted: {task.code})"))
    key = type(task).__module__, task.limits.threads, tuple(given)
    # Dask's workers are daemons, which may have no children, lest those outlive them; ours end with their parent.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    worker = _idle[key].pop() if _idle[key] else Worker(*key)
    worker.give(task)
    result = worker.result()
    if not worker.pipe.closed:
        _idle[key].append(worker)
    return dumps(result)


_idle: defaultdict[Any, list[Worker]] = defaultdict(list)
"""Processes of this worker of the cluster that do nothing just now, by what they are for; they end with it."""
