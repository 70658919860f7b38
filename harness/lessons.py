"""What the notebooks share: figures as a cell shows them, sliders, checked exercises."""

from __future__ import annotations

import importlib.util
import inspect
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from schedgap.harness.figure import Drawing, plain_spec, rendered

if TYPE_CHECKING:
    from altair.typing import ChartType

    Shown = ChartType | str | Sequence[ChartType | str]

WIDTH_PX = 720
"""Width of a figure on a notebook's page."""


def show(figures: ChartType | Sequence[ChartType | Drawing], alt: str) -> None:
    """Show a chart or figures of the project; `alt` says what they show for those who do not see them."""
    from IPython.display import Image, display

    for figure in figures if isinstance(figures, Sequence) else [figures]:
        display(Image(_png(figure), width=WIDTH_PX, alt=alt))  # type: ignore[no-untyped-call]


def _png(figure: ChartType | Drawing) -> bytes:
    return figure.file("png") if isinstance(figure, Drawing) else rendered(plain_spec(figure), "png")


def check(answer: Any, expected: float, hint: str = "") -> bool:
    """Say whether the answer to an exercise is right, to a thousandth; dots (``...``) are no answer yet."""
    unanswered = {...: "Put your answer in place of the dots.", None: "✗ There is no number: is the model infeasible?"}
    if answer in unanswered:
        print(unanswered[answer])
        return False
    right = math.isclose(answer, expected, rel_tol=1e-3)
    print("✓ Right." if right else f"✗ {answer:g} is not it yet. {hint}")
    return right


def interact(draw: Callable[..., Shown], **controls: Any) -> None:
    """Let a reader move sliders; the first picture is that of the function's defaults, and all that a still page has.

    `draw` returns a figure, a text, or several of them, and all its parameters have defaults; `controls` are these as
    for ``ipywidgets.interact``: ``load=(0.5, 1.5, 0.1)``. Without ipywidgets the first picture is all there is.

    What `draw` returns stands in an HTML widget: the output widget of ``ipywidgets.interact`` makes nbclient, which
    executes notebooks without a browser, wait for ever once in a while.
    """
    import IPython.display as ipython

    first = _page(draw())
    if importlib.util.find_spec("ipywidgets") is None:
        ipython.display(ipython.HTML(first))  # type: ignore[no-untyped-call]
        return
    import ipywidgets  # type: ignore[import-untyped, import-not-found, unused-ignore]

    page = ipywidgets.HTML(first)
    sliders = {}
    for name, parameter in inspect.signature(draw).parameters.items():
        slider = ipywidgets.interactive.widget_from_abbrev(controls[name], parameter.default)
        slider.description = name.replace("_", " ")
        slider.style.description_width = "initial"
        slider.continuous_update = False
        sliders[name] = slider

    def redraw(change: object) -> None:
        page.value = _page(draw(**{name: slider.value for name, slider in sliders.items()}))

    for slider in sliders.values():
        slider.observe(redraw, "value")
    values = ", ".join(f"{slider.description} {slider.value}" for slider in sliders.values())
    still = f"<p>With {escape(values)}; sliders change that in a notebook.</p>{first}"
    ipython.display(Sliders(ipywidgets.VBox([*sliders.values(), page]), still))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Sliders:
    """Sliders above what they change, and what a page that cannot move them has in their place."""

    box: Any
    still: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {**self.box._repr_mimebundle_(), "text/html": self.still}


def _page(shown: Shown) -> str:
    if isinstance(shown, str):
        return f"<pre style='line-height: 1.4'>{escape(shown)}</pre>"
    if isinstance(shown, Sequence):
        return "".join(map(_page, shown))
    return f"<img width={WIDTH_PX} src='data:image/png;base64,{b64encode(_png(shown)).decode()}'>"
