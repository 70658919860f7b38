"""Catalogue of training jobs and GPUs: rates, sensitivity and gradient sizes, each with its source.

``model_catalogue.toml`` holds the published facts. Missing numbers are derived here by stated rules, and
:attr:`CatalogueModel.derived` lists them. Rates are iterations per second of ONE GPU.

>>> find("ResNet-50 (batch size 64)").rates["V100"]
4.39477
>>> find("resnet50", suite="tiresias").name
'Tiresias ResNet-50'
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from schedgap.instances.schema import GpuType, MatrixSensitivity, PipelineSensitivity

MEASURED = ("V100", "P100", "K80")
"""GPU types on which most models were measured; a missing rate is derived from the first of the others."""

PCIE = 3.0
"""PCIe version of GPUs for which the catalogue gives none."""

PRINTED_SPEEDUPS = (1.39, 2.15)
"""OEF, Fig. 1(a): VGG and LSTM on an RTX 3090 relative to an RTX 3070; the other four models lie between."""


@dataclass(frozen=True)
class Pipeline:
    """A model's input pipeline, an alternative to its measured matrix: the slowest of three stages sets the rate.

    Attributes
    ----------
    compute
        Iterations per second of a GPU that never waits for data, in units of the model's rate (with 3 CPUs and
        62.5 GB).
    sensitivity
        Preprocessing and fetching for one GPU of the first type of :data:`MEASURED` that has a rate.
    datasets
        Megabytes per iteration from the other data sets for which the model is documented, by name.
    """

    compute: float
    sensitivity: PipelineSensitivity
    dataset: str
    datasets: Mapping[str, float]
    derived: str

    def of_gang(self, gpus: int, dataset: str | None = None) -> PipelineSensitivity:
        """Return the pipeline of a gang: one data set, and a process and a share of the bandwidth for each GPU.

        Each GPU has its share of the server's bandwidth. `dataset` is one of :attr:`datasets`, by default
        :attr:`dataset`.
        """
        changes = {name: gpus * getattr(self.sensitivity, name) for name in ("storage_mb_per_s", "process_memory_gb")}
        if dataset is not None:
            changes["item_mb_per_iteration"] = self.datasets[dataset]
            changes["dataset_gb"] = _document()["pipelines"]["dataset_gb"][dataset]
        return self.sensitivity.model_copy(update=changes)


@dataclass(frozen=True)
class CatalogueModel:
    """A measured training job.

    Attributes
    ----------
    name, aliases
        Unique name, with the batch size for Gavel's job types (``ResNet-50 (batch size 64)``); other spellings in
        traces and papers.
    family, task, suite
        Architecture, shared by entries of several suites; ``image``, ``language``, …; ``gavel``, ``synergy``, ….
    batch_size, gradient_mb
        Items per iteration, where the source states it; megabytes of gradients exchanged per iteration.
    sensitivity, pipeline
        Measured progress by CPUs and memory per GPU, and the same as an input pipeline.
    source, derived
        Where the facts come from, with the licence; which numbers are derived, and how.
    """

    name: str
    family: str
    task: str
    rates: Mapping[str, float]
    aliases: tuple[str, ...]
    batch_size: int | None
    sensitivity: MatrixSensitivity | None
    pipeline: Pipeline
    gradient_mb: float
    source: str
    derived: tuple[str, ...]
    suite: str


def find(name: str, suite: str | None = None) -> CatalogueModel | None:
    """Return the model with this name or alias, ignoring case and punctuation, or ``None``.

    Names are ``ResNet-50 (batch size 64)``, ``vgg19``, ``res18``, ``shufflenet_v2_x1_0``, … If several suites have the
    name, the entry of `suite` is preferred, then the first in the file.
    """
    models, key = _names(), _key(name)
    return models.get((suite, key)) or models.get((None, key))


def gpu_type(name: str) -> GpuType:
    """Return a GPU type with its peak TFLOPS and memory; an unknown type has neither and keeps its name."""
    return _gpus().get(_key(name), (GpuType(name=name), PCIE))[0]


def pcie_version(name: str) -> float:
    """Return the PCIe version of a GPU type, :data:`PCIE` where the catalogue gives none."""
    return _gpus().get(_key(name), (None, PCIE))[1]


def rates_on(model: CatalogueModel, gpu_types: Iterable[str]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the rates of a model on the given GPU types, and a note for every derived rate.

    A rate that was not measured is the rate on the model's first GPU type times the ratio of peak TFLOPS, or times 1
    where the TFLOPS are unknown. Rates are iterations per second of one GPU; a note reads ``rate of … on T4 = rate on
    V100 x 0.518 (TFLOPS)``.
    """
    base = _base(model.rates)
    rates: dict[str, float] = {}
    derived = []
    for name in gpu_types:
        canonical = gpu_type(name).name
        if canonical in model.rates:
            rates[name] = model.rates[canonical]
            continue
        tflops, base_tflops = gpu_type(canonical).tflops, gpu_type(base).tflops
        ratio = tflops / base_tflops if tflops and base_tflops else None
        rates[name] = significant(model.rates[base] * (ratio or 1.0))
        why = f"x {ratio:.3g} (TFLOPS)" if ratio else "(peak TFLOPS unknown)"
        derived.append(f"rate of {model.name} on {name} = rate on {base} {why}")
    return rates, tuple(derived)


def significant(value: float, digits: int = 6) -> float:
    """Return `value` rounded to `digits` significant digits."""
    return float(f"{value:.{digits}g}")


def _base(rates: Mapping[str, float]) -> str:
    """Return the GPU type from whose rate others are derived."""
    return next(r for r in (*MEASURED, *rates) if r in rates)


def _key(name: str) -> str:
    """Reduce a name to lower-case letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(resources.files("schedgap.instances").joinpath("model_catalogue.toml").read_text("utf-8"))


@cache
def _gpus() -> dict[str, tuple[GpuType, float]]:
    """Return GPU types and their PCIe versions by the keys of their names and aliases."""
    gpus = {}
    for entry in _document()["gpus"]:
        record = GpuType(name=entry["name"], tflops=entry["tflops"], memory_gb=entry["memory_gb"])
        value = record, entry.get("pcie", PCIE)
        gpus.update({_key(name): value for name in (record.name, *entry.get("aliases", ()))})
    return gpus


@cache
def _names() -> dict[tuple[str | None, str], CatalogueModel]:
    """Return models by (suite, key) and (None, key); the first entry with a name has it, names before aliases."""
    models = list(MODELS.values())
    pairs = [(m.name, m) for m in models] + [(alias, m) for m in models for alias in m.aliases]
    by_key: dict[tuple[str | None, str], CatalogueModel] = {}
    for name, model in pairs:
        by_key.setdefault((model.suite, _key(name)), model)
        by_key.setdefault((None, _key(name)), model)
    return by_key


def _load() -> dict[str, CatalogueModel]:
    """Build all models in the order of the file, one per batch size where an entry has several.

    A derived entry refers (by `like`) only to models above it.
    """
    models: dict[str, CatalogueModel] = {}
    for entry in _document()["models"]:
        if "batches" not in entry:
            models[entry["name"]] = _model(entry, models)
        for size, rates in entry.get("batches", {}).items():
            default = int(size) == entry["default_batch"]
            name = f"{entry['name']} (batch size {size})"
            of_size = {
                "name": name,
                "batch_size": int(size),
                "rates": dict(zip(entry["gpus"], rates, strict=True)),
                "aliases": (entry["name"], *entry.get("aliases", ())) if default else (),
            }
            models[name] = _model(entry | of_size, models)
    return models


def _model(entry: dict[str, Any], models: Mapping[str, CatalogueModel]) -> CatalogueModel:
    like = models.get(entry.get("like", ""))
    by_speedup = "speedup" in entry or "speedup_rank" in entry
    rates, rate_notes = _speedup_rates(entry, like) if by_speedup else _rates(entry, like)
    donor = entry.get("sensitivity_like")
    table = _document()["sensitivity"]
    matrix = (_entry(donor) if donor else entry).get("matrix", donor or entry["name"])
    notes = [*rate_notes, f"sensitivity = matrix of {donor}"] if donor else rate_notes
    gradient = f"gradient_mb = 4 bytes x {entry['parameters_m']:g} M parameters ({entry['parameters_from']})"
    return CatalogueModel(
        name=entry["name"],
        family=entry["family"],
        task=entry["task"],
        rates=rates,
        aliases=tuple(entry.get("aliases", ())),
        batch_size=entry.get("batch_size"),
        sensitivity=MatrixSensitivity(
            cpus_per_gpu=tuple(table["cpus_per_gpu"]),
            memory_gb_per_gpu=tuple(table["memory_gb_per_gpu"]),
            progress=tuple(map(tuple, table["matrices"][matrix])),
        ),
        pipeline=_pipeline(entry, rates[_base(rates)]),
        gradient_mb=significant(4 * entry["parameters_m"]),
        source=_document()["suites"][entry["suite"]],
        derived=(*notes, gradient),
        suite=entry["suite"],
    )


def _rates(entry: dict[str, Any], like: CatalogueModel | None) -> tuple[dict[str, float], list[str]]:
    """Return the rates of an entry and notes; rates missing on K80, P100 and V100 follow from the ratios of `like`."""
    rates = dict(entry.get("rates", {}))
    missing = [r for r in reversed(MEASURED) if r not in rates]
    if like is None or not missing:
        return rates, []
    base = next((r for r in MEASURED if r in rates), None)
    scale = rates[base] / like.rates[base] if base else 1.0
    rates.update({r: significant(like.rates[r] * scale) for r in missing})
    how = f"rate on {base} x ratio of {like.name}" if base else f"rates of {like.name}"
    return {r: rates[r] for r in reversed(MEASURED)}, [f"rates on {', '.join(missing)} = {how}"]


def _speedup_rates(entry: dict[str, Any], like: CatalogueModel | None) -> tuple[dict[str, float], list[str]]:
    """Return rates on RTX 3070, 3080 and 3090, and notes, from a printed speedup or a rank between the two printed."""
    if like is None:
        raise ValueError(f"{entry['name']}: a model with a speedup needs the key 'like'")
    low, high = PRINTED_SPEEDUPS
    rank = entry.get("speedup_rank")
    speedup = entry["speedup"] if rank is None else low * (high / low) ** (rank / 5)
    slow, middle, fast, v100 = (gpu_type(r).tflops or math.nan for r in ("RTX 3070", "RTX 3080", "RTX 3090", "V100"))
    exponent = math.log(middle / slow) / math.log(fast / slow)
    base = like.rates["V100"] * slow / v100
    speedups = {"RTX 3070": 1.0, "RTX 3080": speedup**exponent, "RTX 3090": speedup}
    notes = [
        f"rate on RTX 3070 = rate of {like.name} on V100 x {slow / v100:.3g} (TFLOPS)",
        f"speedup on RTX 3080 = speedup on RTX 3090 ^ {exponent:.3g} (power law in TFLOPS)",
    ]
    if rank is not None:
        notes.append(f"speedup on RTX 3090 = {low} x ({high}/{low})^({rank}/5), between the printed VGG and LSTM")
    return {r: significant(base * s) for r, s in speedups.items()}, notes


def _pipeline(entry: dict[str, Any], rate: float) -> Pipeline:
    """Return the pipeline of an entry, its own or another model's, with amounts in units of the entry's rate."""
    table = _document()["pipelines"]
    own = entry.get("pipeline_like", entry.get("sensitivity_like", entry["name"]))
    facts = table["models"][own]
    scale = 1.0
    note = (
        f"pipeline on {facts['dataset']}: computes at {facts['compute']:g} x the rate ({facts['compute_from']}), "
        f"{facts['cpus']:g} CPUs prepare at the rate, {facts['item_mb']:g} MB per iteration ({facts['item_from']}), "
        f"{table['storage_mb_per_s']:g} MB/s"
    )
    if own != entry["name"]:
        scale = _entry(own)["rates"]["V100"] / rate
        note = f"pipeline = that of {own}, in units of the rate"
    sensitivity = PipelineSensitivity(
        prep_rate_per_cpu=significant(rate / facts["cpus"]),
        item_mb_per_iteration=significant(facts["item_mb"] * scale),
        dataset_gb=table["dataset_gb"][facts["dataset"]],
        process_memory_gb=table["process_memory_gb"][_entry(own)["task"]],
        storage_mb_per_s=table["storage_mb_per_s"],
    )
    others = {name: significant(mb * scale) for name, mb in facts.get("others", {}).items()}
    return Pipeline(facts["compute"], sensitivity, facts["dataset"], others, note)


def _entry(name: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(e for e in _document()["models"] if e["name"] == name)
    return entry


MODELS: Mapping[str, CatalogueModel] = _load()
"""Every model by name, in the order of the file (Gavel's measurements first)."""
