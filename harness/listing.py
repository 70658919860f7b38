"""What ``harness list`` prints: instances, models, heuristics, policies, papers, trace formats and plug-ins."""

from __future__ import annotations

from collections.abc import Callable

from schedgap.instances.errors import UsageError

Lines = list[tuple[str, ...]]


def listing(kind: str) -> tuple[tuple[str, ...], Lines]:
    """Return column names and lines of one of :data:`LISTINGS`."""
    return LISTINGS[kind]()


def _instances() -> tuple[tuple[str, ...], Lines]:
    from schedgap.instances.catalogue import known

    return ("instance", "kind", "what it is"), [(entry.ref, entry.kind, entry.title) for entry in known()]


def _models() -> tuple[tuple[str, ...], Lines]:
    from schedgap.models import MODELS

    columns = ("model", "kind", "problem", "claims", "source")
    return columns, [(m.id, m.kind, f"{m.problem} ({m.sense})", ", ".join(m.claims), m.source) for m in MODELS]


def _heuristics() -> tuple[tuple[str, ...], Lines]:
    from schedgap.heuristics import HEURISTICS

    columns = ("heuristic", "kind", "problem", "claims", "source")
    return columns, [(h.id, h.kind, h.problem, ", ".join(h.claims), h.source) for h in HEURISTICS]


def _policies() -> tuple[tuple[str, ...], Lines]:
    from schedgap.heuristics.simulator import POLICIES

    return ("policy", "copies", "source"), [(p.id, "forks jobs" if p.forks else "", p.source) for p in POLICIES]


def _papers() -> tuple[tuple[str, ...], Lines]:
    import schedgap.instances.views  # noqa: F401 -- registers the papers
    from schedgap.heuristics import HEURISTICS
    from schedgap.instances.registry import PAPERS
    from schedgap.models import MODELS

    return ("paper", "models", "heuristics", "title"), [
        (
            paper.id,
            str(sum(m.paper == paper.id for m in MODELS)),
            str(sum(h.paper == paper.id for h in HEURISTICS)),
            paper.title,
        )
        for paper in PAPERS
    ]


def _formats() -> tuple[tuple[str, ...], Lines]:
    from schedgap.instances.importers import IMPORTERS

    return ("format", "what it is", "source"), [(i.id, i.title, i.source) for i in IMPORTERS]


def _plugins() -> tuple[tuple[str, ...], Lines]:
    from schedgap.instances.plugins import listed

    return ("plug-in", "kind", "brought by", "registers"), listed()


LISTINGS: dict[str, Callable[[], tuple[tuple[str, ...], Lines]]] = {
    "instances": _instances,
    "models": _models,
    "heuristics": _heuristics,
    "policies": _policies,
    "papers": _papers,
    "formats": _formats,
    "plugins": _plugins,
}


def gpu_counts(text: str) -> dict[str, int]:
    """Return ``{"V100": 36, "P100": 36}`` for ``V100=36,P100=36``.

    Raises
    ------
    UsageError
        If the text is not of that form.
    """
    counts: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not name.strip() or not number.strip().isdigit() or int(number) < 1:
            raise UsageError(f"--gpus {text}: a cluster is written as V100=36,P100=36 with at least one GPU of a type")
        counts[name.strip()] = int(number)
    return counts
