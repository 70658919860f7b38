"""The instance: content whose parts fit together, and how a notebook shows it."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from schedgap.instances.schema import checks
from schedgap.instances.schema.content import Content
from schedgap.instances.schema.summary import to_html


class Instance(Content):
    """A cluster, its jobs and tenants, a horizon, and what has been published about them."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        checks.check_sizes(self)
        checks.check_horizon(self)
        checks.check_names(self)
        checks.check_cluster(self)
        checks.check_tenants(self)
        checks.check_jobs(self)
        return self

    def _repr_html_(self) -> str:
        return to_html(self)
