"""gpu.py step: how long a training step takes on a GPU, and where its time goes."""

import sys
import time

import torch

from setclr import views
from setclr.recipes import RECIPES, ImageRecipe
from setclr.views import augmentation
from setclr_course import costs

VARIANTS = {
    "as it is": {},
    "CUDA graphs": {"triton.cudagraphs": True},
    "combined kernels": {"combo_kernels": True},
}


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
            slowest = profile.key_averages()
            print(slowest.table(sort_by="cuda_time_total", row_limit=25, max_name_column_width=60))


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
    if not torch.cuda.is_available():
        sys.exit("gpu.py step needs a CUDA device, and torch finds none")
    for name in names or ["simclr-cifar10-infonce"]:
        recipe = RECIPES[name]
        print(f"\n{name}, batch {recipe.batch}")
        timed(recipe)
