"""Choose the device, the number format and torch's settings; compile; what out of memory looks like."""

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setclr.settings import flag, one_of, whole
from setclr.training.distributed import from_first

PRECISIONS = ("auto", "float32", "bf16", "fp16")
DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")  # in torch's errors
LONG = 2000  # steps from which "auto" compiles; compiling takes a minute or two

# Arguments of glibc's mallopt: an option, and the largest value to which glibc itself would raise it.
TRIM_THRESHOLD, MMAP_THRESHOLD = (-1, 64 << 20), (-3, 32 << 20)


def choose_device(name: str | torch.device | None) -> torch.device:
    """The device of that name, or for None a GPU if there is one. Raises ValueError for an unknown device."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        if (device := torch.empty(0, device=name).device).type != "meta":  # which has no values
            return device
        raise RuntimeError("no values")
    except (RuntimeError, AssertionError) as error:
        there = ", ".join(["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))])
        raise ValueError(f"device must be one that torch finds here ({there}), got {str(name)!r}") from error


def reuse_freed_pages() -> None:
    """Let the process keep up to 64 MB of the RAM that a step frees, since the next step needs as much.

    glibc would return it to the system and take it back page by page, which costs a fifth of a step of
    Conv-4 on a CPU. The setting holds for the whole process. Without glibc nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt:
        mallopt(*TRIM_THRESHOLD)
        mallopt(*MMAP_THRESHOLD)


@dataclass(frozen=True)
class Machine:
    """On what, and how, a Trainer computes.

    >>> from setclr.training import Machine
    >>> Machine("cpu", precision="bf16").precision
    'bf16'

    Args:
        device: "cpu", "cuda", ...; None takes a GPU where there is one.
        precision: "float32", "bf16", "fp16", or "auto": bf16 where the device has it in hardware.
        chunk: images, or the like, that go through the encoder together (`GradCache`); None: all.
        workers: processes that read files; None: one less than the processors, at most 8.
        compiled: compile views, encoder, head and loss (torch.compile). "auto": a run of 2,000 steps or more.
        deterministic: the same bits in every run on a GPU, too. torch then takes slower algorithms, some
            several times slower, and raises an error where it has none. On a CPU bits are always the same.
    """

    device: str | torch.device | None = None
    precision: str = one_of("auto", PRECISIONS)
    chunk: int | None = whole(None, least=1)
    workers: int | None = whole(None, 0, 256, "it is the number of processes that read files")
    compiled: bool | str = "auto"
    deterministic: bool = flag(False)

    def compiles(self, fixed: bool, steps: int, things: str) -> bool:
        """Whether a run of `steps` steps compiles: as `compiled` says, for "auto" if the run is long.

        Unless the shapes of the views are `fixed`, "auto" is False, and True raises ValueError, as does what
        is none of the three.
        """
        if self.compiled not in (True, False, "auto"):
            raise ValueError(f"compiled must be True, False or 'auto', got {self.compiled!r}")
        if self.compiled is True and not fixed:
            source = f"a source whose sizes change from batch to batch, got {things}"
            raise ValueError(f"compiled must be False or 'auto' for {source}; leave it out")
        return fixed and (steps >= LONG if self.compiled == "auto" else bool(self.compiled))


class Precision:
    """The number format of training: float32, or autocast to bf16 or fp16.

    With fp16 the loss is scaled, since its gradients would underflow otherwise. "auto" is bf16 where the
    device has it in hardware, otherwise float32; the first process decides for all. `name` is the format
    in use. `clips`: float32 on a CPU, where ValueError is raised for 16 bits.
    """

    def __init__(self, name: str, device: torch.device, clips: bool = False):
        if clips and device.type == "cpu" and name != "float32":
            if name != "auto":
                why = "torch's convolution of clips in 16 bits reads memory that nobody wrote; take a GPU"
                raise ValueError(f"precision must be float32 for clips on a CPU, got {name!r}: {why}")
            name = "float32"
        if name == "auto":
            name = from_first(lambda: "bf16" if has_bf16(device) else "float32")
        self.name, self.device = name, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager:
        return torch.autocast(self.device.type, DTYPES[self.name], enabled=self.name != "float32")

    def backward(self, value: Tensor) -> None:
        self.scaler.scale(value).backward()

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """Take a step of the optimiser; with fp16, skip it if a gradient overflowed."""
        self.scaler.step(optimiser)
        self.scaler.update()


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 in hardware: GPUs from 2020 on, CPUs with AMX or AVX512-BF16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()


@contextmanager
def settings(precision: Precision, deterministic: bool) -> Iterator[None]:
    """Set torch's global options for a step on a GPU, and restore them afterwards; a CPU needs none.

    TF32 is off for float32 and on for bf16 and fp16. cuDNN tries out its algorithms unless
    `deterministic`. `deterministic` also makes torch raise an error for operations that add numbers in a
    varying order.
    """
    if precision.device.type != "cuda":
        yield
        return
    if deterministic:  # cuBLAS reads the variable when it is first used
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


def compile_all(parts: Sequence[nn.Module], step: Callable[[], object]) -> bool:
    """Compile the modules in place and try a `step` with them; returns whether that worked.

    If it fails, a warning says why, and the modules are as they were before.
    """
    from torch._dynamo.exc import TorchDynamoException  # takes as long to import as torch itself
    from torch._inductor.exc import InductorError

    try:
        for part in parts:
            part.compile(dynamic=False)
        step()
    except (TorchDynamoException, InductorError) as error:
        for part in parts:
            part._compiled_call_impl = None
        reason = " ".join(str(error).split("\n\n")[0].split())  # then come hints for torch's developers
        hint = "on a CPU torch.compile needs a C++ compiler"
        warnings.warn(f"training goes on uncompiled, more slowly: {reason}; {hint} (g++)", stacklevel=2)
        return False
    return True


def is_oom(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a CPU or a GPU."""
    ran_out = any(sign in str(error).lower() for sign in OUT_OF_MEMORY)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and ran_out)
