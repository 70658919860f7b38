"""Packages import only what they may, and modules do not import each other in circles.

Imports inside functions and imports for types alone count as well.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from conftest import ROOT as CHECKOUT

import schedgap

ROOT = Path(schedgap.__file__).parent
BELOW = {
    "instances": {"instances"},
    "certificates": {"certificates"},
    "models": {"instances", "certificates", "models"},
    "heuristics": {"instances", "heuristics"},
    "harness": {"instances", "certificates", "models", "heuristics", "harness"},
}
"""The packages that each package may import."""


BY_NAME = ("import_module", "resolve_name", "__import__")
"""Functions that import the module that a text names."""


def imported(tree: ast.AST, modules: set[str], own: str) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it.

    Modules of ours that are imported by name count, and so do all that a package imports of itself. A name that is
    imported from a package counts as a module if it is one.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function == "import_submodules":
                yield from (m for m in modules if m.rpartition(".")[0] == own and "._" not in m)
            elif function in BY_NAME:
                yield from (m for m in modules if any(m == getattr(arg, "value", "") for arg in node.args))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in modules else node.module


@pytest.fixture(scope="module")
def graph() -> nx.DiGraph:
    """Return the graph of modules, with edges to the modules that each one imports; a package is its ``__init__``."""
    files: dict[str, Path] = {}
    for package in BELOW:
        folder = (ROOT / package).resolve()
        for path in folder.rglob("*.py"):
            parts = ("schedgap", package, *path.relative_to(folder).with_suffix("").parts)
            files[".".join(parts).removesuffix(".__init__")] = path
    modules = {*files, "schedgap"}
    edges = [
        (module, other)
        for module, path in files.items()
        for other in imported(ast.parse(path.read_text("utf-8")), modules, module)
    ]
    return nx.DiGraph(edges)


def test_no_modules_import_one_another(graph: nx.DiGraph) -> None:
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


@pytest.mark.parametrize("package", BELOW)
def test_a_package_imports_only_what_is_below_it(graph: nx.DiGraph, package: str) -> None:
    wrong = [
        f"{module} -> {other}"
        for module, other in graph.edges
        if module.split(".")[1] == package and other.partition(".")[2].partition(".")[0] not in BELOW[package]
    ]
    assert not wrong


def test_machinery_of_models_imports_no_paper(graph: nx.DiGraph) -> None:
    below = ("schedgap.models.engine", "schedgap.models.registry", "schedgap.instances", "schedgap.certificates")
    edges = [(module, other) for module, other in graph.edges if module.startswith("schedgap.models.engine.")]
    assert edges
    assert not [f"{module} -> {other}" for module, other in edges if not other.startswith(below)]


ABOUT_DECISIONS = {
    *(
        "Allocation",
        "Runs",
        "HadarSchedule",
        "RigidSchedule",
        "SynergySchedule",
        "ZhouSchedule",
        "Rules",
        "Trace",
        "HORIZON",
        "IMPOSSIBLE",
        "LEFT",
        "STALLED",
    ),
    *("Array", "Bools", "Ints", "Instance", "Registry", "import_submodules"),
}
"""What checkers may import from modules of models and heuristics: classes of decisions, and plain types."""


def test_checkers_share_decisions_with_models_and_heuristics_and_nothing_else() -> None:
    files = list((ROOT / "harness" / "check").resolve().glob("*.py"))
    assert files
    others = tuple(f"schedgap.{package}" for package in ("instances", "models", "heuristics"))
    taken = {
        alias.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(others)
        for alias in node.names
    }
    assert taken <= ABOUT_DECISIONS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that is built from the source archive."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_compares_with_an_empty_cache_of_kernels(wheel: Path, tmp_path: Path) -> None:
    """A method from the wheel keeps its time limit although compiling takes longer, because that does not count."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    cache = tmp_path / "cache"
    words = ("compare", "--instance", "paper/walkthrough", "--method", "admission.online", "--no-bound", "--no-report")
    run = subprocess.run(
        [sys.executable, "-m", "schedgap", *words, "--time-limit", "0.5", "--format", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = json.loads(run.stdout)
    assert (row["status"], row["verified"]) == ("feasible", True)
    assert list(cache.rglob("*.nbc"))
    assert (tmp_path / "results").exists()


def test_a_wheel_holds_one_package(wheel: Path) -> None:
    files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in files} == {"schedgap"}
    assert {path.relative_to(ROOT).as_posix() for package in BELOW for path in (ROOT / package).rglob("*.py")} <= {
        name.removeprefix("schedgap/") for name in files
    }


def test_the_rules_of_certificates_import_nothing_but_numpy() -> None:
    found = set()
    for path in (ROOT / "certificates").resolve().rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    assert found - sys.stdlib_module_names == {"numpy"}


def test_no_two_classes_share_a_name() -> None:
    """A name means one thing: a reader who meets it in a signature knows which class it is."""
    homes: dict[str, list[str]] = {}
    for path in (path for package in BELOW for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(homes) > 250
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
