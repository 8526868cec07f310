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
from importlib import import_module

import torch

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
}
MEAN, DEVIATION = ((0.491, 0.482, 0.447), (0.247, 0.243, 0.262))  # the program's, for CIFAR-10, in float32


def program(path: str) -> None:
    """Make the program of 2022 importable with today's torch, without a GPU."""
    sys.path.insert(0, path)
    eigen = namedtuple("eigen", "eigenvalues eigenvectors")
    torch.symeig = lambda a, eigenvectors=False: eigen(*torch.linalg.eigh(a))  # type: ignore[attr-defined]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[assignment, method-assign]


def compared(method: str, row: str, arguments: dict) -> str:
    """What the last step of both came to; `arguments` are those of the program's Model."""
    torch.manual_seed(0)
    recipe = RECIPES[row]
    run = new_run(recipe, channels=3)
    encoder, head, loss = run.encoder.double().train(), run.head.double().train(), recipe.parsed_loss
    conv4 = import_module("backbones.conv4").Conv4()
    theirs = import_module(f"methods.{method}").Model(conv4, **arguments).double()
    theirs.net.train()
    theirs.head.train()
    ours = [*encoder.parameters(), *head.parameters()]
    # Their first linear layer has a bias, which the batch norm behind it takes out again.
    same = [p for name, p in theirs.named_parameters() if name != "head.linear1.bias"]
    begin_alike(same, ours)
    optimiser = torch.optim.Adam(ours, lr=recipe.lr)
    images = data.load("photo-patches", split="train").images
    for step in range(STEPS):
        batch = images[torch.randperm(len(images))[:IMAGES]]
        x = views.augment(batch, views.preset(recipe.views), seeded(0, 0, step)).double()
        value = loss(head(encoder(x.flatten(0, 1))).unflatten(0, (2, -1)))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        pairs = normalised(x).transpose(0, 1).flatten(0, 1)  # the program has views side by side
        torch.set_default_dtype(torch.float64)  # of the program's constants
        other = theirs.return_loss_fn(theirs.head(theirs.net(pairs)))
        torch.set_default_dtype(torch.float32)
        theirs.optimizer.zero_grad()
        other.backward()
        theirs.optimizer.step()
    return said(value, other, same, ours)


def supervised() -> str:
    """The same of the row that learns from labels: crops and flips of one view, and the program's SGD."""
    torch.manual_seed(0)
    recipe = RECIPES["qare-table2-conv4-cifar10-supervised"]
    run = new_run(recipe, channels=3)
    model, loss = torch.nn.Sequential(run.encoder, run.head).double().train(), recipe.parsed_loss
    theirs = import_module("methods.standard").StandardModel(import_module("backbones.conv4").Conv4(), 10)
    theirs = theirs.double()
    for part in (theirs.feature_extractor, theirs.classifier):
        part.train()
    ours, same = list(model.parameters()), list(theirs.parameters())
    begin_alike(same, ours)
    optimiser = make_optimiser(recipe.optimiser, model, loss, recipe.lr, recipe.momentum, recipe.weight_decay)
    patches = data.load("photo-patches", split="train")
    for step in range(STEPS):
        some = torch.randperm(len(patches))[:IMAGES]
        x, labels = patches.images[some], patches.labels[some] % 10
        x = views.augment(x, views.preset(recipe.views, count=1), seeded(0, 0, step)).double()
        value = loss(model(x[0]).unsqueeze(0), targets=labels)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        other = theirs.ce(theirs(normalised(x[0])), labels)
        theirs.optimizer.zero_grad()
        other.backward()
        theirs.optimizer.step()
    return said(value, other, same, ours)


def begin_alike(theirs: list[torch.Tensor], ours: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for a, b in zip(theirs, ours, strict=True):
            a.copy_(b)


def normalised(x: torch.Tensor) -> torch.Tensor:
    """Images as the program's transforms give them to its networks; ours do it in their first layer."""
    mean, deviation = (torch.tensor(values).double().view(3, 1, 1) for values in (MEAN, DEVIATION))
    return (x - mean) / deviation


def said(value: torch.Tensor, other: torch.Tensor, same: list, ours: list) -> str:
    apart = max(float((a - b).detach().abs().max()) for a, b in zip(same, ours, strict=True))
    return f"{value.item():.9f} ours, {other.item():.9f} theirs; weights at most {apart:.0e} apart"


if __name__ == "__main__":
    program(sys.argv[1])
    for method, (row, arguments) in ROWS.items():
        print(f"{method:15} after {STEPS} steps: loss {compared(method, row, arguments)}", flush=True)
    print(f"{'standard':15} after {STEPS} steps: loss {supervised()}")
