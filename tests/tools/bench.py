"""make bench: what losses and panels cost, as ratios within one run or as times of this machine.

python tests/tools/bench.py [losses] [panels]

All of them without arguments.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from setclr import losses
from setclr_course import costs, panels

LOSSES = [
    "InfoNCE(0.5)", "LinearAssignment()", "LinearAssignment(0.0, 0.1, 'batch-hard')", "Triplet()",
    "NTLogistic()", "SparseCLR()", "QARe()", "QARe('euclidean')", "GroCo()", "GroCo(8.0, 20)", "IOT('total')",
    "IOT('rows')", "IOT('both', 0.5, 8)", "MMCL()", "MMCL(solver='exact')", "MMCL(solver='pgd')",
    "AlignUniform()", "HardNegatives()", "InvaSpread()", "DebiasedInfoNCE()", "HCL()",
]  # fmt: skip
SIZES = (64, 256, 1024)
E = 128  # dimensions; V = 2 views of N images


def medians(calls: dict[str, Callable], N: int, budget: float = 4.0) -> dict[str, float]:
    """Median seconds of forward and backward of each, in turns: what `budget` seconds hold, up to 50."""
    runs = costs.seconds(calls, [N], E, budget, least=1)
    return {name: costs.middle(seconds[N]).median for name, seconds in runs.items()}


def ratios() -> None:
    """Forward and backward, V=2, float32, one thread, as ratios to InfoNCE's in the same run."""
    torch.set_num_threads(1)
    calls = {text: losses.parse(text) for text in LOSSES}
    table = {N: medians(calls, N) for N in SIZES}
    print(f"{'loss, ratio to InfoNCE at N =':46}" + "".join(f"{N:>9}" for N in SIZES) + "   last growth")
    for text in LOSSES:
        shown = "".join(f"{table[N][text] / table[N][LOSSES[0]]:9.2f}" for N in SIZES)
        print(f"{text:46}{shown}{table[SIZES[-1]][text] / table[SIZES[-2]][text]:13.1f}x")
    print(f"{'InfoNCE itself, ms':46}" + "".join(f"{1e3 * table[N][LOSSES[0]]:9.2f}" for N in SIZES))


def events() -> None:
    """Kernel time of an event on each panel, milliseconds: of its slowest control, at 13 stops."""
    print(f"\n{'event on a panel, ms':32}   median  slowest")
    for name in panels.__all__:
        panel, found = getattr(panels, name)(), []
        for control, knob in panel.knobs.items():
            seconds = []
            for stop in np.linspace(0, knob.stops - 1, min(13, knob.stops)).round():
                start = time.perf_counter()
                panel.seen({**panel.values, control: knob.stop(int(stop))})
                seconds.append(time.perf_counter() - start)
            found.append((1e3 * np.median(seconds), 1e3 * max(seconds), control))
        median, slowest, control = max(found)
        print(f"{name:32}{median:9.1f}{slowest:9.1f}  {control}")


if __name__ == "__main__":
    parts = {"losses": ratios, "panels": events}
    for part in sys.argv[1:] or parts:
        parts[part]()
