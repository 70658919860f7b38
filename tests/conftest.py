"""Fixtures that several test files share, and the order in which test files run."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import TYPE_CHECKING, Any

# Before numpy is loaded: its threads wait for one another by computing, which takes most of the time of small tests.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import pytest
from hypothesis import settings

from schedgap.harness import cli
from schedgap.harness.engine import pool

if TYPE_CHECKING:
    from schedgap.models.engine.solve import Solution

# Every machine and run uses the same examples: few in `make test`, many in `make test-thorough`. A test with its own
# number of examples is cheap, or needs that many. HYPOTHESIS_PROFILE=explore searches for new ones.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
TIMES = {"quick": 1, "thorough": 8, "explore": 40}
"""How many times as many examples as in `make test` each profile has."""

settings.register_profile("quick", derandomize=True, deadline=None, max_examples=25 * TIMES["quick"])
settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=25 * TIMES["thorough"])
settings.register_profile("explore", deadline=None, max_examples=25 * TIMES["explore"])
settings.load_profile(PROFILE)

THOROUGH = PROFILE != "quick"
"""Whether tests may take hours."""


def examples(quick: int) -> int:
    """Return how many examples, or seeds, a costly test tries in this profile, for a number in `make test`."""
    return quick * TIMES[PROFILE]


# Scripts, nohup, cron and some CI runners start programs that ignore Ctrl-C, and so do the programs that these start.
# With a handler of its own, this process gets Ctrl-C, and every process that a test starts has the default handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

HARNESS = str(Path(sys.executable).with_name("harness"))
"""The installed command ``harness``, for tests that need a real process: signals, closed streams, terminals."""

PATIENCE_S = 1800.0
"""Seconds after which a waiting test fails; what it waits for ends by itself, even on the busiest machine."""

Command = Callable[..., CompletedProcess[str]]

LONGEST = (
    "test_notebooks",
    "test_conformance",
    "test_certificates",
    "test_extreme",
    "test_readme",
    "test_arrays",
    "test_solvers",
    "test_ratios",
    "test_cli",
    "test_trust",
    "test_mutations",
    "test_cases",
    "test_statistics",
    "test_verify",
    "test_oef_models",
    "test_branching",
    "test_zhou_online",
    "test_harness",
    "test_properties",
    "test_audit",
    "test_zhou_columns",
    "test_artefact",
    "test_reproduce",
    "test_hadar_models",
    "test_synergy_columns",
    "test_synergy_heuristics",
    "test_sweeps",
    "test_rigid",
    "test_cluster",
    "test_synergy_theory",
    "test_laws",
    "test_market",
    "test_synergy_servers",
    "test_hadar_online",
    "test_explain",
    "test_fitting",
    "test_account",
    "test_whatif",
    "test_hostile_certificates",
    "test_published",
    "test_decisions",
    "test_reading",
    "test_plots",
    "test_simulate_cli",
    "test_fairness",
    "test_hadar_columns",
    "test_zhou_mincost",
    "test_programs",
    "test_certify",
    "test_imports",
    "test_stretches",
    "test_zhou_models",
    "test_words",
    "test_bad_rows",
    "test_policies",
    "test_catalogue",
)
"""Test files that take more than about six seconds, the longest first."""


START = pool.start_server


def start_server(module: str, threads: int) -> None:
    """Start one process with everything imported (``preloaded.py``), from which workers of all tests are forked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        START("preloaded", threads)


pool.start_server = start_server
pool.stop_server = lambda: None  # a command with invalid arguments must not stop it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that workers finish at about the same time."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage as rarely as commands do, and ignore objects created before the first test."""
    gc.freeze()
    gc.set_threshold(50_000)


def wait_for(event: Callable[[], object], process: Popen[Any] | None = None) -> None:
    """Wait until `event` returns something true; fail after :data:`PATIENCE_S`, or if `process` has ended before."""
    until = time.monotonic() + PATIENCE_S
    while not event():
        assert time.monotonic() < until, "it never happened"
        assert process is None or process.poll() is None, "the process has ended before"
        time.sleep(0.02)


def with_incumbent(solve: Callable[[float], Solution]) -> Solution:
    """Call `solve` with ever larger time limits, and return the first solution that has an incumbent."""
    limit_s = 0.5
    while (found := solve(limit_s)).objective is None:
        limit_s *= 2
    return found


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs ``harness`` with the given arguments, in this process and in an empty folder.

    It calls the entry point of the installed command. A separate process would spend two seconds on imports.
    """
    monkeypatch.chdir(tmp_path)

    def run(*words: object, width: int = 200) -> CompletedProcess[str]:
        arguments = [str(word) for word in words]
        capfd.readouterr()
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            patch.setattr(sys, "argv", ["harness", *arguments])
            patch.setattr(sys, "stdout", sys.stdout)  # the command replaces them
            patch.setattr(sys, "stderr", sys.stderr)
            with pytest.raises(SystemExit) as ended:
                cli.main()
            sys.stderr.flush()
        code = ended.value.code
        assert isinstance(code, int)
        return CompletedProcess(arguments, code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real traces; skip the test if it does not exist."""
    folder = Path(os.environ.get("SCHEDGAP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("real traces not found: set SCHEDGAP_DATA to their folder")
    return folder


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Return a headless browser that records the console messages of pages."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("chromium and chromedriver are not installed (Debian: apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield browser
    browser.quit()
