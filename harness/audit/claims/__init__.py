"""The papers' claims, one file per paper; each registers its own (:data:`schedgap.harness.audit.row.CLAIMS`)."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
