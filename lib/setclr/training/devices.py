"""Where a training runs, and what torch is told there."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from setclr.checks import integer
from setclr.training.precision import Precision

# Of glibc's mallopt: which option, and the largest value that glibc itself would come to.
TRIM_THRESHOLD, MMAP_THRESHOLD = (-1, 64 << 20), (-3, 32 << 20)


def choose_device(name: str | torch.device | None) -> torch.device:
    """The device of that name, or for None a GPU if there is one. Raises ValueError for an unknown device."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be cpu, cuda or another that torch finds, got {name!r}") from error


def workers_for(workers: int | None) -> int:
    """How many processes read images: as many as asked for, or one less than the processors, at most 8."""
    if workers is None:
        return min(8, max(1, (os.cpu_count() or 1) - 1))
    return integer("workers", workers, least=0, hint="it is the number of processes")


def keep_freed_memory() -> None:
    """Let the process keep what a step frees, up to 64 MB, since the next step asks for as much again.

    glibc would give it back to the system and take it anew page by page, a fifth of a step of Conv-4 on a
    CPU. This holds for the whole process; without glibc nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt:
        mallopt(*TRIM_THRESHOLD)
        mallopt(*MMAP_THRESHOLD)


@contextmanager
def settings(precision: Precision, deterministic: bool) -> Iterator[None]:
    """torch's global settings for a step on a GPU, put back afterwards; a CPU has none.

    float32 means float32: TF32 is for bf16 and fp16. cuDNN tries out its algorithms unless `deterministic`,
    which also refuses operations whose sums come in any order.
    """
    if precision.device.type != "cuda":
        yield
        return
    if deterministic:  # cuBLAS reads it when it is first used
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn: Any = torch.backends.cudnn
    tf32 = "ieee" if precision.name == "float32" else "tf32"
    wanted: list[tuple[Any, str, Any]] = [
        (torch.backends.cuda.matmul, "fp32_precision", tf32), (cudnn.conv, "fp32_precision", tf32),
        (cudnn, "benchmark", not deterministic), (cudnn, "deterministic", deterministic),
    ]  # fmt: skip
    before = [getattr(where, name) for where, name, _ in wanted]
    strict = torch.are_deterministic_algorithms_enabled()
    try:
        for where, name, value in wanted:
            setattr(where, name, value)
        torch.use_deterministic_algorithms(strict or deterministic)
        yield
    finally:
        torch.use_deterministic_algorithms(strict)
        for (where, name, _), value in zip(wanted, before):
            setattr(where, name, value)
