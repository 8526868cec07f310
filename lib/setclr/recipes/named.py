"""Every experiment by name: the project's own recipes, and those that other packages register."""

from typing import Any

from setclr.recipes import registry
from setclr.recipes.registry import Recipes

INFONCE = "InfoNCE(temperature=0.1)"
GROCO = "GroCo(beta=1.0, negatives=10)"

# Losses to compare, with equal settings otherwise: even the head ends with the batch norm that GroCo needs.
COMPARED = {
    "infonce": "InfoNCE(temperature=0.5)", "infonce+qare": "InfoNCE(temperature=0.5) + 1.0 * QARe()",
    "sparseclr": "SparseCLR()", "sparseclr+qare": "SparseCLR() + 1.0 * QARe()", "groco": GROCO,
    "iot-total": "IOT(constraint='total')", "iot-total-uniform": "IOT(constraint='total', uniformity=0.5)",
    "iot-rows": "IOT(constraint='rows')", "iot-rows-uniform": "IOT(constraint='rows', uniformity=0.5)",
    "iot-both": "IOT(constraint='both', iterations=4)",
    "iot-both-uniform": "IOT(constraint='both', iterations=4, uniformity=0.5)",
    "mmcl-inv": "MMCL(solver='inv')", "mmcl-exact": "MMCL(solver='exact')",
}  # fmt: skip


def compared() -> dict[str, dict[str, Any]]:
    """The fields of recipes, by name: all of COMPARED on CIFAR-10, and most of them in small.

    The small ones are for `search`. They compute in float32, which every machine has.
    """
    made: dict[str, dict[str, Any]] = {}
    for encoder in ("conv4", "resnet32", "resnet18"):
        large = dict(data="cifar10", views="qare", encoder=encoder, last_norm=True, batch=256, epochs=100)
        made |= {f"compare-{encoder}-{name}": dict(loss=loss, **large) for name, loss in COMPARED.items()}
    small = dict(views="photo", last_norm=True, batch=128, epochs=20, precision="float32")
    return made | {
        f"compare-photo-{name}": dict(loss=loss, **small)
        for name, loss in COMPARED.items()
        if not name.startswith("iot-total") and name != "iot-both-uniform"
    }


def first() -> dict[str, dict[str, Any]]:
    """The fields of recipes to begin with: a minute or two on photo-patches, five epochs of CIFAR-10,
    a folder of photographs at 224 px, MUTAG, or a folder of videos."""
    photo = dict(views="photo", epochs=30, lr=3e-3)
    cifar = dict(data="cifar10", views="qare", epochs=5, lr=3e-3)
    others = ("infonce+qare", "sparseclr", "sparseclr+qare", "iot-rows", "iot-rows-uniform", "mmcl-inv")
    wide = dict(layers=3, hidden=2048, embedding=128, activation="relu", view_size=224, views="simclr")
    # From batches of 1,024 on, --optimiser lars --lr 0.3 is SimCLR's.
    sgd = dict(optimiser="sgd", lr=0.03, lr_batch=256, weight_decay=1e-4, warmup=10, epochs=100, batch=256)
    large = dict(encoder="resnet50-imagenet", normalised="imagenet", data="folder:photographs", **wide, **sgd)
    return {
        "photo-infonce": dict(loss=INFONCE, **photo),
        "photo-groco": dict(loss=GROCO, **photo, last_norm=True),
        **{f"photo-{name}": dict(loss=COMPARED[name], **photo, last_norm=True) for name in others},
        "cifar10-infonce": dict(loss=INFONCE, **cifar),
        "cifar10-groco": dict(loss=GROCO, **cifar, last_norm=True),
        "photographs-224": dict(loss=INFONCE, **large),
        "graph-infonce": dict(kind="graph", loss="InfoNCE(temperature=0.2)"),
        "video-infonce": dict(kind="video", data="folder:videos", loss="InfoNCE(temperature=0.2)"),
    }


def supervised() -> dict[str, dict[str, Any]]:
    """The fields of recipes whose loss gets the labels (Khosla et al. 2020)."""
    loss = dict(loss="SupCon(temperature=0.1)", labels=True)
    photo = dict(views="photo", epochs=30, lr=3e-3, **loss)
    cifar = dict(data="cifar10", views="qare", epochs=100, batch=256, encoder="resnet18", **loss)
    return {"supervised-photo": photo, "supervised-cifar10": cifar}


RECIPES = Recipes(first() | supervised() | compared() | registry.registered())
PUBLISHED = registry.published()
