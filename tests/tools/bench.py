"""make bench: what losses, panels and a training step cost, as ratios within one run or as times here.

python tests/tools/bench.py [losses] [panels] [frames] [explore] [loop]

All of them without arguments. The last takes a GPU if there is one.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from setclr import losses
from setclr.recipes import ImageRecipe
from setclr_course import costs, panels
from setclr_course.explore import KNOBS, explore
from setclr_course.panels.play.rules import RULES

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


def explored() -> None:
    """Kernel time of a slider of `explore`, milliseconds: the median of 20 values."""
    batch = explore(torch.randn(2, 512, E), torch.zeros(512, 3, 32, 32).byte(), torch.arange(512) % 10)
    print(f"\nslider of explore, V=2, 512 images or 128 with exact machines, {costs.this_machine()}, ms")
    for name in batch.controls["loss"].options:
        batch.controls["loss"].value = name
        knob = next((knob for knob in KNOBS if batch.controls[knob].layout.display != "none"), "QARe")
        taken = []
        for value in np.geomspace(0.1, 2, 20):
            start = time.perf_counter()
            batch.controls[knob].value = value
            taken.append(1e3 * (time.perf_counter() - start))
        print(f"{name:46}{np.median(taken):9.0f}")


# What is awaited: 90 frames of the page, the middle of the milliseconds between them.
FRAMES = """() => new Promise((done) => {
  const times = [];
  const tick = (now) => (times.push(now) > 90 ? done(times) : requestAnimationFrame(tick));
  requestAnimationFrame(tick);
})"""


def frames() -> None:
    """Frames a second of the playground while 24 points train, in Chromium whose CPU is throttled 4 times."""
    from in_browser import chromium, opened

    print("\nplayground, 24 points, CPU throttled 4 times   frames a second")
    with chromium() as browser:
        for name in RULES:
            page = opened(browser, panels.playground(loss=name, things=12))
            page.emulate_media(reduced_motion="no-preference")
            throttled = {"rate": 4}
            page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", throttled)
            page.get_by_role("button", name="▶ train").click()
            print(f"{name:46}{1000 / np.median(np.diff(page.evaluate(FRAMES))):8.0f}", flush=True)
            page.close()


# Every loss in a step

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


def whole(recipe: ImageRecipe, steps: int) -> float:
    """Images a second of the loop as it is; three first steps not counted. On a GPU without waiting between
    steps, on a CPU of the fastest step, which nothing else on the machine has slowed down."""
    epoch = costs.noise_trainer(recipe, steps + 4, DEVICE).epoch()
    for _ in range(3):
        next(epoch)
    taken, started = [], now()
    for _ in range(steps):
        begun = time.perf_counter()
        next(epoch)
        taken.append(time.perf_counter() - begun)
    return steps * recipe.batch / (now() - started) if ON_GPU else recipe.batch / min(taken)


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
    parts = {"losses": ratios, "panels": events, "frames": frames, "explore": explored, "loop": loop}
    for part in sys.argv[1:] or parts:
        parts[part]()
