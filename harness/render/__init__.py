"""How what a study found reads: the same numbers, headline and columns in the terminal, in files and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedgap.harness.table import Block


def told(found: Any) -> tuple[list[Block], Sequence[str], list[Mapping[str, Any]]]:
    """Return what a study found as blocks for people, and as fields and records for programs.

    Parameters
    ----------
    found
        A :class:`~schedgap.harness.run.Run` or ``Comparison``, a ``Simulation``, or an ``Audit``.
    """
    kind = found.meta.get("kind")
    if kind == "simulate":
        from schedgap.harness.simulation import render as simulation
        from schedgap.harness.simulation.rows import FIELDS as SIMULATED

        blocks = simulation.blocks(found.rows, found.instances)
        return blocks, SIMULATED, [row.as_dict() for row in found.rows]
    if kind == "audit":
        from schedgap.harness.audit import render as audit
        from schedgap.harness.audit.finding import FIELDS as FOUND

        return audit.blocks(found.findings), FOUND, [finding.as_dict() for finding in found.findings]
    if kind == "adversary":
        from schedgap.harness.adversary import render as adversary
        from schedgap.harness.adversary.running import as_dict

        records: list[Mapping[str, Any]] = [as_dict(one) for one in found.worst]
        return adversary.blocks(found), list(records[0]) if records else [], records
    from schedgap.harness.render import formats
    from schedgap.harness.rows import FIELDS

    run = getattr(found, "run", found)
    return formats.blocks(run), FIELDS, [row.as_dict() for row in run.rows]
