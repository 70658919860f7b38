"""Run tasks on an existing Dask cluster, under the same limits, each in a separate process that can be killed.

Start workers with Dask's own tools (``dask worker tcp://…``, or its clients for Slurm, Kubernetes and SSH), with the
same version of this project installed, and with one thread each (``--nthreads 1``): every thread occupies a core.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schedgap.harness.engine.environment import code_digest
from schedgap.harness.engine.pool import Worker
from schedgap.harness.engine.task import InstanceTask, R, Task
from schedgap.harness.show.text import clean
from schedgap.instances import views  # noqa: F401 -- registers the papers, which plug-ins name
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import Plugin, dumps, loaded, restore

if TYPE_CHECKING:
    from distributed import Client

ADDRESS = re.compile(r"(tcp|tls|ucx|wss?)://[^\s/]+:\d+")
"""Form of a scheduler's address; Dask would spend a long time resolving others."""

CONNECT_S = 10.0
"""Seconds within which the scheduler must answer."""

WORKERS_S = 30.0
"""Seconds within which the first worker must join."""


def connect(address: str) -> Client:
    """Return a client of this scheduler; raise `UsageError` if Dask, the scheduler or its workers are missing."""
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--dask needs Dask: pip install 'schedgap[dask]'") from error
    if not ADDRESS.fullmatch(address):
        raise UsageError(f"--dask {address}: expected the address of a scheduler, such as tcp://host:8786")
    # Dask logs lost connections line by line; here they become failed rows, or one last message.
    for name in ("distributed", "distributed.client"):  # Dask sets a separate level for the second
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = clean(error, 200) or type(error).__name__
        raise UsageError(f"--dask {address}: no Dask scheduler answers there: {reason}") from error
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError as error:
        client.close()
        how = f"start one with: dask worker {address} --nthreads 1"
        raise UsageError(f"--dask {address}: no worker joined within {WORKERS_S:g} s; {how}") from error
    return client


class DaskCluster:
    """Workers of the Dask cluster at this scheduler address (:func:`connect`)."""

    def __init__(self, address: str) -> None:
        self.client = connect(address)

    def run(self, tasks: Iterable[Task[R]]) -> Iterator[R]:
        """Run tasks and yield one result per task, as they finish.

        If a worker dies, its tasks run elsewhere. A task becomes a failed row if several workers died on it (Dask's
        setting ``distributed.scheduler.allowed-failures``, 3), or if the scheduler was lost.
        """
        from distributed import as_completed

        submit = self.client.submit
        plugins = submit(tuple, loaded(), pure=False)  # sent once to each worker, not with each task
        instances: dict[str, Any] = {}  # likewise
        futures = {}
        for task in tasks:
            packed, sent = None, dumps(task.alone() if isinstance(task, InstanceTask) else task)
            if isinstance(task, InstanceTask):
                if task.fingerprint not in instances:
                    instances[task.fingerprint] = submit(bytes, task.packed, pure=False)
                packed = instances[task.fingerprint]
            options: dict[str, Any] = {"key": f"schedgap-{task.key}", "pure": False, "retries": 0}
            futures[submit(run_remotely, plugins, sent, packed, **options)] = task
        for future in as_completed(futures, loop=self.client.loop):
            task = futures[future]
            try:
                result: R = pickle.loads(future.result())
            except (Exception, asyncio.CancelledError) as error:  # whatever the cluster raises is a row, as in the pool
                reason = clean(f"{type(error).__name__}: {error}", 240)
                result = task.failed("error", f"lost on the cluster: {reason}")
            yield result
            future.release()

    def close(self) -> None:
        """Disconnect from the cluster, which then drops the tasks that have not run."""
        self.client.close()


def run_remotely(plugins: Sequence[Plugin], content: bytes, packed: bytes | None = None) -> bytes:
    """Run a pickled task on a worker of the cluster, in a process of its own with limits; return the pickled result.

    The instance of a task that comes without it is `packed`.
    """
    restore(plugins)
    task: Task[Any] = pickle.loads(content)
    if packed is not None and isinstance(task, InstanceTask):
        task = replace(task, packed=packed)
    if code_digest() != task.code:
        return dumps(task.failed("error", f"the worker runs other code ({code_digest()}, expected {task.code})"))
    key = type(task).__module__, task.limits.threads, tuple(plugins)
    # Dask's workers are daemons, which may not start processes because those could outlive them; ours end with them.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    worker = _idle[key].pop() if _idle[key] else Worker(*key)
    worker.give(task)
    result = worker.finish()
    if not worker.pipe.closed:
        _idle[key].append(worker)
    return dumps(result)


_idle: defaultdict[Any, list[Worker]] = defaultdict(list)
"""Idle processes of this Dask worker, by module, threads and plug-ins; they end with the worker."""
