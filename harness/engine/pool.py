"""A process pool with a wall-clock limit and a memory cap per task, where a dead worker is one failed result."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import sysconfig
import threading
import time
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from schedgap.harness.engine.task import R, Task
from schedgap.harness.environment import cores, held_mb, memory_capped
from schedgap.harness.text import clean
from schedgap.instances.plugins import Plugin, dumps, loaded, restore


def workers_for(jobs: int, threads: int) -> int:
    """Return how many workers to start: `jobs`, or as many as fit where 0; never more workers × threads than cores."""
    fitting = max(1, cores() // threads)
    return min(jobs or fitting, fitting)


class Pool:
    """Worker processes, `jobs` at once (0: as many as there are cores), that stay from one stage of tasks to the next.

    They are forked from a clean server process, because forking a process with running threads can deadlock.
    """

    def __init__(self, jobs: int = 0) -> None:
        self.jobs = jobs
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []

    def run(self, tasks: Iterable[Task[R]]) -> Iterator[R]:
        """Run tasks, each taken when a worker can have it, and yield each result as it finishes."""
        waiting = iter(tasks)
        task = next(waiting, None)
        while task or self._busy:
            while task:
                most = max(one.limits.threads for one in (task, *(worker.task for worker in self._busy)))
                if len(self._busy) >= workers_for(self.jobs, most):
                    break
                kind = type(task).__module__, task.limits.threads
                self._busy.append(self._idle.pop() if self._idle else Worker(*kind, loaded()))
                self._busy[-1].give(task)
                task = next(waiting, None)
            wait_s = max(0.0, min(worker.left_s for worker in self._busy))
            connection.wait([worker.pipe for worker in self._busy], wait_s)
            for worker in [worker for worker in self._busy if worker.left_s <= 0 or worker.pipe.poll()]:
                result = worker.result()
                self._busy.remove(worker)
                if not worker.pipe.closed:
                    self._idle.append(worker)
                yield result

    def close(self) -> None:
        """Stop all workers, also in the middle of a task."""
        for worker in (*self._idle, *self._busy):
            worker.stop()


class Worker:
    """A worker process with these plug-ins, and a pipe to it.

    Workers share no queue and no lock, so that whoever kills one at any moment harms one task. Pools of the libraries
    that were tried share a channel: in 2 of 62 kills its lock died with the worker, and the run ended after 121 s.
    """

    pipe: Connection
    task: Task[Any]
    until: float

    def __init__(self, module: str, threads: int, given: Sequence[Plugin]) -> None:
        pressed: list[int] = []
        for attempt in range(STARTS):
            try:
                # Ctrl-C waits: an interrupted start would leave the server in the middle of a sentence
                with _on_ctrl_c(lambda number, frame: pressed.append(number)), _without_main():
                    start_server(module, threads)
                    self.pipe, theirs = _CONTEXT.Pipe()
                    self.process = _CONTEXT.Process(target=_serve, args=(theirs, tuple(given)), daemon=True)
                    self.process.start()
                    theirs.close()
                if pressed:
                    raise KeyboardInterrupt
                break
            except (OSError, EOFError):  # the server was killed just now; the next start finds a new one
                if attempt == STARTS - 1:
                    raise

    @property
    def left_s(self) -> float:
        """Seconds until its task has run too long."""
        return self.until - time.monotonic()

    def give(self, task: Task[Any]) -> None:
        """Hand it a task."""
        self.task, self.until = task, time.monotonic() + task.hard_limit_s
        with suppress(OSError):  # it is dead, which its result will say
            self.pipe.send_bytes(dumps(task))

    def result(self) -> Any:
        """Return what comes of its task, or that it took too long, or that nothing will come any more."""
        try:
            if self.pipe.poll(max(0.0, self.left_s)):
                result = pickle.loads(self.pipe.recv_bytes())
                if held_mb(self.process.pid) > SPENT * self.task.limits.memory_mb:
                    self.stop()
                return self.task.failed(*result) if isinstance(result, Failure) else result
            reason = "time limit without incumbent", f"killed after {self.task.hard_limit_s:.4g} s of wall-clock time"
        except (EOFError, OSError):
            self.process.join(1.0)
            code = self.process.exitcode
            killed = f"{signal.Signals(-code).name}: out of memory, or killed from outside" if code and code < 0 else ""
            reason = "error", f"the worker died ({killed or f'exit code {code}'})"
        self.stop()
        return self.task.failed(*reason)

    def stop(self) -> None:
        """End it, and what it has started, at once."""
        self.pipe.close()
        for end in (os.kill, os.killpg):  # Process.kill() does nothing once the server is dead
            with suppress(OSError, TypeError):
                end(self.process.pid, signal.SIGKILL)  # type: ignore[arg-type]


STARTS = 3
"""Times that a worker is started before giving up."""

SPENT = 0.5
"""Share of the cap on memory; a worker that keeps more of it after a task gets no other.

Of 1,593 tasks of Zhou's figures, five ran out of 4 GiB in workers that had done hundreds; alone, each takes 0.7 GiB.
"""


class Failure(NamedTuple):
    """Status and reason of a task that came to nothing in its worker."""

    status: str
    reason: str


def _serve(pipe: Connection, given: Sequence[Plugin]) -> None:
    """Run the tasks that come through a pipe, until it is closed.

    Ctrl-C and standard output are left to the main process, which it does not outlive (a solve would run to its limit).
    Nor does a program that it starts: that is in its group of processes, which ends as a whole.
    """
    os.setpgid(0, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_main, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes(), given))


def _answer(content: bytes, given: Sequence[Plugin]) -> bytes:
    """Return the pickled result of a pickled task, or the failure of one that came to nothing.

    The cap on memory is lifted after it has run, so that a worker which ran out of memory can still say so.
    """
    try:
        restore(given)
        task: Task[Any] = pickle.loads(content)
        try:
            with memory_capped(task.limits.memory_mb):
                result = task.run()
        except MemoryError:
            result = Failure("out of memory", f"more than the cap of {task.limits.memory_mb} MB")
        return dumps(result)
    except BaseException as error:  # a plug-in that cannot be loaded, a result that cannot travel, a method that exits
        return dumps(Failure("error", clean(f"{type(error).__name__}: {error}", 300)))


def _end_with_main() -> None:
    if main := multiprocessing.parent_process():  # os.getppid() is the server, which lives as long as its workers do
        main.join()
        os.killpg(0, signal.SIGKILL)


@contextmanager
def _without_main() -> Iterator[None]:
    """Put an empty main module and a safe path in place of the user's, for processes that start within the block.

    Tasks need nothing of the main module. Otherwise a plain script that calls :func:`schedgap.compare` would run itself
    again in every worker; a program read from standard input, or a notebook after ``%reset``, could not be imported.

    The path is without the working directory and the folder of the script that runs: a folder with somebody's instances
    may hold a ``numpy.py``, which workers would execute. The folder that this package is in stays, and so does that of
    the installed packages, in which the script that runs a notebook's kernel lies.
    """
    main, path = sys.modules["__main__"], sys.path
    ours = {os.path.realpath(Path(__file__).parents[3]), *map(os.path.realpath, sysconfig.get_paths().values())}
    strange = {os.getcwd(), os.path.realpath(os.path.dirname(sys.argv[0]))} - ours
    safe = [entry for entry in path if os.path.realpath(entry) not in strange]
    sys.modules["__main__"], sys.path = types.ModuleType("__main__"), safe
    try:
        yield
    finally:
        sys.modules["__main__"], sys.path = main, path


_CONTEXT = multiprocessing.get_context("forkserver")

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that numpy's linear algebra reads when it is loaded."""


def stop_server() -> None:
    """End the server at once where no task will run, even while it imports: a pipe that it writes to stays open."""
    if server := getattr(forkserver._forkserver, "_forkserver_pid", None):
        os.kill(server, signal.SIGTERM)


def start_server(module: str, threads: int) -> None:
    """Start the process that workers are forked from, unless it runs already; it imports `module` meanwhile.

    Workers inherit what it is: deaf to Ctrl-C, which a terminal sends to all processes of a command, and with so many
    threads of linear algebra. With as many as cores in every worker, checks of runs of 2000 jobs took 0.4 to 3.1 s
    instead of 0.2 to 0.4 s. Python puts the working directory first on the path of the server and of the tracker of
    resources that it starts before, unless it is asked for a safe path.
    """
    asked = {name: str(threads) for name in BLAS_THREADS if name not in os.environ} | {"PYTHONSAFEPATH": "1"}
    # Held back by a mask instead, Ctrl-C would reach threads that numpy has started, and interrupt all the same.
    with _on_ctrl_c(signal.SIG_IGN), _without_main():
        before = {name: value for name, value in os.environ.items() if name in asked}
        os.environ.update(asked)
        try:
            forkserver.set_forkserver_preload([f"{__package__}.server", module, f"{__package__}.warm"])
            forkserver.ensure_running()
        finally:
            for name in asked:
                del os.environ[name]
            os.environ.update(before)


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
