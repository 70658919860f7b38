"""What people see: numbers as text, tables, the terminal, figures, pages, the artefact of a paper, and differences."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["artefact", "diff", "drawing", "figure", "page", "plot", "plots", "table", "text", "tidy"]
)
