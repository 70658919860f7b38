"""A process pool with a time limit and a memory cap per task, in which a dead worker fails only its own task."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import sys
import sysconfig
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from schedgap.harness.engine.environment import cores, held_mb, memory_capped, waited_for_core_s
from schedgap.harness.engine.pacing import Asking, Pacer, listen
from schedgap.harness.engine.task import InstanceTask, R, Task
from schedgap.harness.show.text import clean
from schedgap.instances import clock
from schedgap.instances.plugins import Plugin, dumps, loaded, restore


def workers_for(jobs: int, threads: int) -> int:
    """Return the number of workers: `jobs`, or if 0 as many as fit; workers × threads never exceed the cores."""
    fitting = max(1, cores() // threads)
    return min(jobs or fitting, fitting)


class Pool:
    """A pool of at most `jobs` worker processes (0: one per core), which are reused for the next stage of tasks.

    They are forked from a clean server process, because forking a process with running threads can deadlock. `tell` is
    called once with what a user should know if a worker must compile before it can begin, and `progress` with each
    search that asks for more seconds, and its gap. A worker that asks occupies no processor until it is answered.
    """

    def __init__(
        self,
        jobs: int = 0,
        tell: Callable[[str], None] = lambda text: None,
        progress: Callable[[Any, float], None] = lambda task, gap: None,
    ) -> None:
        self.jobs, self._tell, self._progress = jobs, tell, progress
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []
        self._asking: dict[str, Worker] = {}
        self._pacer = Pacer()

    def run(self, tasks: Iterable[Task[R]]) -> Iterator[R]:
        """Run tasks and yield results as they finish; the next task is drawn only when a worker can take it."""
        waiting = iter(tasks)
        task = next(waiting, None)
        while task or self._busy or self._asking:
            while task or self._asking:
                ahead = [task] if task else [worker.task for worker in self._asking.values()]
                threads = max(one.limits.threads for one in (*ahead, *(worker.task for worker in self._busy)))
                workers = workers_for(self.jobs, threads)
                if len(self._busy) >= workers:
                    break
                if task is None:
                    self._answer(workers)
                    continue
                kind = type(task).__module__, task.limits.threads
                self._busy.append(self._idle.pop() if self._idle else Worker(*kind, loaded()))
                self._busy[-1].give(task)
                task = next(waiting, None)
            wait_s = max(0.0, min(worker.left_s for worker in self._busy))
            connection.wait([worker.pipe for worker in self._busy], min(wait_s, LONGEST_WAIT_S))
            for worker in [worker for worker in self._busy if worker.left_s <= 0 or worker.pipe.poll()]:
                if isinstance(news := worker.news(), Compiling):
                    self._pacer.compiles(worker.task.key, news.begins)
                    self._tell(COMPILING)
                    self._tell = lambda text: None
                    continue
                self._busy.remove(worker)
                if isinstance(news, Asking):
                    self._asking[worker.task.key] = worker
                    self._pacer.note(worker.task.key, news.gap)
                    self._progress(worker.task, news.gap)
                    continue
                self._pacer.compiles(worker.task.key, begins=False)
                result = worker.result()
                if not worker.pipe.closed:
                    self._idle.append(worker)
                yield result

    def _answer(self, workers: int) -> None:
        """Answer the most promising of the searches that ask: it goes on or, once the run's time is used, ends."""
        worker = self._asking.pop(key := self._pacer.next([*self._asking]))
        searching = [one.task.key for one in self._busy if one.task.limits.run_s is not None]
        run_s = worker.task.limits.run_s or 0.0
        worker.grant(self._pacer.seconds(key, run_s, [*self._asking, *searching], workers))
        self._busy.append(worker)

    def close(self) -> None:
        """Stop all workers, even in the middle of a task."""
        for worker in (*self._idle, *self._busy, *self._asking.values()):
            worker.stop()


class Worker:
    """A worker process with these plug-ins, and a pipe to it.

    Workers share no queue and no lock, so killing one at any moment harms a single task. In pools with a shared
    channel, a killed worker may take the channel's lock with it, and the run hangs.
    """

    pipe: Connection
    task: Task[Any]
    until: float
    since: float | None = None
    """Time at which the worker began to compile or to ask; until that ends, its task's time limit stands still."""

    answer: Any = None

    has = ""
    """Fingerprint of the last instance that the worker received."""

    waited_s = 0.0
    """Seconds that the worker had waited for a processor before it got its present task."""

    def __init__(self, module: str, threads: int, plugins: Sequence[Plugin]) -> None:
        for attempt in range(STARTS):
            try:
                # An interrupted start would leave the server mid-message.
                with delayed_ctrl_c(), _without_main():
                    start_server(module, threads)
                    self.pipe, theirs = _CONTEXT.Pipe()
                    self.process = _CONTEXT.Process(target=_serve, args=(theirs, tuple(plugins)), daemon=True)
                    self.process.start()
                    theirs.close()
                break
            except (OSError, EOFError):  # the server was killed; the next attempt starts a new one
                if attempt == STARTS - 1:
                    raise

    @property
    def left_s(self) -> float:
        """Seconds left until the time limit of the worker's task; infinite while the worker compiles or asks.

        Time in which the worker waited for a processor does not count.
        """
        waited_s = max(0.0, waited_for_core_s(self.process.pid) - self.waited_s)
        return math.inf if self.since is not None else self.until + waited_s - time.monotonic()

    def give(self, task: Task[Any]) -> None:
        """Send a task to the worker."""
        self.task, self.until = task, time.monotonic() + task.hard_limit_s
        self.since, self.answer, self.waited_s = None, None, waited_for_core_s(self.process.pid)
        about = task if isinstance(task, InstanceTask) else None
        with suppress(OSError):  # the worker is dead, which `result` reports
            self.pipe.send_bytes(dumps(about.alone() if about and about.fingerprint == self.has else task))
        self.has = about.fingerprint if about else self.has

    def news(self) -> Compiling | Asking | None:
        """Read what the worker sent, if anything; return it if it is news, and keep it if it is a result."""
        with suppress(EOFError, OSError):  # the worker is dead, which `result` reports
            if self.pipe.poll():
                self.answer = pickle.loads(self.pipe.recv_bytes())
        if not isinstance(self.answer, Compiling | Asking):
            return None
        news, self.answer = self.answer, None
        self._stand_still(isinstance(news, Asking) or news.begins)
        return news

    def _stand_still(self, still: bool) -> None:
        now, began = time.monotonic(), self.since
        self.since = now if still else None
        self.until += now - began if began is not None else 0.0

    def grant(self, seconds: float) -> None:
        """Answer the worker's search, which asks for time: it goes on for some seconds of computing, or ends with 0."""
        self._stand_still(False)
        self.until += (clock.STRETCH + 1) * seconds
        with suppress(OSError):  # the worker is dead, which `result` reports
            self.pipe.send_bytes(dumps(seconds))

    def finish(self) -> Any:
        """Wait for the result of the worker's task; a search that asks for more seconds gets none."""
        while self.pipe.poll(max(0.0, min(self.left_s, LONGEST_WAIT_S))) and (news := self.news()):
            if isinstance(news, Asking):
                self.grant(0.0)
        return self.result()

    def result(self) -> Any:
        """Return the result of the worker's task, or a failed one if the task took too long or the worker is dead."""
        try:
            if self.answer is None and self.pipe.poll(max(0.0, self.left_s)):
                self.answer = pickle.loads(self.pipe.recv_bytes())
            if self.answer is not None:
                result = self.answer
                if held_mb(self.process.pid) > SPENT * self.task.limits.memory_mb:
                    self.stop()
                if isinstance(result, Failure):
                    self.has = ""
                    return self.task.failed(*result)
                return result
            reason = "time limit without incumbent", f"killed after {self.task.hard_limit_s:.4g} s{NOT_COUNTED}"
        except (EOFError, OSError):
            self.process.join(1.0)
            code = self.process.exitcode
            end = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
            cause = ": out of memory, or killed from outside" if end == "SIGKILL" else ""
            reason = "error", f"the worker died ({end}{cause})"
        self.stop()
        return self.task.failed(*reason)

    def stop(self) -> None:
        """Kill the worker at once, together with the processes that it started."""
        self.pipe.close()
        for kill in (os.kill, os.killpg):  # Process.kill() does nothing once the server is dead
            with suppress(OSError, TypeError):
                kill(self.process.pid, signal.SIGKILL)  # type: ignore[arg-type]


NOT_COUNTED = ", not counted when it waited for a processor"
"""Words about the time that the limit of a task leaves out."""

STARTS = 3
"""Attempts to start a worker."""

SPENT = 0.5
"""Fraction of the memory cap; a worker that still holds more than this after a task is replaced.

Otherwise tasks that need little memory run out of it in workers that have run hundreds of tasks before.
"""


class Compiling(NamedTuple):
    """News from a worker: it `begins` to compile inner loops, or has compiled them."""

    begins: bool


COMPILING = "compiling inner loops, once: this takes one or two minutes, and counts towards no time limit"

NEWS_S = 0.5
"""Seconds of compilation after which a worker reports it; kernels that are compiled already load in less."""

LONGEST_WAIT_S = 3600.0
"""Seconds that the pool waits for its workers at a time: the operating system takes no infinite number."""


class Failure(NamedTuple):
    """Status and reason of a task that failed in its worker."""

    status: str
    reason: str


def _serve(pipe: Connection, plugins: Sequence[Plugin]) -> None:
    """Run the tasks that arrive through a pipe, until it is closed.

    Ctrl-C and standard output are left to the main process. When the main process ends, the worker's process group is
    killed: the worker, which would otherwise solve on to its limit, and the programs that it started.
    """
    os.setpgid(0, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_main, daemon=True).start()
    sending = threading.Lock()

    def send(content: bytes) -> None:
        with sending:
            pipe.send_bytes(content)

    def ask(news: Asking) -> float:
        send(dumps(news))
        granted: float = pickle.loads(pipe.recv_bytes())
        return granted

    listen(ask)
    threading.Thread(target=_tell_of_compiling, args=(send,), daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            send(_answer(pipe.recv_bytes(), plugins))


def _tell_of_compiling(send: Callable[[bytes], None]) -> None:
    with suppress(OSError):
        while True:
            time.sleep(NEWS_S)
            if clock.compiling_s() > NEWS_S:
                send(dumps(Compiling(True)))
                while clock.compiling_s():
                    time.sleep(NEWS_S / 10)
                send(dumps(Compiling(False)))


def _answer(content: bytes, plugins: Sequence[Plugin]) -> bytes:
    """Run a pickled task and return its pickled result or `Failure`.

    The memory cap is lifted after the run, so that a worker that ran out of memory can still report it.
    """
    try:
        restore(plugins)
        task: Task[Any] = pickle.loads(content)
        del content  # with the instance, it may be large
        try:
            with memory_capped(task.limits.memory_mb):
                task = task.received()
                result = task.run()
        except MemoryError:
            result = Failure("out of memory", f"more than the cap of {task.limits.memory_mb} MB")
        return dumps(result)
    except BaseException as error:  # a plug-in that fails to load, a result that fails to pickle, a method that exits
        return dumps(Failure("error", clean(f"{type(error).__name__}: {error}", 300)))


def _end_with_main() -> None:
    if main := multiprocessing.parent_process():  # os.getppid() is the server, which lives as long as its workers
        main.join()
        os.killpg(0, signal.SIGKILL)


@contextmanager
def _without_main() -> Iterator[None]:
    """Replace the user's main module and path, for processes that start within the block.

    The main module is replaced by an empty one, because tasks do not need it. Otherwise a plain script that calls
    :func:`schedgap.compare` would run itself again in every worker, and a program read from standard input, or a
    notebook after ``%reset``, could not be imported.

    The path omits the working directory and the folder of the running script: a folder with instances may contain a
    ``numpy.py``, which workers would execute. It keeps the folder of this package and those of installed packages,
    where the script that runs a notebook's kernel is.
    """
    main, path = sys.modules["__main__"], sys.path
    ours = {os.path.realpath(Path(__file__).parents[3]), *map(os.path.realpath, sysconfig.get_paths().values())}
    unsafe = {os.getcwd(), os.path.realpath(os.path.dirname(sys.argv[0]))} - ours
    safe = [entry for entry in path if os.path.realpath(entry) not in unsafe]
    sys.modules["__main__"], sys.path = types.ModuleType("__main__"), safe
    try:
        yield
    finally:
        sys.modules["__main__"], sys.path = main, path


_CONTEXT = multiprocessing.get_context("forkserver")

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables from which numpy's linear algebra reads its number of threads when it is loaded."""


def stop_server() -> None:
    """Stop the server, even while it imports, if no task will run: it would hold pipes of this command open."""
    if server := getattr(forkserver._forkserver, "_forkserver_pid", None):
        os.kill(server, signal.SIGTERM)


def start_server(module: str, threads: int) -> None:
    """Start the server that workers are forked from, unless it runs already; it imports `module` in the background.

    Workers inherit its settings. It ignores Ctrl-C, which a terminal sends to all processes of a command. Its linear
    algebra uses `threads` threads; with a thread per core in every worker, threads would compete for the cores.
    PYTHONSAFEPATH is set because Python would otherwise put the working directory first on the path of the server, and
    of the resource tracker that starts before it.
    """
    settings = {name: str(threads) for name in BLAS_THREADS if name not in os.environ} | {"PYTHONSAFEPATH": "1"}
    with delayed_ctrl_c(), _without_main():
        before = {name: value for name, value in os.environ.items() if name in settings}
        os.environ.update(settings)
        try:
            forkserver.set_forkserver_preload([f"{__package__}.server", module, f"{__package__}.warm"])
            resource_tracker.ensure_running()  # starting it unblocks the signals that are blocked below
            # The server inherits the mask. This process still gets a Ctrl-C, which it would miss if it ignored them.
            unmasked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                forkserver.ensure_running()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
        finally:
            for name in settings:
                del os.environ[name]
            os.environ.update(before)


@contextmanager
def delayed_ctrl_c() -> Iterator[None]:
    """Handle a Ctrl-C within the block at its end; only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
