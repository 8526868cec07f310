"""torch.compile for a training run: whether it pays, whether it works, and a warning where it does not."""

import copy
import warnings
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from setclr.training.distributed import from_first

# Of one processor, roughly: flops and numbers written a second without compiling, seconds of compiling. A GPU
# counts as fifty processors.
FLOPS, NUMBERS, COMPILING = 1.5e11, 1.2e9, 60.0
GPU = 50


def pays(encoder: nn.Module, shapes: Sequence[Sequence[int]], steps: int, device: torch.device) -> bool:
    """Whether a run of `steps` steps on views of these shapes is long enough for torch.compile to pay.

    The time is computed from the encoder's operations and the sizes of its maps. It is not measured, so
    the same call decides the same every time. False for an encoder that cannot run on the meta device.
    """
    from torch.utils.flop_counter import FlopCounterMode  # takes half a second

    numbers = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:
        nonlocal numbers
        numbers += output.numel() if isinstance(output, Tensor) else 0

    try:
        ghost = copy.deepcopy(encoder).to("meta")
        for module in ghost.modules():
            for hooks in (module._forward_hooks, module._forward_pre_hooks):
                hooks.clear()  # the user's own, which may log
            module.register_forward_hook(count)
        with FlopCounterMode(display=False) as products, torch.no_grad():
            for shape in shapes:
                ghost(torch.empty(*shape, device="meta"))
    except Exception:  # a user's encoder can raise any, here where its numbers are missing
        return False
    seconds = 3 * steps * (products.get_total_flops() / FLOPS + numbers / NUMBERS)
    return seconds / (GPU if device.type == "cuda" else 1) > 2 * COMPILING


def wanted(
    compiled: bool | str, encoder: nn.Module, shapes: Sequence[Sequence[int]], steps: int,
    device: torch.device,
) -> bool:  # fmt: skip
    """Whether to compile: `compiled`, or for "auto" what `pays` returns; False where torch.compile fails.

    Without `shapes`, which then change from batch to batch, "auto" is False.

    Raises ValueError unless `compiled` is True, False or "auto".
    """
    if compiled not in (True, False, "auto"):
        raise ValueError(f"compiled must be True, False or 'auto', got {compiled!r}")
    if compiled == "auto":
        compiled = bool(shapes) and pays(encoder, shapes, steps, device)
    return bool(compiled) and from_first(lambda: available(device))


@cache
def available(device: torch.device) -> bool:
    """Whether torch.compile works on this device, tried on one sum; if not, a warning says why."""
    try:
        torch.compile(torch.add)(torch.ones(2, device=device), 1)
    except failures() as error:
        warn(error)
        return False
    return True


def compile_all(parts: Sequence[nn.Module], step: Callable[[], object]) -> bool:
    """Compile the modules in place and try a `step` with them; returns whether that worked.

    If it fails, a warning says why, and the modules are as they were before.
    """
    for part in parts:
        part.compile(dynamic=False)
    try:
        step()
    except failures() as error:
        for part in parts:
            part._compiled_call_impl = None
        warn(error)
        return False
    return True


def failures() -> tuple[type[Exception], ...]:
    """The exceptions by which torch.compile fails; importing them takes as long as torch itself."""
    from torch._dynamo.exc import TorchDynamoException
    from torch._inductor.exc import InductorError

    return TorchDynamoException, InductorError


def warn(error: Exception) -> None:
    reason = " ".join(str(error).split("\n\n")[0].split())  # then come hints for torch's developers
    hint = "on a CPU torch.compile needs a C++ compiler"
    warnings.warn(f"training goes on uncompiled, more slowly: {reason}; {hint} (g++)", stacklevel=2)
