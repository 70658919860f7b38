"""The harness: run schedulers, check and certify their results, and show them. It has six rooms.

`cli` are the commands, and `studies` what they run. `engine` runs tasks in workers and keeps results in folders,
`check` tests decisions against the raw instance, `show` makes tables, figures and pages, and `ask` is what people want
to know of one model. :mod:`schedgap` exports the main functions (``sg.compare``).
"""

from __future__ import annotations

import lazy_loader

# With this, `import schedgap as sg` is enough to use `sg.harness.ask.fairness`.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["ask", "check", "cli", "engine", "show", "studies"])
