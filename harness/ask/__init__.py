"""What people ask of a model or of a decision: explanations, files for other solvers, graphs, and lessons."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [
        "explain", "export", "fairness", "graphs", "lessons", "mechanisms", "properties", "situations",
    ]
)  # fmt: skip
