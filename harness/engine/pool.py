"""A process pool with a wall-clock limit and a memory cap per task, where a dead worker is one failed result."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
import signal
import sys
import sysconfig
import threading
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from schedgap.harness.engine.task import R, Task
from schedgap.harness.environment import cores
from schedgap.harness.text import clean
from schedgap.instances.plugins import Plugin, dumps, loaded, restore


def workers_for(jobs: int, threads: int) -> int:
    """Return how many workers to start: `jobs`, or as many as fit where 0; never more workers × threads than cores."""
    fitting = max(1, cores() // threads)
    return fitting if jobs == 0 else min(jobs, fitting)


def run_all(tasks: Iterable[Task[R]], jobs: int = 0) -> Iterator[R]:
    """Run tasks in worker processes and yield each result as it finishes.

    Parameters
    ----------
    tasks
        Tasks of one run; the one with the most threads sizes the pool.
    jobs
        Worker processes; 0 for as many as there are cores.

    Notes
    -----
    Workers are forked from a clean server process (``forkserver``), because forking a process with running threads
    can deadlock. Closing the generator, as Ctrl-C does, stops all workers.
    """
    tasks = list(tasks)
    if not tasks:
        return
    threads = max(task.limits.threads for task in tasks)
    pool = started(min(workers_for(jobs, threads), len(tasks)), threads, type(tasks[0]).__module__)
    finished = False
    try:
        with _ctrl_c_later():
            # The first call starts the workers; one that is interrupted then finds its semaphores gone, and says so.
            futures = {submit(pool, task): task for task in tasks}
        while futures:
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                yield result_of(future, futures.pop(future))
        finished = True
    finally:
        pool.close() if finished else pool.stop()
        pool.join()


def started(workers: int, threads: int, module: str) -> ProcessPool:
    """Return a pool whose workers run so many threads each; they have imported `module` when they start."""
    context = _Context()
    context.set_forkserver_preload([module])
    _start_fork_server(threads)
    return ProcessPool(max_workers=workers, initializer=_settle_worker, context=context)


def submit(pool: ProcessPool, task: Task[R]) -> Any:
    """Hand a task to a pool; the future goes to :func:`result_of`."""
    return pool.schedule(run_packed, args=packed(task), timeout=task.hard_limit_s)


def packed(task: Task[Any]) -> tuple[tuple[Plugin, ...], bytes]:
    """Return a task as it travels: what it is made of may be defined by the plug-ins, which are loaded first."""
    return loaded(), dumps(task)


def unpacked(given: Sequence[Plugin], content: bytes) -> Task[Any]:
    """Return the task that :func:`packed` packed, in a process of its own with the same plug-ins."""
    restore(given)
    task: Task[Any] = pickle.loads(content)
    return task


def run_packed(given: Sequence[Plugin], content: bytes) -> bytes:
    """Run a task in a worker and return its pickled result."""
    try:
        return dumps(run_capped(unpacked(given, content)))
    except Exception:
        raise
    except BaseException as error:  # a method that exits ends neither its worker nor the run
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


class _Process(ForkServerProcess):
    """A worker that does not import the user's main module, and looks for modules on a safe path.

    Tasks need nothing of the main module. Otherwise a plain script that calls :func:`schedgap.harness.compare` would
    run itself again in every worker, and a program read from standard input could not be imported at all.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        main, path = sys.modules["__main__"], sys.path
        sys.modules["__main__"], sys.path = types.ModuleType("__main__"), safe_path()
        try:
            return ForkServerProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"], sys.path = main, path


class _Context(ForkServerContext):
    Process = _Process


ROOT = os.path.realpath(Path(__file__).parents[3])
"""Folder that this package was imported from."""


def safe_path() -> list[str]:
    """Return the path of modules without the working directory and the folder of the script that runs.

    A folder with somebody's instances may hold a ``numpy.py``; workers would execute it. The folder that this package
    is in stays, and so does that of the installed packages, in which the script that runs a notebook's kernel lies.
    """
    ours = {ROOT, *map(os.path.realpath, sysconfig.get_paths().values())}
    strange = {os.getcwd(), os.path.realpath(os.path.dirname(sys.argv[0]))} - ours
    return [entry for entry in sys.path if os.path.realpath(entry) not in strange]


BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that numpy's linear algebra reads when it is loaded."""


def _start_fork_server(threads: int) -> None:
    """Start the server, whose workers inherit what it is: deaf to Ctrl-C, and with so many threads of linear algebra.

    A terminal sends Ctrl-C to all processes of a command. With as many threads as cores in every worker, checks of
    runs of 2000 jobs took 0.4 to 3.1 s instead of 0.2 to 0.4 s. Python puts the working directory first on the path of
    the server and of the tracker of resources that it starts before, unless it is asked for a safe path.
    """
    asked = {name: str(threads) for name in BLAS_THREADS if name not in os.environ} | {"PYTHONSAFEPATH": "1"}
    # Held back by a mask instead, Ctrl-C would reach threads that numpy has started, and interrupt all the same.
    with _environment(asked), _on_ctrl_c(signal.SIG_IGN):
        forkserver.ensure_running()


@contextmanager
def _environment(asked: Mapping[str, str]) -> Iterator[None]:
    """Set variables that processes started within the block inherit."""
    before = dict(os.environ)
    os.environ.update(asked)
    try:
        yield
    finally:
        for name in asked:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in asked if name in before})


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Let Ctrl-C wait until the block has ended."""
    pressed: list[int] = []
    with _on_ctrl_c(lambda number, frame: pressed.append(number)):
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def _on_ctrl_c(handler: Any) -> Iterator[None]:
    """Handle Ctrl-C in another way; only the main thread hears of it at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _settle_worker() -> None:
    """Leave Ctrl-C and standard output to the main process, and do not outlive it (a solve would run to its limit)."""
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_main, daemon=True).start()


def _end_with_main() -> None:
    # Not os.getppid(): a forked worker's parent is the fork server, which lives as long as its workers do.
    main = multiprocessing.parent_process()
    if main is not None:
        main.join()
        os._exit(1)


def run_capped(task: Task[R]) -> R:
    """Run a task under its memory cap: an allocation beyond it fails, and the result says so.

    The cap is lifted afterwards, so that a worker which ran out of memory can still say so.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    cap = task.limits.memory_mb * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (cap if hard == resource.RLIM_INFINITY else min(cap, hard), hard))
    try:
        return task.run()
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def result_of(future: Any, task: Task[R]) -> R:
    """Return the task's result, or that of a task whose worker was killed or died."""
    try:
        result: R = pickle.loads(future.result())
    except FutureTimeout:
        reason = f"killed after {task.hard_limit_s:g} s of wall-clock time"
        return task.failed("time limit without incumbent", reason)
    except ProcessExpired as death:
        return task.failed("error", f"the worker died ({_cause(death.exitcode)})")
    except MemoryError:
        return task.failed("out of memory", f"more than the cap of {task.limits.memory_mb} MB")
    except CancelledError:
        return task.failed("error", "cancelled")
    except Exception as error:  # a plug-in that a worker cannot load, a result that cannot travel
        return task.failed("error", clean(f"{type(error).__name__}: {error}", 300))
    return result


def _cause(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"{signal.Signals(-exitcode).name}: out of memory, or killed from outside"
    return f"exit code {exitcode}"
