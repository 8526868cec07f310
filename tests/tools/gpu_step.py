"""gpu.py step: what a training step asks of a GPU, counted on any machine, and on a GPU where its time goes.

Counted are launches without a compiler, on tensors that have no values; and for compiled code, by torch's own
compiler for the CPU, graphs, breaks, fused kernels, calls of library kernels and the bytes that all of them
read and write. A GPU's compiler fuses a little otherwise.
"""

import logging
import time
from collections.abc import Callable
from contextlib import contextmanager

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import compile_fx, metrics

from setclr import views
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES, ImageRecipe
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache
from setclr.training.optimisers import make_optimiser
from setclr.views import augmentation, numbers
from setclr_course import costs

CPU, SIDE = torch.device("cpu"), 32
VARIANTS = {
    "as it is": {},
    "CUDA graphs": {"triton.cudagraphs": True},
    "combined kernels": {"combo_kernels": True},
}


def counted(recipe: ImageRecipe, images: int) -> None:
    """Print what is counted for a step on `images` images of 32 px."""
    two = views.preset(recipe.views)
    draws = views.draw(two, images, torch.Generator().manual_seed(0))
    p = numbers.parameters(two, draws, SIDE, SIDE)
    needed = numbers.cropping(two, p, SIDE, SIDE, SIDE) | numbers.colours(two, p, 3, SIDE)
    pixels = torch.zeros(images, 3, SIDE, SIDE, dtype=torch.uint8)

    def network(device: str, precision: str) -> Callable[[], object]:
        parts, loss = made(recipe, device), recipe.parsed_loss
        cache = GradCache(*parts, Precision(precision, CPU))
        for part in (*cache.parts, loss):
            part._compiled_call_impl = None
            if device == "cpu":
                part.compile(dynamic=False)
        x = [torch.zeros(len(two), images, 3, SIDE, SIDE, device=device).add_(0.5)]
        of_z = (lambda z: loss(z)) if device == "cpu" else lambda z: loss.score(loss.batch(z))
        return lambda: cache.backward(x, of_z)

    there = numbers.packed(needed, torch.device("meta"))
    eager = costs.launches(lambda: augmentation._work(pixels.to("meta"), len(two), *there, apart=False))
    network_alone, weights = costs.launches(network("meta", "float32")), made(recipe, "meta")
    for weight in weights.parameters():
        weight.grad = torch.zeros_like(weight)
    lars = costs.launches(make_optimiser("lars", weights, nn.Identity(), 0.1).step)
    print(
        f"launches uncompiled: views {eager}, encoder, head and loss {network_alone}, LARS {lars}", flush=True
    )
    augmentation._compiled.cache_clear()
    compiled = {"views": lambda: views.apply_all(pixels, two, draws, compiled=True),
                "encoder, head and loss, bf16": network("cpu", "bf16")}  # fmt: skip
    for what, call in compiled.items():
        with bytes_counted():
            call()
        graphs, breaks = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
        kernels, library = metrics.generated_kernel_count, counters["inductor"]["extern_calls"]
        moved = metrics.num_bytes_accessed / images / len(two) / 1e6
        called = f"{kernels} fused kernels and {library} of libraries"
        print(f"{what}: {graphs} graphs, {breaks} breaks, {called}, {moved:.2f} MB a view", flush=True)


def made(recipe: ImageRecipe, device: str) -> nn.ModuleList:
    """Encoder and head with first weights."""
    run = new_run(recipe, 3)
    return nn.ModuleList([run.encoder, run.head]).to(device)


@contextmanager
def bytes_counted():
    """The compiler's counters, from 0."""
    torch._dynamo.reset()
    counters.clear()
    metrics.reset()
    log, before = compile_fx.inductor_metrics_log, compile_fx.inductor_metrics_log.level
    log.addHandler(quiet := logging.NullHandler())
    log.setLevel(logging.INFO)  # bytes are counted to be logged
    log.propagate = False
    try:
        with torch._inductor.config.patch(force_disable_caches=True):
            yield
    finally:
        log.setLevel(before)
        log.propagate = True
        log.removeHandler(quiet)


def timed(recipe: ImageRecipe, steps: int = 40) -> None:
    """Print how long steps take on a GPU, how long the CPU takes to ask for them, and the slowest kernels."""
    for name, options in VARIANTS.items():
        torch._dynamo.reset()
        augmentation._compiled.cache_clear()
        with torch._inductor.config.patch(options):
            trainer = costs.noise_trainer(recipe, 2 * steps + 10, torch.device("cuda"), True)
            update = trainer.update
            trainer.update = lambda x, update=update: update(x).clone()  # a graph writes its outputs anew
            epoch = trainer.epoch()
            try:
                taken, asked = lasting(epoch, 8) and lasting(epoch, steps)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
        rate = len(views.preset(recipe.views)) * recipe.batch / taken
        speed = f"{1e3 * taken:.1f} ms a step, {rate:,.0f} views a second"
        print(f"{name}: {speed}; the CPU asks for a step in {1e3 * asked:.1f} ms", flush=True)
        if not options:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                lasting(epoch, 10)
            print(
                profile.key_averages().table(
                    sort_by="cuda_time_total", row_limit=25, max_name_column_width=60
                )
            )


def lasting(epoch, steps: int) -> tuple[float, float]:
    """Seconds a step takes, and those until the CPU has asked for all of it, in the mean of steps."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        torch.compiler.cudagraph_mark_step_begin()
        next(epoch)
    asked = time.perf_counter() - started
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / steps, asked / steps


def main(names: list[str]) -> None:
    for name in names or ["simclr-cifar10-infonce"]:
        recipe = RECIPES[name]
        print(f"\n{name}, batch {recipe.batch}")
        if torch.cuda.is_available():
            timed(recipe)
        else:
            counted(recipe, 32)
