"""Figures and ablations of the papers in small: on photo-patches, by a Conv-4, a minute or so a run.

What the rows of a figure differ in is the paper's. Encoder, images, batches and epochs are not, nor is
GroCo's optimiser, here Adam. `reports.figures.frame` reads the records. Rows of several figures that are one
and the same recipe share its name, and are trained once.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from setclr.recipes.recipe import Recipe


class Figure(NamedTuple):
    note: str
    """What the paper varies, and how its rows are mirrored here."""
    rows: dict[str, str]
    """By what the row is called here: the name of its recipe."""
    printed: dict[str, str]
    """Likewise the name of the row in the paper's table, {} where the paper has a curve."""


Figures = dict[str, tuple[str, dict[str, Recipe]]]  # by name: the note, and the recipe of each row
EPOCHS = 10
SMALL: dict[str, Any] = dict(views="photo", epochs=EPOCHS, precision="float32")
SIMCLR = Recipe("InfoNCE(temperature=0.5)", **SMALL, schedule="constant")
MMCL = Recipe("MMCL(bandwidth=1.0, pool='view')", **SMALL, schedule="constant", weight_decay=1e-6)
GROCO = Recipe(
    "GroCo(beta=1.0, negatives=10, pool='view')", **SMALL,
    layers=3, activation="relu", last_norm=True, lr=3e-3, lr_batch=128,
)  # fmt: skip
INFONCE = replace(GROCO, loss="InfoNCE(temperature=0.1)")
TRIPLET = "Triplet(margin={}, positives='all', negatives=10, distance='cosine', stop_gradient=True)"


def losses_of(base: Recipe, losses: dict[str, str]) -> dict[str, Recipe]:
    return {row: replace(base, loss=loss) for row, loss in losses.items()}


def argued(recipe: Recipe, argument: str) -> Recipe:
    """The recipe with one more argument of its loss."""
    return replace(recipe, loss=f"{recipe.loss[:-1]}, {argument})")


def lasting(base: Recipe, epochs: tuple[int, ...], name: str) -> dict[str, Recipe]:
    return {f"{name}-{number}ep": replace(base, epochs=number) for number in epochs}


def qare() -> Figures:
    weights = {f"{i / 8}": f"InfoNCE(temperature=0.5) + {i / 8} * QARe()" for i in range(1, 16)}
    note = "SimCLR with QARe at weights from 0 to 1.875, a ResNet-32 with tau 0.05 or 0.5, three seeds; here "
    note += "tau is 0.5, and nothing is clamped"
    return {"qare-figure2": (note, {"0.0": SIMCLR} | losses_of(SIMCLR, weights))}


def mmcl() -> Figures:
    bounds = {C: argued(MMCL, f"C={C}") for C in ("0.01", "0.1", "1.0", "10.0", "100.0")}
    bounds["inf"] = argued(MMCL, "C=float('inf')")
    solvers = {"simclr": SIMCLR, "pgd": argued(MMCL, "solver='steps'"), "inv": bounds["100.0"]}
    points: dict[str, Recipe] = {}
    for name, recipe in solvers.items():
        points |= lasting(recipe, (2, 5, 10, 20), name)
    return {
        "mmcl-figure3a": ("the bound C from 0.01 to infinity, on STL-10 and CIFAR-100, kNN", bounds),
        "mmcl-figure3c": (
            "accuracy against epochs of SimCLR, of pgd and of inv, another weighting, STL-10. The rate is "
            "constant, so that a run of few epochs is the beginning of a longer one",
            points,
        ),
    }


def groco() -> Figures:
    """Tables 7 and 8."""
    margins = losses_of(GROCO, {f"triplet-{m}": TRIPLET.format(m) for m in ("0.8", "1.6", "None")})
    return {
        "groco-table7": (
            "the triplet loss with all positives, the ten hardest negatives and three margins (None: "
            "infinite), against GroCo. No gradient through candidates, as in GroCo's runs; the paper does "
            "not say so of these rows",
            margins | {"groco": GROCO},
        ),
        "groco-table8c": (
            "batches of 256, 512 and 1024 images at a rate in proportion; here an eighth of each",
            {f"batch{b}": replace(GROCO, batch=b) for b in (32, 64, 128)},
        ),
        "groco-table8d": (
            "every image with three others of its class in the batch, where one is usual; here with 21, "
            "where 7 are",
            {"regular": GROCO, "false-negatives": replace(GROCO, same_class=16)},
        ),
    }


def hardest() -> dict[str, Recipe]:
    """GroCo's table 9a."""
    top = replace(INFONCE, loss="HardNegatives(temperature=0.5, keep=0.04)")
    return {
        "infonce": INFONCE,
        "infonce+stop-gradient": argued(INFONCE, "stop_gradient=True"),
        "infonce+top10": top,
        "infonce+top10+stop-gradient": argued(top, "stop_gradient=True"),
        "groco+top10": argued(GROCO, "stop_gradient=False"),
        "groco+top10+stop-gradient": GROCO,
    }


def augmented() -> dict[str, Recipe]:
    """GroCo's table 9c."""
    rows: dict[str, Recipe] = {}
    for name in ("simclr", "groco"):
        rows |= lasting(replace(GROCO, views=name), (EPOCHS, 2 * EPOCHS, 4 * EPOCHS), f"groco-{name}-views")
        rows |= lasting(replace(INFONCE, views=name), (EPOCHS,), f"simclr-{name}-views")
    return rows


def more() -> Figures:
    """GroCo's table 9."""
    long = replace(GROCO, epochs=8 * EPOCHS)
    crops = replace(argued(long, "positive_views=2"), local_views=6)
    return {
        "groco-table9a": (
            "the ten hardest negatives and no gradient through candidates, for InfoNCE and for GroCo; keep "
            "0.04 of 254 negatives is 10. Two of the paper's runs were unstable",
            hardest(),
        ),
        "groco-table9b": (
            "800 epochs, eight times the usual number, with two views and with six small crops beside them",
            {"2x32": long, "2x32+6x14": crops},
        ),
        "groco-table9c": (
            "SimCLR's and DINO's augmentations after 100, 200 and 400 epochs; both are made for colour "
            "photographs, and these patches have casts",
            augmented(),
        ),
        "groco-table9d": (
            "embeddings of 128, 512 and 2048 numbers, where the encoder has 2048 features; here 4, 16 and "
            "64, where it has 64",
            {f"dimension{E}": replace(GROCO, embedding=E) for E in (4, 16, 64)},
        ),
        "groco-table9e": (
            "the ten hardest negatives against ten that follow the anchor in the batch, whose order is drawn",
            {"strongest-negatives": GROCO, "random-negatives": argued(GROCO, "random=True")},
        ),
        "groco-table9f": (
            "kNN in the encoder's features and in the head's outputs (knn-projection), SimCLR and GroCo",
            {"simclr": INFONCE, "groco": GROCO},
        ),
    }


LARGE = {  # the rows of a paper's table, in the order of ours
    "groco-table7": "triplet-margin-0.8 triplet-margin-1.6 triplet-margin-infinite groco",
    "groco-table8c": "batch256 batch512 batch1024",
    "groco-table8d": "regular false-negatives",
    "groco-table9a": " ".join(hardest()),
    "groco-table9b": "2x224-800ep 2x224+6x96-800ep",
    "groco-table9c": "groco-simclr-views-100ep groco-simclr-views-200ep groco-simclr-views-400ep "
    "simclr-simclr-views-100ep groco-dino-views-100ep groco-dino-views-200ep groco-dino-views-400ep "
    "simclr-dino-views-100ep",
    "groco-table9d": "dimension128 dimension512 dimension2048",
    "groco-table9e": "strongest-negatives random-negatives",
    "groco-table9f": "simclr groco",
}


def built() -> tuple[dict[str, Figure], dict[str, Recipe]]:
    """The figures, and their recipes, each under the first name that it gets."""
    figures, names = {}, dict[Recipe, str]()
    for figure, (note, rows) in (qare() | mmcl() | groco() | more()).items():
        called = {
            row: names.setdefault(recipe, f"small-{figure}-{row.lower()}") for row, recipe in rows.items()
        }
        large = [f"{figure}-{row}" for row in LARGE.get(figure, "").split()]
        figures[figure] = Figure(note, called, dict(zip(called, large, strict=bool(large))))
    return figures, {name: recipe for recipe, name in names.items()}


FIGURES, SMALL_RECIPES = built()
