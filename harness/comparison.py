"""What :func:`schedgap.harness.compare` returns: the rows as a table, figures and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.harness.figures import Plots
from schedgap.harness.rows import FAILED, Row
from schedgap.harness.run import Run

if TYPE_CHECKING:
    import pandas as pd


class Comparison:
    """Certified results of a run.

    Parameters
    ----------
    run
        Rows, instances, decisions and traces.
    folder
        Results folder, where the run was saved.
    """

    def __init__(self, run: Run, folder: Path | None = None) -> None:
        self.run = run
        self.folder = folder

    @property
    def rows(self) -> list[Row]:
        """The rows, in the order of the table."""
        return self.run.rows

    @property
    def meta(self) -> dict[str, Any]:
        """Content of ``run.json``."""
        return self.run.meta

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run before all methods had finished."""
        return bool(self.meta.get("interrupted"))

    @property
    def ok(self) -> bool:
        """Whether every method that ran ended in order and every certificate held."""
        return all(row.status not in FAILED and row.verified is not False for row in self.rows)

    @property
    def table(self) -> pd.DataFrame:
        """One line per row of the comparison, columns as in :class:`schedgap.harness.rows.Row`."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.rows])

    @property
    def plot(self) -> Plots:
        """The figures, as methods: ``comparison.plot.gap()``."""
        return Plots(self.run)

    def decision(self, method: str, seed: int = 0) -> Any:
        """Return the decision of a method on the (first) instance that it decided."""
        return next(d for (_, name, s, _), d in self.run.decisions.items() if (name, s) == (method, seed))

    def to_html(self) -> str:
        """Return the self-contained report page."""
        from schedgap.harness.report import to_html

        return to_html(self.run)

    def _repr_html_(self) -> str:
        from schedgap.harness.report import to_fragment

        return to_fragment(self.run)
