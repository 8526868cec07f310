"""The training steps of QARe's own program beside ours, from the same weights on the same views.

git clone https://github.com/amoskalev/contrasting_quadratic
python tests/tools/qare_program.py contrasting_quadratic

For each row of tables 2 and 3 (Conv-4, CIFAR-10) that contrasts, and for supervised training, it prints both
losses after the last step and the largest difference between any two weights. Both get our views of the
patches that come with the project: what makes views is not compared here (tests/setclr/views/test_views.py
has torchvision's). In float64, where rounding cannot hide a difference or grow into one.
"""

import sys
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module

import torch
from torch import Tensor, nn

from setclr import data, views
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES
from setclr.seeding import seeded
from setclr.training.optimisers import make_optimiser

STEPS, IMAGES = 20, 128
ROWS = {  # module of the program: row, arguments of its Model
    "simclr": ("qare-table2-conv4-cifar10-simclr", {}),
    "simclr_qare": ("qare-table2-conv4-cifar10-simclr+qare", {"beta": 0.5}),
    "sparseclr": ("qare-table3-conv4-cifar10-sparseclr", {}),
    "sparseclr_qare": ("qare-table3-conv4-cifar10-sparseclr+qare", {"beta": 0.125}),
    "standard": ("qare-table2-conv4-cifar10-supervised", {"num_classes": 10}),
}
MEAN, DEVIATION = ((0.491, 0.482, 0.447), (0.247, 0.243, 0.262))  # the program's, for CIFAR-10, in float32


def program(path: str) -> None:
    """Make the program of 2022 importable with today's torch, without a GPU."""
    sys.path.insert(0, path)
    eigen = namedtuple("eigen", "eigenvalues eigenvectors")
    torch.symeig = lambda a, eigenvectors=False: eigen(*torch.linalg.eigh(a))  # type: ignore[attr-defined]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[assignment, method-assign]


def model_of(method: str, arguments: dict) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
    """The program's model, and its loss of views (V, N, C, S, S) and labels."""
    methods, conv4 = import_module(f"methods.{method}"), import_module("backbones.conv4").Conv4()
    if method == "standard":
        model = methods.StandardModel(conv4, **arguments).double()
        return model, lambda x, labels: model.ce(model(x[0]), labels)
    model = methods.Model(conv4, **arguments).double()

    def loss(x: Tensor, labels: Tensor) -> Tensor:
        pairs = x.transpose(0, 1).flatten(0, 1)  # the program has views side by side
        torch.set_default_dtype(torch.float64)  # of the program's constants
        value = model.return_loss_fn(model.head(model.net(pairs)))
        torch.set_default_dtype(torch.float32)
        return value

    return model, loss


def compared(method: str, row: str, arguments: dict) -> str:
    """What the last step of both came to."""
    torch.manual_seed(0)
    recipe = RECIPES[row]
    run, (theirs, their_loss) = new_run(recipe, channels=3), model_of(method, arguments)
    model, loss = nn.Sequential(run.encoder, run.head).double().train(), recipe.parsed_loss
    ours = list(model.parameters())
    # Their first linear layer has a bias, which the batch norm behind it takes out again.
    same = [p for name, p in theirs.named_parameters() if name != "head.linear1.bias"]
    with torch.no_grad():
        for a, b in zip(same, ours, strict=True):
            a.copy_(b)
    optimiser = make_optimiser(recipe.optimiser, model, loss, recipe.lr, recipe.momentum, recipe.weight_decay)
    patches = data.load("photo-patches", split="train")
    # The program's transforms normalise images; our networks do it in their first layer.
    mean, deviation = (torch.tensor(values).double().view(3, 1, 1) for values in (MEAN, DEVIATION))
    for step in range(STEPS):
        some = torch.randperm(len(patches))[:IMAGES]
        labels, made = patches.labels[some] % 10, views.preset(recipe.views, count=recipe.full_views)
        x = views.augment(patches.images[some], made, seeded(0, 0, step)).double()
        z = model(x.flatten(0, 1)).unflatten(0, (len(x), -1))
        value = loss(z, labels=labels) if loss.classifies else loss(z)
        other = their_loss((x - mean) / deviation, labels)
        for each, its in ((value, optimiser), (other, theirs.optimizer)):
            its.zero_grad()
            each.backward()
            its.step()
    apart = max(float((a - b).detach().abs().max()) for a, b in zip(same, ours, strict=True))
    return f"{value.item():.9f} ours, {other.item():.9f} theirs; weights at most {apart:.0e} apart"


if __name__ == "__main__":
    program(sys.argv[1])
    for method, (row, arguments) in ROWS.items():
        print(f"{method:15} after {STEPS} steps: loss {compared(method, row, arguments)}", flush=True)
