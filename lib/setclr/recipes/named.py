"""Every experiment by name: the small ones of this project, and the rows of the papers' tables."""

from dataclasses import replace
from typing import Any

from setclr.recipes.figures import SMALL_RECIPES
from setclr.recipes.published import PUBLISHED, RECIPES_OF_PAPERS
from setclr.recipes.published.qare import of_column
from setclr.recipes.published.row import Published
from setclr.recipes.recipe import Recipe

__all__ = ["COMPARED", "PUBLISHED", "RECIPES", "Published", "Recipe"]

INFONCE = "InfoNCE(temperature=0.1)"
GROCO = "GroCo(beta=1.0, negatives=10)"

# One loss against another, all else alike: even the head, which ends as GroCo needs it.
COMPARED = {
    "infonce": "InfoNCE(temperature=0.5)",
    "infonce+qare": "InfoNCE(temperature=0.5) + 1.0 * QARe()",
    "sparseclr": "SparseCLR()",
    "sparseclr+qare": "SparseCLR() + 1.0 * QARe()",
    "groco": GROCO,
    "iot-total": "IOT(constraint='total')",
    "iot-total-uniform": "IOT(constraint='total', uniformity=0.5)",
    "iot-rows": "IOT(constraint='rows')",
    "iot-rows-uniform": "IOT(constraint='rows', uniformity=0.5)",
    "iot-both": "IOT(constraint='both', iterations=4)",
    "iot-both-uniform": "IOT(constraint='both', iterations=4, uniformity=0.5)",
    "mmcl-inv": "MMCL(solver='inv')",
    "mmcl-exact": "MMCL(solver='exact')",
}
COMPARISON = {
    f"compare-{encoder}-{name}": Recipe(
        loss, data="cifar10", views="qare", encoder=encoder, last_norm=True, batch=256, epochs=100
    )
    for encoder in ("conv4", "resnet32", "resnet18")
    for name, loss in COMPARED.items()
}

# The same in small, for `search`: each loss at its own rate and knob. In float32, which every machine has.
SEARCHED = {
    f"compare-photo-{name}": Recipe(
        loss, views="photo", last_norm=True, batch=128, epochs=20, precision="float32"
    )
    for name, loss in COMPARED.items()
    if not name.startswith(("iot-total", "iot-both"))
}

# Beside the column Conv-4, CIFAR-10 of QARe's tables 2 and 3, at its budget and settings.
BESIDE = {"groco": "groco", "iot": "iot-rows-uniform", "mmcl-inv": "mmcl-inv", "mmcl-exact": "mmcl-exact"}
COLUMN = {
    f"column-conv4-cifar10-{name}": replace(of_column(0, COMPARED[loss]), last_norm=name == "groco")
    for name, loss in BESIDE.items()  # GroCo's head ends with a batch norm; without, it collapses
}

PHOTO: dict[str, Any] = dict(views="photo", epochs=30, lr=3e-3)
PHOTO_TOO = ("infonce+qare", "sparseclr", "sparseclr+qare", "iot-rows", "iot-rows-uniform", "mmcl-inv")

# Two full views for longer, or four small crops beside them: as many pixels in all, to 0.13 %. The folder is
# written by setclr.explore.trained.photo_tree.
TREE: dict[str, Any] = dict(
    data="folder:data/photo-tree", views="groco", view_size=64, lr=3e-3, last_norm=True
)
TWO = "InfoNCE(temperature=0.1, positive_views=2)"
EQUAL_COST = {
    "tree-2x64": Recipe(TWO, **TREE, epochs=18, precision="float32"),
    "tree-2x64+4x28": Recipe(TWO, **TREE, local_views=4, local_size=28, epochs=13, precision="float32"),
}

RECIPES: dict[str, Recipe] = {
    "photo-infonce": Recipe(INFONCE, **PHOTO),
    "photo-groco": Recipe(GROCO, **PHOTO, last_norm=True),
    **{f"photo-{name}": Recipe(COMPARED[name], **PHOTO, last_norm=True) for name in PHOTO_TOO},
    "cifar10-infonce": Recipe(INFONCE, data="cifar10", views="qare", epochs=5, lr=3e-3),
    "cifar10-groco": Recipe(GROCO, data="cifar10", views="qare", epochs=5, lr=3e-3, last_norm=True),
    **COMPARISON,
    **SEARCHED,
    **COLUMN,
    **EQUAL_COST,
    **SMALL_RECIPES,
    **RECIPES_OF_PAPERS,
}
