"""HadarE's initial throughput, equation (10), until the Job Tracker has measured it.

::

    throughput = PMI · batch_size · pcie_scaling / (model_weight · dataset_size),   PMI = TFLOPS / √(GB of GPU memory)

The paper prints neither the scales nor a unit; here, in iterations per second of one GPU:

==================  ===========================================================================================
``batch_size``      of the catalogue model; 64 where that is unknown
``model_weight``    small, modest, high, extra high = 1, 2, 3, 4, by the model's gradients: up to 50, 200, 500 MB,
                    or more; modest where these are unknown
``dataset_size``    S, M, L, XL = 1, 2, 3, 4 for the models of Tables II and III, M for others
``pcie_scaling``    1: instances know nothing of buses
``TFLOPS``, memory  of the instance, else of the catalogue's GPU; a type without either has the mean PMI of the
                    other types, or 1
==================  ===========================================================================================

Factors of the model cancel when a job's steps are split among nodes; they matter only between jobs.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.model_catalogue import CatalogueModel, find, gpu_type
from schedgap.instances.schema import GpuType, Instance

BATCH_SIZE = 64
GRADIENT_MB = (50.0, 200.0, 500.0)
MODEST = 2
DATASETS = {"S": 1, "M": 2, "L": 3, "XL": 4}
DATASET = {
    "ResNet-50": "XL",
    "ResNet-18": "S",
    "LSTM": "L",
    "CycleGAN": "M",
    "Transformer": "L",
    "Autoencoder": "XL",
    "MiMa": "M",
}
"""Tables II and III: size of the dataset by model, or by its family."""


def pmi(gpu: GpuType) -> float | None:
    """Return the performance-memory index of a GPU type, if it is known."""
    known = gpu_type(gpu.name)
    tflops, memory_gb = gpu.tflops or known.tflops, gpu.memory_gb or known.memory_gb
    return tflops / math.sqrt(memory_gb) if tflops and memory_gb else None


def scale(model: CatalogueModel | None) -> float:
    """Return ``batch_size / (model_weight · dataset_size)`` of a model of the catalogue, or of an unknown one."""
    if model is None:
        return BATCH_SIZE / (MODEST * DATASETS["M"])
    weight = 1 + int(np.searchsorted(GRADIENT_MB, model.gradient_mb)) if model.gradient_mb > 0 else MODEST
    dataset = DATASET.get(model.name) or DATASET.get(model.family, "M")
    return (model.batch_size or BATCH_SIZE) / (weight * DATASETS[dataset])


def initial(instance: Instance) -> Array:
    """Return the ``(n, k)`` initial throughput of every job on every type, (10)."""
    known = [pmi(gpu) for gpu in instance.cluster.gpu_types]
    usual = float(np.mean([p for p in known if p] or [1.0]))
    by_type = np.array([p or usual for p in known])
    by_model = {name: scale(find(name) if name else None) for name in {job.model for job in instance.jobs}}
    return np.outer([by_model[job.model] for job in instance.jobs], by_type)


def estimate(
    initial_rates: Array, true_rates: Array, measured: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> Array:
    """Return what the tracker knows: measured rates, and the others from (10), rescaled to what was measured.

    Parameters
    ----------
    initial_rates, true_rates, measured
        ``(a, k)`` rates by (10), true rates, and which of these have been measured.
    """
    ratio = np.where(measured, true_rates / initial_rates, 0.0).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
    guess = initial_rates * np.where(ratio > 0, ratio, 1.0)[:, None]
    return np.where(true_rates > 0, np.where(measured, true_rates, guess), 0.0)
