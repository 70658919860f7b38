"""What a model or a heuristic says, in mathematics, and how large it is on an instance.

>>> from schedgap import harness
>>> print(harness.explain("oef.efficiency").text)  # doctest: +SKIP
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schedgap.harness.explain import formats
from schedgap.harness.explain.document import Document, of_heuristic, of_model, of_variant
from schedgap.harness.explain.sizes import Sizes, measure
from schedgap.heuristics import HEURISTICS
from schedgap.instances import load
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.models import MODELS
from schedgap.models.explain import FORMULATIONS

__all__ = ["Explanation", "Sizes", "explain", "find"]


@dataclass(frozen=True)
class Explanation:
    """Explanations of one or several methods; a notebook shows it with its mathematics set.

    Attributes
    ----------
    documents
        One per method.
    """

    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """As plain text."""
        return formats.to_text(self.documents)

    @property
    def markdown(self) -> str:
        """As Markdown with mathematics."""
        return formats.to_markdown(self.documents)

    @property
    def latex(self) -> str:
        """As LaTeX for a document with ``amsmath``."""
        return formats.to_latex(self.documents)

    @property
    def json(self) -> str:
        """As JSON."""
        return formats.to_json(self.documents)

    @property
    def sizes(self) -> dict[str, Sizes]:
        """Sizes by model."""
        return {d.id: d.sizes for d in self.documents if d.sizes}

    def _repr_html_(self) -> str:
        return formats.to_html(self.documents)

    def _repr_markdown_(self) -> str:
        return self.markdown

    def _repr_latex_(self) -> str:
        return self.latex


def explain(
    name: str,
    instance: str | Instance | None = None,
    *,
    large: bool = False,
    on_model: Callable[[str, str], None] | None = None,
) -> Explanation:
    """Explain a model, a heuristic or a family of them.

    Parameters
    ----------
    name
        Id (``hadar.p1``), beginning of ids (``hadar.p2``) or pattern (``oef.*``).
    instance
        Reference or instance on which the model is built; a small one that fits it by default.
    large
        Build models above the size that they state, too.
    on_model
        Called with the model and the instance before each model is built.

    Raises
    ------
    UnknownNameError
        If nothing has that name; the message names the nearest known ones.
    """
    ids = find(name)
    given = load(instance) if isinstance(instance, str) else instance
    return Explanation(tuple(_document(one, ids, given, large, on_model) for one in ids))


def find(name: str) -> list[str]:
    """Return the ids that a name means: itself, what begins with it, or what matches it.

    Raises
    ------
    UnknownNameError
        If there are none.
    """
    known = [*MODELS.ids(), *HEURISTICS.ids()]
    if base_id(name) in known:
        return [name]
    found = [i for i in known if i.startswith(f"{name}.")] or [i for i in known if fnmatch.fnmatchcase(i, name)]
    if not found:
        families = {i.rsplit(".", k)[0] for i in known for k in range(1, i.count(".") + 1)}
        raise UnknownNameError(unknown("model or heuristic", name, [*known, *sorted(families - set(known))]))
    return sorted(found, key=lambda i: (i not in MODELS, bool(_base(i, found)), known.index(base_id(i))))


def _base(name: str, among: Sequence[str]) -> str:
    """Return the model of which another one among them is a variant, if any."""
    base = FORMULATIONS.get(base_id(name)).variant_of if name in MODELS else ""
    return base if base in among else ""


def _document(
    name: str,
    among: Sequence[str],
    given: Instance | None,
    large: bool,
    on_model: Callable[[str, str], None] | None,
) -> Document:
    if name not in MODELS:
        return of_heuristic(HEURISTICS.get(name), given or _example_of(HEURISTICS.get(name).paper))
    spec, formulation = MODELS.get(name), FORMULATIONS.get(base_id(name))
    instance = given or load(formulation.example)
    if on_model:
        on_model(name, instance.name)
    sizes = measure(spec, formulation, instance, large)
    return (of_variant if _base(name, among) else of_model)(spec, formulation, sizes)


def _example_of(paper: str) -> Instance:
    """Return the small instance of the paper's first model."""
    return load(next(FORMULATIONS.get(m.id).example for m in MODELS if m.paper == paper))
