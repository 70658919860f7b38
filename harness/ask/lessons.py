"""Helpers for the notebooks: figures, sliders, and exercises with checked answers."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.harness.engine.folder import JOURNAL
from schedgap.harness.show.figure import ENLARGED, PNG_SCALE, Drawing, plain_spec, rendered
from schedgap.harness.studies.compare.run import read_run
from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    from altair.typing import ChartType

    from schedgap.harness.studies.compare.row import Comparison

    Shown = ChartType | str | Sequence[ChartType | str]

MOST_PX = 720
"""Largest width of a figure in a notebook."""


def show(figures: ChartType | Sequence[ChartType | Drawing], alt: str) -> None:
    """Show a chart, or several charts or figures, with `alt` as the alternative text."""
    from IPython.display import Image, display

    for figure in figures if isinstance(figures, Sequence) else [figures]:
        png = _png(figure)
        display(Image(png, width=_width(png), alt=alt))  # type: ignore[no-untyped-call]


def _png(figure: ChartType | Drawing) -> bytes:
    return figure.file("png") if isinstance(figure, Drawing) else rendered(plain_spec(figure), "png")


def _width(png: bytes) -> int:
    """Return the width at which a picture is shown: letters are as large as in other figures, unless it is too wide."""
    return min(MOST_PX, round(ENLARGED * int.from_bytes(png[16:20], "big") / PNG_SCALE))


def stored(name: str) -> Comparison:
    """Return the run that is kept for a lesson in ``results/<name>``, from wherever in the project a notebook runs.

    The folder may be below the working folder, below one above it, or below the project that this module is part of.

    Raises
    ------
    UsageError
        If there is no such folder; the message says how to get it.
    """
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        if (kept := folder / "results" / name / JOURNAL).is_file():
            return read_run(kept.parent)
    raise UsageError(f"results/{name} is not here: open the notebook in the folder notebooks/ of a copy of the project")


@dataclass(frozen=True)
class AnswerCheck:
    """The verdict on an answer: if it is right, and what the notebook prints, which is nothing for an open exercise."""

    right: bool
    text: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        if self.text:
            print(self.text)


def check(answer: Any, sealed: str, hint: str = "", *, before: float | None = None) -> AnswerCheck:
    """Return whether the answer to an exercise is right, to within 0.1 %, and say so; an open exercise says nothing.

    The cell has the right answer as its :func:`seal` only, so that nobody reads it by accident.

    Parameters
    ----------
    answer
        A number, or dots (``...``) as long as there is none.
    sealed
        The :func:`seal` of the right answer.
    hint
        What to say to a wrong answer.
    before
        The answer that the cell gives as long as nobody has changed it, such as the bound of a model to which the
        exercise adds a row. With it, the exercise is open.
    """
    if answer is ...:
        return AnswerCheck(False, "")
    if answer is None:
        return AnswerCheck(False, "✗ There is no number: is the model infeasible?")
    if isinstance(answer, bool) or not isinstance(answer, Real) or not math.isfinite(answer):
        return AnswerCheck(False, "✗ The answer is one number, such as 2.71.")
    answer = float(answer)
    if before is not None and math.isclose(answer, before, rel_tol=1e-6):
        return AnswerCheck(False, "")
    right = sealed in {_seal(answer, step + near) for step in [_step(answer)] for near in (-1, 0, 1)}
    return AnswerCheck(right, "✓ Right." if right else f"✗ {answer:g} is not it yet, to three digits. {hint}")


ANSWER = re.compile(r"<details>.*?</details>\s*", re.DOTALL)
"""A hidden answer in a cell of text."""


def without_answers(lesson: str | Path, copy: str | Path) -> None:
    """Write a copy of a lesson without its hidden answers, to hand out to a class; the checks stay.

    It raises `UsageError` if the lesson cannot be read, is no notebook, or the copy cannot be written.
    """
    try:
        notebook = json.loads(Path(lesson).read_text("utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = ANSWER.sub("", "".join(cell["source"])).splitlines(keepends=True)
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["source"] or cell["cell_type"] != "markdown"]
        Path(copy).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{lesson}: is not a Jupyter notebook") from None


def seal(answer: float) -> str:
    """Return the digest of an answer, for the cell of its exercise: ``check(mine, "…", "Hint.")``."""
    return _seal(answer, _step(answer))


def _step(answer: float) -> int:
    """Return the number of the step that an answer is nearest to, on a logarithmic scale with steps of 0.1 %."""
    return round(math.log(abs(answer)) / math.log1p(1e-3)) if answer else 0


def _seal(answer: float, step: int) -> str:
    sign = "+" if answer > 0 else "-" if answer < 0 else "0"
    return hashlib.sha256(f"schedgap lessons {sign} {step}".encode()).hexdigest()[:8]


def interact(draw: Callable[..., Shown], **controls: Any) -> None:
    """Show the output of `draw` under sliders for its parameters, first for the default values.

    `draw` returns a figure, a text, or several of them. All its parameters have defaults, and `controls` describes a
    slider for each as in ``ipywidgets.interact``: ``load=(0.5, 1.5, 0.1)``. Static pages, and notebooks without
    ipywidgets, show only the first output.

    The output is in an HTML widget because the output widget of ``ipywidgets.interact`` occasionally makes nbclient,
    which executes notebooks without a browser, wait forever.
    """
    import IPython.display as ipython

    first = _html(draw())
    if importlib.util.find_spec("ipywidgets") is None:
        ipython.display(ipython.HTML(first))  # type: ignore[no-untyped-call]
        return
    import ipywidgets  # type: ignore[import-untyped, import-not-found, unused-ignore]

    output = ipywidgets.HTML(first)
    sliders = {}
    for name, parameter in inspect.signature(draw).parameters.items():
        slider = ipywidgets.interactive.widget_from_abbrev(controls[name], parameter.default)
        slider.description = name.replace("_", " ")
        slider.style.description_width = "initial"
        slider.continuous_update = False
        sliders[name] = slider

    def redraw(change: object) -> None:
        output.value = _html(draw(**{name: slider.value for name, slider in sliders.items()}))

    for slider in sliders.values():
        slider.observe(redraw, "value")
    values = ", ".join(f"{slider.description} {slider.value}" for slider in sliders.values())
    still = f"<p>Shown for {escape(values)}; a notebook has sliders to change these values.</p>{first}"
    ipython.display(Sliders(ipywidgets.VBox([*sliders.values(), output]), still))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Sliders:
    """Sliders with their output below, and the HTML that replaces both on static pages."""

    box: Any
    still: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {**self.box._repr_mimebundle_(), "text/html": self.still}


def _html(shown: Shown) -> str:
    if isinstance(shown, str):
        return f"<pre style='line-height: 1.4'>{escape(shown)}</pre>"
    if isinstance(shown, Sequence):
        return "".join(map(_html, shown))
    png = _png(shown)
    return f"<img width={_width(png)} src='data:image/png;base64,{b64encode(png).decode()}'>"
