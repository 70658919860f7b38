"""Certify a log: import it with its history, and compare what ran with rules, the best schedule found, and bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from schedgap.harness.compare.row import Comparison
from schedgap.harness.compare.run import compare
from schedgap.harness.engine.study import Running, command_line
from schedgap.harness.engine.task import Limits
from schedgap.heuristics import HEURISTICS
from schedgap.instances.errors import UsageError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import unknown
from schedgap.instances.rigid import OBJECTIVES
from schedgap.instances.schema import Instance
from schedgap.models import MODELS


def methods(objective: str) -> list[str]:
    """Return what runs: all rules, the search and the bounds for one objective, and the quick bounds for all."""
    setting = "" if objective == "flow" else f"objective={objective}"
    found = [spec.id for spec in HEURISTICS if spec.paper == "rigid"]
    models = (MODELS.get(name) for name in ("rigid.intervals", "rigid.starts", "rigid.search"))
    found += [spec.id for spec in models for p in spec.parameters if p.name == "objective" and objective in p.choices]
    asked = [f"{name}{'&' if '?' in name else '?'}{setting}" if setting else name for name in found]
    return [*asked, *(f"rigid.bound?objective={name}" for name in OBJECTIVES if name != "flow"), "rigid.bound"]


def certify(
    format: str,
    log: Path,
    options: Options,
    objective: str = "flow",
    *,
    seed: int = 0,
    limits: Limits | None = None,
    tell: Callable[[Instance], None] = lambda instance: None,
    given: dict[str, Any] | None = None,
    **running: Unpack[Running],
) -> Comparison:
    """Return the comparison of what ran in a log with everything else.

    Parameters
    ----------
    format, log, options
        The log (:func:`schedgap.instances.importers.import_trace`).
    objective
        What schedules are measured by (:data:`schedgap.instances.rigid.OBJECTIVES`).
    seed, limits
        Of the search; what each method may take.
    tell
        Called with the instance before anything runs.
    given
        Options by which the command line is repeated.
    **running
        Workers, results folder and callbacks.

    Raises
    ------
    UsageError
        If the log cannot be read, or an option makes no sense; nothing has run then.
    """
    if objective not in OBJECTIVES:
        raise UsageError(unknown("objective", objective, OBJECTIVES))
    instance = import_trace(format, log, options)
    tell(instance)
    command = command_line(given or {}, "certify", format, str(log))
    limits = limits or Limits()
    return compare([instance], methods(objective), ["rigid"], seeds=[seed], limits=limits, command=command, **running)
