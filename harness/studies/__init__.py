"""Studies: what the commands run on instances. Each has tasks for workers, rows as plain data, and a run.

`compare` runs methods on an instance and certifies their gaps, and `simulate` runs policies on arrivals. `certify` uses
both for the log of a cluster, `reproduce` for the figures of papers, and `sweep` on a grid of instances. `whatif` runs
changes of a log's cluster, `audit` tests what papers claim, and `adversary` looks for instances on which a heuristic
does badly. `frontier` shows what fairness costs tenants that share GPUs.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    ["adversary", "audit", "certify", "compare", "folders", "frontier", "reproduce", "simulate", "sweep", "whatif"],
)
