"""What a model or a heuristic says: the docstrings that state it, its parameters, and how large it is.

>>> import schedgap as sg
>>> print(sg.explain("oef.efficiency").text)  # doctest: +SKIP
"""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any

from schedgap.harness.explain import formats
from schedgap.harness.explain.docstrings import Block, blocks, documentation, home_of
from schedgap.harness.explain.formats import Document, Sizes
from schedgap.harness.text import clean, some
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.registry import HeuristicSpec
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances import load
from schedgap.instances.errors import NotApplicableError, UnknownNameError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.models import MODELS, ModelSpec

__all__ = ["Explanation", "Sizes", "explain", "find", "stated"]


@dataclass(frozen=True)
class Explanation:
    """Explanations, a document for each of one or several methods; a notebook shows it with its mathematics set."""

    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """As plain text."""
        return "\n".join(map(formats.to_text, self.documents))

    @property
    def markdown(self) -> str:
        """As Markdown with mathematics."""
        return "\n".join(map(formats.to_markdown, self.documents))

    @property
    def latex(self) -> str:
        """As LaTeX for a document with ``amsmath``."""
        return "\n".join(map(formats.to_latex, self.documents))

    @property
    def json(self) -> str:
        """As JSON."""
        return formats.to_json(self.documents)

    @property
    def sizes(self) -> dict[str, Sizes]:
        """Sizes by model."""
        return {d.id: d.sizes for d in self.documents if d.sizes}

    def __repr__(self) -> str:
        return f"Explanation({some([document.id for document in self.documents])})"

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
    given = load(instance) if isinstance(instance, str) else instance
    shown: set[str] = set()
    documents = []
    for one in find(name):
        spec = MODELS.get(one) if one in MODELS else HEURISTICS.get(one)
        # A heuristic is explained on the small instance of its paper's first model, if it has one.
        models = [spec] if isinstance(spec, ModelSpec) else [model for model in MODELS if model.paper == spec.paper]
        where = given or load(models[0].example if models else ModelSpec.example)
        if on_model and isinstance(spec, ModelSpec):
            on_model(one, where.name)
        sizes = measure(spec, where, large) if isinstance(spec, ModelSpec) else None
        found = tuple(block for block in _blocks(spec, where, sizes, shown) if block.text)
        problem = PAPERS.get(spec.paper).problem(spec.problem)
        goal = {"max": "maximise", "min": "minimise"}[problem.sense]
        title = f"{spec.kind} · {goal} {problem.id}: {problem.title} ({problem.unit})"
        documents.append(Document(spec.id, title, found, sizes))
    return Explanation(tuple(documents))


def find(name: str) -> list[str]:
    """Return the ids that begin with a name or match it, models first; raise `UnknownNameError` if there are none."""
    known = [*MODELS.ids(), *HEURISTICS.ids()]
    if base_id(name) in known:
        return [name]
    found = [i for i in known if i.startswith(f"{name}.")] or [i for i in known if fnmatch.fnmatchcase(i, name)]
    if not found:
        families = {i.rsplit(".", k)[0] for i in known for k in range(1, i.count(".") + 1)}
        raise UnknownNameError(unknown("model or heuristic", name, [*known, *sorted(families - set(known))]))
    return found


def stated(spec: ModelSpec | HeuristicSpec) -> dict[str, str]:
    """Return the docstrings that state a method, by what they document; see :mod:`schedgap.models`."""
    if isinstance(spec, HeuristicSpec):
        return documentation(spec.run)
    return documentation(spec.build, home_of(spec.build, spec.paper))


def measure(spec: ModelSpec, instance: Instance, large: bool = False) -> Sizes:
    """Build and compile a model on an instance, if `large` also above its stated size, and return its sizes."""
    from schedgap.models.solve import build, compile_model
    from schedgap.models.solve.form import silent

    paper, found = PAPERS.get(spec.paper), dict[str, Any](instance=clean(instance.name, 120))
    try:
        view = paper.view(instance)
        found["caption"] = clean(paper.describe(view), 400)
        if reason := spec.skip(view):
            return Sizes(**found, reason=clean(reason, 300))
        if spec.implied:
            found["implied"], found["at_least"] = spec.implied(view)
        if not large and (reason := spec.too_large(view)):
            return Sizes(**found, reason=f"above its stated size ({clean(reason, 300)}); --all builds it")
        began = time.perf_counter()
        with silent():
            form = compile_model(build(spec.build, view))
    # An instance may leave nothing to choose from, or more than memory holds: the statement is printed all the same.
    except (NotApplicableError, ValueError, StopIteration, MemoryError) as error:
        return Sizes(**found, reason=clean(error, 300) or type(error).__name__)
    return Sizes(
        **found,
        rows=int(form.matrix.shape[0]),
        columns=int(form.matrix.shape[1]),
        nonzeros=int(form.matrix.nnz),
        integers=int(form.integer.sum()),
        parts=dict(Counter(part.parent_component().local_name for part in (*form.rows, *form.columns))),
        build_s=time.perf_counter() - began,
    )


def _blocks(spec: ModelSpec | HeuristicSpec, where: Instance, sizes: Sizes | None, shown: set[str]) -> Iterator[Block]:
    """Yield the parts of an explanation; docstrings that stand in an explanation before it are only named."""
    yield Block("prose", f"Source: {spec.source}.")
    known = stated(spec)
    for origin, doc in known.items():
        yield Block("origin", origin)
        name = origin.partition("(")[0]
        yield from [Block("prose", "As above.")] if name in shown else _counted(blocks(doc), sizes)
        shown.add(name)
    yield from [] if known else [Block("prose", "Not documented.")]
    if isinstance(spec, ModelSpec) and spec.procedure:
        docs = documentation(spec.procedure, modules=False).values()
        told = [takewhile(lambda block: block.kind != "heading", blocks(doc)) for doc in docs]
        yield from _listed("How it is solved", chain(*told))
    parameters = spec.documented()
    yield from _listed("Parameters", _plain(f"{name}: {text}" for name, text in parameters))
    if isinstance(spec, HeuristicSpec):
        policies = (policy for policy in POLICIES if policy.id == base_id(spec.id))
        more = (one for policy in policies for one in policy.documented() if one not in parameters)
        yield from _listed("Parameters of its simulation", _plain(f"{name}: {text}" for name, text in more))
        yield from _listed("Guarantee", _plain([_guarantee(spec, where)]))
        yield from _listed("Checked on every decision", _plain(c.replace("_", " ") for c in spec.claims))
    if sizes:
        yield from _listed("Size", _plain(sizes.lines))


def _listed(heading: str, found: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks under a heading, nothing if there are none."""
    told = list(found)
    if told:
        yield from (Block("heading", heading), *told)


def _plain(texts: Iterable[str]) -> list[Block]:
    return [Block("plain", text) for text in texts]


def _counted(found: list[Block], sizes: Sizes | None) -> Iterator[Block]:
    """Yield blocks, rows and variables with how often they are there on the instance."""
    for block in found:
        total = sum(sizes.parts.get(name, 0) for name in block.names) if sizes else 0
        yield replace(block, count=f"×{total:,}") if total else block


def _guarantee(spec: HeuristicSpec, instance: Instance) -> str:
    name = clean(instance.name, 120)
    try:
        found = spec.guarantee(PAPERS.get(spec.paper).view(instance))
    except NotApplicableError as error:
        return f"None on {name}: {clean(error, 300)}."
    if found is None:
        return "None."
    bound = f": at most {found.factor:.4g} times from the optimum" if found.factor else ""
    return f"{clean(found.text, 80)} on {name}{bound}."
