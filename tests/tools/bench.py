"""make bench: what losses, panels and a training step cost, as ratios within one run or as times here.

python tests/tools/bench.py [losses] [panels] [engine] [loop]

All of them without arguments. The last two are of the loop, and take a GPU if there is one.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from setclr import losses, models
from setclr.recipes import ImageRecipe
from setclr.training.devices import Precision, reuse_freed_pages, settings
from setclr.training.grad_cache import GradCache
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


# The loop beside its encoder, and every loss in a step

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
WHERE = torch.cuda.get_device_name() if ON_GPU else costs.this_machine()
IN_A_STEP = {
    "InfoNCE(0.5)": "",
    "InfoNCE(0.5) + 1.125 * QARe()": "QARe paper: +13 % of a step at 256, +29 % at 2048 (ResNet-32)",
    "SparseCLR()": "",
    "SparseCLR() + 1.125 * QARe()": "",
    "GroCo()": "GroCo paper: 526 ms against 514 (ResNet-50, 224 px, batch 128)",
    "IOT('total')": "",
    "IOT('rows')": "",
    "IOT('both', 0.5, 8)": "IOT-CL paper: as SimCLR",
    "MMCL()": "MMCL paper: like SimCLR",
    "MMCL(solver='exact')": "",
}


def whole(recipe: ImageRecipe, steps: int, compiled: bool = False) -> float:
    """Images a second of the loop as it is; three first steps not counted. On a GPU without waiting between
    steps, on a CPU of the fastest step, which nothing else on the machine has slowed down."""
    epoch = costs.noise_trainer(recipe, steps + 4, DEVICE, compiled).epoch()
    for _ in range(3):
        next(epoch)
    taken, started = [], now()
    for _ in range(steps):
        begun = time.perf_counter()
        next(epoch)
        taken.append(time.perf_counter() - begun)
    return steps * recipe.batch / (now() - started) if ON_GPU else recipe.batch / min(taken)


def engine() -> None:
    """The loop beside its encoder alone, forward and backward, in one run: InfoNCE, two views of 32 px."""
    modes = {"float32 eager": ("float32", False), "float32 compiled": ("float32", True),
             "bf16 compiled": ("bf16", True)}  # fmt: skip
    print(f"\nviews/s of the encoder alone and of the whole loop, InfoNCE, views of 'qare', 32 px, {WHERE}")
    print(f"{'':22}" + "".join(f"{mode:>18}" for mode in modes) + "   loop / its encoder   loop / eager loop")
    sizes = [("conv4", 128, 60), ("conv4", 512, 30), ("resnet32", 64, 12), ("resnet18", 32, 12)]
    reuse_freed_pages()  # as the loop does
    for encoder, batch, steps in [("resnet18", 512, 40)] if ON_GPU else sizes:
        alone, loops = [], []
        for precision, compiled in modes.values():
            torch._dynamo.reset()
            alone.append(encoder_alone(encoder, batch, steps, precision, compiled))
            recipe = ImageRecipe(
                "InfoNCE(0.5)", views="qare", encoder=encoder, batch=batch, precision=precision
            )
            loops.append(2 * whole(recipe, steps, compiled))
        print(f"{encoder + ', ' + str(batch):22}" + "".join(f"{rate:18,.0f}" for rate in alone))
        ratios = f"{loops[-1] / alone[-1]:21.2f}{loops[-1] / loops[0]:20.2f}"
        print(f"{'  whole loop':22}" + "".join(f"{rate:18,.0f}" for rate in loops) + ratios, flush=True)


def encoder_alone(name: str, batch: int, steps: int, precision: str, compiled: bool) -> float:
    """Views a second of the encoder's forward and backward pass, as the loop calls it."""
    encoder, number = models.encoder(name)[0].to(DEVICE), Precision(precision, DEVICE)
    cache = GradCache(encoder, torch.nn.Identity(), number)
    if compiled:
        cache.parts[0].compile(dynamic=False)
    x = [torch.rand(2, batch, 3, 32, 32, device=DEVICE)]
    gradient = torch.randn(2, batch, 1, device=DEVICE)

    def step() -> float:
        started = now()
        cache.backward(x, lambda z: (z * gradient).sum())
        return now() - started

    with settings(number, deterministic=False):
        return 2 * batch / min([step() for _ in range(3 + steps)][3:])


def now() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def loop() -> None:
    """Every loss in a step; 32 px, two views, the QARe paper's augmentation."""
    sizes = [("resnet18", 256, 30), ("resnet18", 2048, 8)] if ON_GPU else [("conv4", 256, 6)]
    for encoder, batch, steps in sizes:
        recipe = ImageRecipe("InfoNCE(0.5)", views="qare", encoder=encoder, batch=batch, last_norm=True)
        parsed = {text: losses.parse(text) for text in IN_A_STEP}
        parts, taken = (
            {name: costs.middle(seconds).median for name, seconds in runs.items()}
            for runs in costs.parts_of_a_step(recipe, parsed, steps, DEVICE.type)
        )
        print(f"\n{encoder}, batch {batch}, 32 px, {WHERE}; ms of a step's parts:")
        print(", ".join(f"{part} {1e3 * seconds:.1f}" for part, seconds in parts.items()))
        print(f"{'loss':32}      ms   share  images/s  the paper says")
        for text, claim in IN_A_STEP.items():
            share = taken[text] / (taken[text] + sum(parts.values()))
            rate = whole(replace(recipe, loss=text), steps)
            print(f"{text:32}{1e3 * taken[text]:8.1f}{share:8.1%}{rate:10,.0f}  {claim}", flush=True)


if __name__ == "__main__":
    parts = {"losses": ratios, "panels": events, "engine": engine, "loop": loop}
    for part in sys.argv[1:] or parts:
        parts[part]()
