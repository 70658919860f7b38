"""Run SCIP on a model in a file, as a program that imports nothing of this package.

Every line that it prints is a JSON object; numbers are those of the file's model.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

WATCHED = ("BESTSOLFOUND", "DUALBOUNDIMPROVED")


def main(path: str, settings: dict[str, Any]) -> None:
    """Solve the model in an MPS file, tell better incumbents and bounds, and at the end the values."""
    import pyscipopt

    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(path)
    for name, value in settings.items():
        scip.setParam(name, value)

    def tell(**what: Any) -> None:
        sys.stdout.write(json.dumps({"at": time.perf_counter() - began, **what}) + "\n")
        sys.stdout.flush()

    class Watch(pyscipopt.Eventhdlr):  # type: ignore[misc]
        """Tells every better incumbent and bound."""

        def eventinit(self) -> None:
            for kind in WATCHED:
                self.model.catchEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexit(self) -> None:
            for kind in WATCHED:
                self.model.dropEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexec(self, event: Any) -> None:
            tell(incumbent=self.model.getPrimalbound(), bound=self.model.getDualbound())

    scip.includeEventhdlr(Watch(), "watch", "tells better incumbents and bounds")
    began = time.perf_counter()
    tell(built=True)
    scip.optimize()
    told, feasible = scip.getStatus(), scip.getNSols() > 0
    if told == "inforunbd":
        scip.freeTransform()
        scip.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
        scip.optimize()
        told = scip.getStatus()
    found = {"status": told, "bound": scip.getDualbound(), "nodes": int(scip.getNTotalNodes())}
    if feasible:
        best = scip.getBestSol()
        values = {column.name: scip.getSolVal(best, column) for column in scip.getVars()}
        found |= {"objective": scip.getObjVal(), "values": values}
    tell(**found)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
