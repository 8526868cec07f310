"""make bench: what losses, views and panels cost, as ratios within one run or as times of this machine.

python tests/tools/bench.py [losses] [peers] [views] [panels]

All of them without arguments.
"""

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from unittest import mock

import entmax
import numpy as np
import ot
import torch
from pytorch_metric_learning.losses import SupConLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import MeanReducer

from setclr import inner, losses, views
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


def peers() -> None:
    """Outside programs that compute the same, as ratios to ours: above 1 ours is faster. One thread."""
    torch.set_num_threads(1)
    print(f"\n{'outside program, its time by ours at N =':56}" + "".join(f"{N:>9}" for N in SIZES[1:]))
    found: dict[str, list[float]] = {}
    for N in SIZES[1:]:
        y = torch.arange(N) % (N // 4)
        both, sup_con, hard, sinkhorn = y.repeat(2), losses.SupCon(0.1), losses.Triplet(0.5), inner.sinkhorn
        theirs, miner = SupConLoss(0.1), BatchHardMiner()
        triplet, flat = TripletMarginLoss(0.5, reducer=MeanReducer()), torch.full((N,), 1 / N)
        pairs = {
            "pytorch-metric-learning, SupConLoss, N/4 classes": (
                lambda z, y=both, f=theirs: f(z.flatten(0, 1), y),
                lambda z, y=y, f=sup_con: f(z, labels=y),
            ),
            "pytorch-metric-learning, batch-hard triplets": (
                lambda z, y=both, f=triplet, m=miner: f(z.flatten(0, 1), y, m(z.flatten(0, 1), y)),
                lambda z, y=y, f=hard: f(z, labels=y),
            ),
            "POT, sinkhorn, 50 rounds": (
                lambda z, a=flat: ot.sinkhorn(
                    a, a, 1 - z[0] @ z[1].T / E, 0.5, "sinkhorn", 50, 0, warn=False
                ).max(),
                lambda z, f=sinkhorn: f(1 - z[0] @ z[1].T / E, 0.5, 50).P.max(),
            ),
            "entmax, sparsemax": (
                lambda z: entmax.sparsemax(z[0] @ z[1].T, -1).square().sum(),
                lambda z: inner.sparsemax(z[0] @ z[1].T).square().sum(),
            ),
        }
        for name, (outside, ours) in pairs.items():
            taken = medians({"outside": outside, "ours": ours}, N, budget=2.0)
            found.setdefault(name, []).append(taken["outside"] / taken["ours"])
    for name, ratios in found.items():
        print(f"{name:56}" + "".join(f"{ratio:9.2f}" for ratio in ratios))


def view_launches(two: tuple[views.View, ...], N: int = 8) -> int:
    """Operations that a GPU is asked for, the copy of the numbers to it included: the same everywhere."""
    images, draws = torch.zeros(N, 3, 32, 32).byte().to("meta"), views.draw(two, N, torch.Generator())
    with mock.patch.object(torch, "autocast", lambda *_, **__: nullcontext()):  # it does not know this device
        return costs.launches(lambda: views.apply(images, two, draws))


def view_rates(side: int = 32) -> None:
    """Views a second at 32x32 on one thread, eager and compiled, draws included."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print(f"\n{'views/s at 32 px, one thread':28}batch    eager compiled    ratio launches   (best of 30)")
    for batch in (128, 256):
        images = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)
        for name, two in views.PRESETS.items():
            seconds = {False: [], True: []}
            for compiled in (False, True) * 32:
                start = time.perf_counter()
                views.apply(images, two, views.draw(two, batch, generator), compiled)
                seconds[compiled].append(time.perf_counter() - start)
            eager, fast = (2 * batch / min(taken[2:]) for taken in seconds.values())
            asked = view_launches(two)
            print(f"{name:28}{batch:5}{eager:9,.0f}{fast:9,.0f}{fast / eager:9.2f}{asked:9}")


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
    parts = {"losses": ratios, "peers": peers, "views": view_rates, "panels": events}
    for part in sys.argv[1:] or parts:
        parts[part]()
