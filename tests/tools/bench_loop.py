"""What a training step is made of, and whether reading images or training on them takes longer.

`make bench` calls all; alone: python tests/tools/bench_loop.py [engine] [loop] [loader]. It takes a GPU if
there is one.
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from setclr import data, losses, models, views
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


def loader() -> None:
    """Photographs from JPEG files: how many a second loader workers read, and the device trains on."""
    print("\nphotographs of 400x300 px read, cropped to two views of 224 px; images/s")
    with tempfile.TemporaryDirectory() as folder:
        write_photographs(Path(folder), 256)
        read = {n: reading(folder, n) for n in sorted({1, os.cpu_count() or 1})}
    encoder = "resnet50-imagenet" if ON_GPU else "resnet18-imagenet"
    batch, steps = (128, 10) if ON_GPU else (16, 2)
    recipe = ImageRecipe("InfoNCE(0.2)", encoder=encoder, batch=batch, view_size=224)
    contestant = {"InfoNCE": losses.parse(recipe.loss)}
    parts, loss = map(medians, costs.parts_of_a_step(recipe, contestant, steps, DEVICE.type))
    trained = batch / (sum(parts.values()) + loss["InfoNCE"])
    rates = {f"read by {n} workers": rate for n, rate in read.items()} | {f"trained on by {encoder}": trained}
    for what, rate in rates.items():
        print(f"{what:40}{rate:10,.1f}")
    if max(read.values()) < trained:
        print("reading is the bottleneck: more workers, smaller files, or a set that fits in memory (size=)")
    else:
        enough = max(1, int(np.ceil(trained / min(read.values()))))
        print(f"the device is the bottleneck: about {enough} workers keep it busy; a faster one would help")


def reading(folder: str, workers: int) -> float:
    from setclr.data.streaming import streamed

    images = data.load(f"folder:{folder}", stream=True).images
    two = views.preset("groco", size=224)
    generator = torch.Generator().manual_seed(0)
    batches = [(index, views.draw(two, 32, generator)) for index in torch.arange(len(images)).split(32)] * 3
    started, seen = None, 0
    for crops in streamed(lambda batch: images.crops(batch[0], two, batch[1]), iter(batches), workers, "cpu"):
        if started is None:
            started = time.perf_counter()  # workers have started
        else:
            seen += crops[0].shape[1]
    return seen / (time.perf_counter() - started)


def write_photographs(folder: Path, n: int) -> None:
    """Crops of photographs that scikit-image ships, as JPEG files."""
    from skimage import data as photographs

    drawn = np.random.default_rng(0)
    sources = [photographs.astronaut(), photographs.coffee(), photographs.chelsea()]
    for split, count in (("train", n), ("val", 1)):
        place = folder / split / "any"
        place.mkdir(parents=True)
        for i in range(count):
            source = sources[i % len(sources)]
            top, left = (drawn.integers(side + 1) for side in np.subtract(source.shape[:2], (300, 400)))
            Image.fromarray(source[top : top + 300, left : left + 400]).save(place / f"{i}.jpg")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("engine", "loop", "loader"):
        {"engine": engine, "loop": loop, "loader": loader}[name]()
