"""make bench: what losses, views and panels cost, as ratios within one run or as times of this machine.

python tests/bench.py [losses] [views] [panels]     all three without arguments
"""

import sys
import time
from collections.abc import Callable

import ipywidgets
import numpy as np
import torch

from setclr import explore, views
from setclr.losses import GroCo, InfoNCE

LOSSES = {"InfoNCE": InfoNCE(0.5), "GroCo, 10 negatives": GroCo(), "GroCo, 20 negatives": GroCo(8.0, 20)}


def times(call: Callable, repeat: int) -> np.ndarray:
    """Seconds of each of `repeat` calls, after two that are not counted."""
    seconds = []
    for _ in range(repeat + 2):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return np.array(seconds[2:])


def losses(sizes=(64, 256, 1024), E: int = 128) -> None:
    """Forward and backward, V=2, float32, one thread: medians of interleaved calls as ratios to InfoNCE's."""
    torch.set_num_threads(1)
    print(f"{'loss, ratio to InfoNCE at N =':32}" + "".join(f"{N:>9}" for N in sizes) + "   last growth")
    table = {name: [] for name in LOSSES}
    for N in sizes:
        z = torch.randn(2, N, E, requires_grad=True)
        taken = {name: [] for name in LOSSES}
        for _ in range(max(5, 2000 // N)):
            for name, loss in LOSSES.items():
                taken[name].append(times(lambda loss=loss, z=z: loss(z).backward(), 1)[0])
        for name in LOSSES:
            table[name].append(np.median(taken[name]))
    for name, medians in table.items():
        ratios = "".join(f"{m / base:9.2f}" for m, base in zip(medians, table["InfoNCE"]))
        print(f"{name:32}{ratios}   {medians[-1] / medians[-2]:.1f}x")
    print("InfoNCE itself, ms:             " + "".join(f"{1e3 * m:9.2f}" for m in table["InfoNCE"]))


def view_rates(batch: int = 256, side: int = 32) -> None:
    """Views a second at 32x32 on two threads."""
    torch.set_num_threads(2)
    images = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    print(f"\n{'views/s at 32 px, two threads':32}   median     best")
    for name, preset in views.PRESETS.items():
        seconds = times(lambda preset=preset: views.augment(images, preset, generator), 30)
        print(f"{name:32}{2 * batch / np.median(seconds):9,.0f}{2 * batch / seconds.min():9,.0f}")


def panels() -> None:
    """Kernel time of an event on each panel, milliseconds."""
    print(f"\n{'event on a panel, ms':32}   median  slowest")
    for name in explore.__all__:
        panel = getattr(explore, name)()
        seconds = []
        for control in panel.controls.values():
            for value in values_of(control):
                if value != control.value:
                    start = time.perf_counter()
                    control.value = value
                    seconds.append(time.perf_counter() - start)
        print(f"{name:32}{1e3 * np.median(seconds):9.1f}{1e3 * max(seconds):9.1f}")


def values_of(control) -> list:
    if isinstance(control, ipywidgets.FloatLogSlider):
        return list(10 ** np.linspace(control.min, control.max, 30))
    if hasattr(control, "min"):
        return np.linspace(control.min, control.max, 30).astype(type(control.min)).tolist()
    return list(control.options)


if __name__ == "__main__":
    parts = {"losses": losses, "views": view_rates, "panels": panels}
    for part in sys.argv[1:] or parts:
        parts[part]()
