"""The papers' claims, one file per paper; each registers its own (:data:`harness.audit.registry.CLAIMS`)."""

from instances.discovery import import_submodules

import_submodules(__name__)
