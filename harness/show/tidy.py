"""Results as tidy frames for pandas and seaborn: a row per result, a column per field and per parameter, and a legend.

``p.load`` is the parameter ``load`` of instances (``gen/20jobs?load=1.2``), and ``m.alpha`` the parameter ``alpha`` of
methods (``zhou.ps.online?alpha=1``). A row whose instance or method does not state a parameter has the default there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from schedgap.harness.show.measures import MeasureTable
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.simulator.policies import POLICIES
from schedgap.instances import catalogue
from schedgap.instances.parameters import base_id
from schedgap.models import MODELS

if TYPE_CHECKING:
    import pandas as pd

PROOF = {False: "exact", True: "upper"}
"""Whether a gap is exact, because a verified decision reaches the certified bound, or an upper estimate."""

METHODS = ("method", "policy", "heuristic")
"""Fields that name a method, whose parameters become columns."""

ADDED = {
    "proof": "exact: a verified decision reaches the certified bound; upper: gap and ratio are at most what they say.",
    "p.": "Parameter of the instance.",
    "m.": "Parameter of the method.",
}


def tidy(rows: Sequence[Any]) -> pd.DataFrame:
    """Return a frame with a row per result; numeric columns have a numeric type even if all values are missing."""
    import pandas as pd

    frame = pd.DataFrame([row.as_dict() for row in rows])
    if not rows:
        return frame
    for measure in rows[0].measures.values():
        if measure.format.kind == "float":
            frame[measure.name] = pd.to_numeric(frame[measure.name])
    if "ratio_is_upper" in frame:
        frame["proof"] = frame["ratio_is_upper"].map(PROOF)
    for prefix, names, usual in (("p.", ("instance",), catalogue.usual), ("m.", METHODS, _usual)):
        for name in names:
            if name in frame:
                _add(frame, prefix, frame[name].tolist(), usual)
    return frame


def _add(frame: pd.DataFrame, prefix: str, names: Sequence[str], usual: Callable[[str, str], Any]) -> None:
    """Add a column for each parameter that some of the names state."""
    stated = {name: catalogue.settings(name) for name in dict.fromkeys(names)}
    for key in dict.fromkeys(key for settings in stated.values() for key in settings):
        value = {name: settings[key] if key in settings else usual(name, key) for name, settings in stated.items()}
        frame[prefix + key] = [value[name] for name in names]


def _usual(method: str, parameter: str) -> Any:
    """Return the default of a method's parameter, or ``None`` if it has none or is not registered here."""
    base = base_id(method)
    for registry in (MODELS, HEURISTICS, POLICIES):
        if base in registry:
            spec = registry.get(base)
            return next((spec.default(p) for p in spec.parameters if p.name == parameter), None)
    return None


def legend(measures: MeasureTable, columns: Sequence[str]) -> pd.Series[str]:
    """Return the meaning of columns, with units."""
    import pandas as pd

    known = {name: measure.sentence for name, measure in measures.items()}
    return pd.Series({c: known.get(c) or ADDED.get(c) or ADDED.get(c[:2], "") for c in columns}, name="meaning")
