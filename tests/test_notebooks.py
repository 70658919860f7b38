"""Every notebook in ``notebooks/`` runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import PATIENCE_S
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ABSOLUTE_PATH = re.compile(r"(?<![\w./~:-])/(?:home|root|Users|tmp|work|mnt|var|opt)/|\b[A-Z]:\\\\?\w")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MAGIC = re.compile(r"^\s*[%!]", re.MULTILINE)
IMPORT = re.compile(r"^\s*((?:from|import) schedgap.*)$", re.MULTILINE)
NEXT = re.compile(r"\*Next\*:\s\[lesson (\d+)\]\((.*)\.ipynb\)")
HEADING = re.compile(r"^## (?:\d+\. )?(\w+)", re.MULTILINE)
SHAPE = ["Data", "Heuristic", "Mathematics", "Model", "Comparison", "What", "Exercises"]
"""First words of the headings that every lesson has, in this order; a lesson may have more headings in between."""

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def hidden_answers(notebook: Any) -> list[str]:
    """Return the Python blocks in a notebook's text: answers to exercises, which no cell runs."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return [block for text in texts for block in PYTHON_BLOCK.findall(text)]


def asked_in(notebook: Any) -> list[Any]:
    """Return the cells of exercises that check an answer."""
    return [cell for cell in code_of(notebook) if "sg.lessons.check(" in cell.source]


def seals(code: str) -> list[str]:
    """Return the second arguments of the checks in a cell: digests of the right answers."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [ast.literal_eval(call.args[1]) for call in calls if ast.unparse(call.func) == "sg.lessons.check"]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_lessons_are_read_in_one_order() -> None:
    """The README of the notebooks, the site and the lessons' own links to the next lesson have the same order."""
    order = re.findall(r"\]\(\./(.*)\.ipynb\)", (FOLDER / "README.md").read_text())
    assert sorted(order) == [path.stem for path in NOTEBOOKS]
    assert re.findall(r"^lessons/(.*)$", (FOLDER.parent / "docs/index.md").read_text(), re.MULTILINE) == order
    heads = [read(FOLDER / f"{name}.ipynb").cells[0].source for name in order]
    assert all("*You need*: " in head for head in heads)
    assert [NEXT.findall(head) for head in heads] == [*([(f"{int(name[:2])}", name)] for name in order[1:]), []]


@each
def test_notebook_is_valid_and_names_its_kernel(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.nbformat == 4
    assert notebook.metadata.kernelspec.name == "python3"
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}, "no state of widgets or editors is stored"


@each
def test_notebook_is_stored_without_outputs(path: Path) -> None:
    for cell in code_of(read(path)):
        assert cell.outputs == [], cell.source
        assert cell.execution_count is None, cell.source


@each
def test_notebook_depends_on_no_machine(path: Path) -> None:
    notebook = read(path)
    for cell in notebook.cells:
        assert not ABSOLUTE_PATH.search(cell.source), cell.source
    for cell in code_of(notebook):
        assert not MAGIC.search(cell.source), cell.source


@each
def test_answers_of_exercises_are_hidden(path: Path) -> None:
    for cell in read(path).cells:
        opened, closed = cell.source.count("<details>"), cell.source.count("</details>")
        assert opened == closed, cell.source


@each
def test_lesson_goes_from_data_to_exercises(path: Path) -> None:
    headings = HEADING.findall("\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown"))
    assert [heading for heading in headings if heading in SHAPE] == SHAPE


@each
def test_lesson_imports_nothing_of_the_project_but_its_front(path: Path) -> None:
    notebook = read(path)
    for code in (*(cell.source for cell in code_of(notebook)), *hidden_answers(notebook)):
        assert set(IMPORT.findall(code)) <= {"import schedgap as sg"}, code


@each
def test_an_exercise_checks_itself_and_has_an_answer(path: Path) -> None:
    notebook = read(path)
    asked = asked_in(notebook)
    answered = [answer for answer in hidden_answers(notebook) if "assert sg.lessons.check(" in answer]
    assert 0 < len(asked) == len(answered)


@each
def test_no_cell_gives_its_answer_away(path: Path) -> None:
    """Cells contain right answers only as digests."""
    for cell in asked_in(read(path)):
        for sealed in seals(cell.source):
            assert re.fullmatch("[0-9a-f]{8}", sealed), cell.source


@each
def test_sliders_do_not_capture_output(path: Path) -> None:
    """No lesson uses ipywidgets directly, because output widgets sometimes make nbclient hang.

    :func:`schedgap.harness.ask.lessons.interact` does without them.
    """
    for cell in code_of(read(path)):
        assert "ipywidgets" not in cell.source


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """Start one kernel for all notebooks, because each new kernel would take three seconds for imports."""
    manager, client = start_new_kernel(kernel_name="python3")
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


@each
def test_notebook_runs_and_its_answers_too(path: Path, kernel: Any, tmp_path: Path) -> None:
    """A notebook and its answers run from top to bottom, write nothing to standard error, and leave no file."""
    notebook = read(path)
    asked = asked_in(notebook)
    answers = [new_code_cell(block) for block in hidden_answers(notebook)]  # type: ignore[no-untyped-call]
    clean = new_code_cell(f"%reset_selective -f .\n%cd -q {tmp_path}")  # type: ignore[no-untyped-call]
    notebook.cells = [clean, *notebook.cells, *answers]
    client = NotebookClient(notebook, km=kernel, timeout=round(PATIENCE_S))
    client.execute()
    outputs = [output for cell in code_of(notebook) for output in cell.outputs]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert [cell.source for cell in asked if cell.outputs] == [], "an open exercise says nothing"
    assert list(tmp_path.iterdir()) == []
