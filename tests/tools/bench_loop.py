"""What a training step is made of: the loop beside its encoder, every loss in a step.

`make bench` calls all; alone: python tests/tools/bench_loop.py [engine] [loop]. It takes a GPU if
there is one.
"""

import sys
import time
from dataclasses import replace

import torch

from setclr import losses, models
from setclr.recipes import ImageRecipe
from setclr.training.devices import Precision, reuse_freed_pages, settings
from setclr.training.grad_cache import GradCache
from setclr_course import costs

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
WHERE = torch.cuda.get_device_name() if ON_GPU else costs.this_machine()
LOSSES = {
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


def medians(runs: dict[str, list[float]]) -> dict[str, float]:
    return {name: costs.middle(seconds).median for name, seconds in runs.items()}


def now() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def loop() -> None:
    """Every loss in a step; 32 px, two views, the QARe paper's augmentation."""
    sizes = [("resnet18", 256, 30), ("resnet18", 2048, 8)] if ON_GPU else [("conv4", 256, 6)]
    for encoder, batch, steps in sizes:
        recipe = ImageRecipe("InfoNCE(0.5)", views="qare", encoder=encoder, batch=batch, last_norm=True)
        parsed = {text: losses.parse(text) for text in LOSSES}
        parts, taken = map(medians, costs.parts_of_a_step(recipe, parsed, steps, DEVICE.type))
        print(f"\n{encoder}, batch {batch}, 32 px, {WHERE}; ms of a step's parts:")
        print(", ".join(f"{part} {1e3 * seconds:.1f}" for part, seconds in parts.items()))
        print(f"{'loss':32}      ms   share  images/s  the paper says")
        for text, claim in LOSSES.items():
            share = taken[text] / (taken[text] + sum(parts.values()))
            rate = whole(replace(recipe, loss=text), steps)
            print(f"{text:32}{1e3 * taken[text]:8.1f}{share:8.1%}{rate:10,.0f}  {claim}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("engine", "loop"):
        {"engine": engine, "loop": loop}[name]()
