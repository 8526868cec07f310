"""torch.compile for a training run: whether it is wanted, and a warning where it does not work."""

import warnings
from collections.abc import Callable, Sequence

from torch import nn

LONG = 2000  # steps from which "auto" compiles; compiling takes a minute or two


def wanted(compiled: bool | str, fixed: bool, steps: int, things: str) -> bool:
    """Whether to compile: `compiled`, or for "auto" whether a run of `steps` steps is a long one.

    Unless the shapes of the views are `fixed`, "auto" is False, and True raises ValueError, as does what is
    none of the three.
    """
    if compiled not in (True, False, "auto"):
        raise ValueError(f"compiled must be True, False or 'auto', got {compiled!r}")
    if compiled is True and not fixed:
        source = f"a source whose sizes change from batch to batch, got {things}"
        raise ValueError(f"compiled must be False or 'auto' for {source}; leave it out")
    return fixed and (steps >= LONG if compiled == "auto" else bool(compiled))


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
