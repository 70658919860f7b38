"""How large a model is on an instance: built in Pyomo and compiled, as a solve would do it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from schedgap.harness.text import clean
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.models.registry import ModelSpec


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model on an instance, or the reason why there are none.

    Attributes
    ----------
    instance, caption
        Name of the instance, and its sizes, slots and horizon in words.
    rows, columns, nonzeros, integers
        Shape of the compiled model; ``None`` where it was not built.
    parts
        Rows by Pyomo constraint, and columns by Pyomo variable.
    build_s
        Seconds that building and compiling took.
    reason
        Why it was not built.
    implied
        Logarithm to base 10 of the number of columns that the full model would have, for models that generate theirs.
    at_least
        Whether that is a lower bound.
    """

    instance: str
    caption: str = ""
    rows: int | None = None
    columns: int | None = None
    nonzeros: int | None = None
    integers: int | None = None
    parts: dict[str, int] = field(default_factory=dict)
    build_s: float | None = None
    reason: str = ""
    implied: float | None = None
    at_least: bool = False

    @property
    def sentence(self) -> str:
        """The sizes in words."""
        if self.rows is None:
            return f"not built: {self.reason}"
        whole = f", {self.integers:,} of them integer" if self.integers else ""
        text = f"{self.rows:,} rows, {self.columns:,} columns{whole}, {self.nonzeros:,} nonzeros"
        return text + (f"; columns implied: {self.implied_text}" if self.implied is not None else "")

    @property
    def implied_text(self) -> str:
        """Number of implied columns: ``508``, ``6.7e259``, ``≥ 1.2e301``."""
        if self.implied is None:
            return ""
        number = _power(self.implied)
        return f"≥ {number}" if self.at_least else number


def _power(log: float) -> str:
    """Return ten to a power: in full up to seven digits, else with two."""
    if log < 7:
        return f"{round(10**log):,}"
    exponent = int(log)
    lead = 10 ** (log - exponent)
    if round(lead, 1) >= 10:
        lead, exponent = 1.0, exponent + 1
    return f"{lead:.1f}e{exponent}"


def measure(spec: ModelSpec, instance: Instance, large: bool = False) -> Sizes:
    """Build and compile a model on an instance and return its sizes.

    Parameters
    ----------
    spec
        The model.
    instance
        Any instance.
    large
        Also build what is above the size that the model states.
    """
    name = clean(instance.name, 120)
    try:
        view = PAPERS.get(spec.paper).view(instance)
    except NotApplicableError as error:
        return Sizes(name, reason=clean(error, 300))
    caption = clean(PAPERS.get(spec.paper).describe(view), 400)
    if reason := spec.skip(view):
        return Sizes(name, caption, reason=clean(reason, 300))
    implied, at_least = spec.implied(view) if spec.implied else (None, False)
    if not large and (reason := spec.too_large(view)):
        reason = f"above its stated size ({clean(reason, 300)}); --all builds it"
        return Sizes(name, caption, reason=reason, implied=implied, at_least=at_least)
    try:
        built = _built(spec, view)
    # An instance may leave nothing to choose from, or more than memory holds: the statement is printed all the same.
    except (ValueError, StopIteration, MemoryError) as error:
        reason = clean(error, 300) or type(error).__name__
        return Sizes(name, caption, reason=reason, implied=implied, at_least=at_least)
    return Sizes(name, caption, implied=implied, at_least=at_least, **built)


def _built(spec: ModelSpec, view: Any) -> dict[str, Any]:
    from pyomo.common.log import LoggingIntercept

    from schedgap.models.solve import build, compile_model

    began = time.perf_counter()
    with LoggingIntercept(module="pyomo", level=logging.ERROR):
        form = compile_model(build(spec.build, view))
    return {
        "rows": int(form.matrix.shape[0]),
        "columns": int(form.matrix.shape[1]),
        "nonzeros": int(form.matrix.nnz),
        "integers": int(form.integer.sum()),
        "parts": _counted(form.rows) | _counted(form.columns),
        "build_s": time.perf_counter() - began,
    }


def _counted(components: Iterable[Any]) -> dict[str, int]:
    return dict(Counter(c.parent_component().local_name for c in components))
