"""Tables of Moskalev et al. 2022, "Contrasting quadratic assignments for set-based representation learning".

Left out. Table 1: matching of people, no pretraining. Tables 2 and 3: nothing. Figure 2: no numbers printed.
The weights of QARe are those of the supplement (QARe, table 4).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from setclr.recipes.published.row import Published, Row
from setclr.recipes.recipe import Recipe

SIMCLR, SPARSE = "InfoNCE(temperature=0.5)", "SparseCLR(margin=1.0)"

SIMCLR_NOTE = "tau is 0.5 as in the authors' program; the text says 0.05. The program also clamps negative "
SIMCLR_NOTE += "cosines to 0 and takes -log of the mean probability; the recipe follows the paper"
SPARSE_NOTE = "the margin of 1 is the authors' program's; the text states none. The program clamps cosines "
SPARSE_NOTE += "at 0"
QARE_NOTE = "; its QARe divides by N(N-1), the recipe's by N² as printed"

# Columns of tables 2 to 4.
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200}
COLUMNS = [(encoder, data) for encoder in ("conv4", "resnet32") for data in CLASSES]
BETA = {  # table 4
    "simclr": (0.5, 0.375, 0.875, 1.125, 1.125, 1.125),
    "sparseclr": (0.125, 1.25, 0.5, 1.0, 0.875, 1.25),
}
# Accuracy of the linear probe and its standard deviation over three seeds.
SIMCLR_ROW = "59.64 0.93  30.75 0.23  21.15 0.16  76.45 0.10  40.18 0.13  23.44 0.27"
BASELINE_NOTE = "the paper cites the method and gives no settings: batches, optimiser and epochs are those "
BASELINE_NOTE += "of its other runs, one view cropped and flipped"
BASELINES: dict[str, tuple[str, dict[str, Any], str]] = {  # loss, fields, note
    "supervised": ("Supervised()", dict(layers=1), ""),
    "random": (SIMCLR, dict(epochs=0), "; no epochs: the weights are those of the seed"),
    "deepcluster": ("DeepCluster()", dict(layers=1), "; ten clusters a class, found again every epoch"),
    "rotationnet": ("Rotation()", dict(embedding=4), ""),
    "deepinfomax": ("DeepInfoMax()", {}, "; the local objective alone, on the map half-way"),
}
TABLES = {
    "2": {
        "supervised": "80.46 0.39  49.29 0.85  36.47 0.36  90.87 0.41  65.32 0.22  50.09 0.32",
        "random": "32.92 1.88  10.79 0.59  6.19 0.13  27.47 0.83  7.65 0.44  3.24 0.43",
        "deepcluster": "42.88 0.21  21.03 1.56  12.60 1.23  43.31 0.62  20.44 0.80  11.64 0.21",
        "rotationnet": "56.73 1.71  27.45 0.80  18.40 0.95  62.00 0.79  29.02 0.18  14.73 0.48",
        "deepinfomax": "44.60 0.27  22.74 0.21  14.19 0.13  47.13 0.45  24.07 0.05  17.51 0.15",
        "simclr": SIMCLR_ROW,
        "simclr+qare": "61.54 1.17  31.18 0.41  21.33 0.18  76.85 0.39  41.20 0.34  25.05 0.18",
    },
    "3": {
        "simclr": SIMCLR_ROW,
        "sparseclr": "59.86 0.56  32.04 0.26  22.41 0.39  70.37 0.12  41.05 0.20  25.87 0.59",
        "sparseclr+qare": "61.06 0.39  33.05 0.32  22.45 0.30  71.39 0.30  42.07 0.35  27.03 0.40",
    },
}


def rows() -> Iterator[Row]:
    """Tables 2 and 3: Adam 1e-3 without a schedule, 200 epochs, batch 128, head 64 → 256 → 64."""
    for table, methods in TABLES.items():
        for method, line in methods.items():
            for i, ((encoder, data), printed) in enumerate(zip(COLUMNS, line.split("  "), strict=True)):
                recipe, note = contrast(method, i) if method not in BASELINES else baseline(method, data)
                recipe, name = replace(recipe, data=data, encoder=encoder), f"{encoder}-{data}-{method}"
                number, spread = map(float, printed.split())
                found = Published("Moskalev 2022", table, {"linear": number}, {"linear": spread}, note)
                yield Row(f"qare-table{table}-{name}", recipe, found)


def contrast(method: str, column: int) -> tuple[Recipe, str]:
    """A loss with or without QARe, and its note."""
    base, _, qare = method.partition("+")
    loss, note = (SIMCLR, SIMCLR_NOTE) if base == "simclr" else (SPARSE, SPARSE_NOTE)
    if qare:
        loss, note = f"{loss} + {BETA[base][column]} * QARe()", note + QARE_NOTE
    return Recipe(loss, views="qare", schedule="constant", epochs=200), note


def baseline(method: str, data: str) -> tuple[Recipe, str]:
    """A baseline and its note."""
    loss, fields, note = BASELINES[method]
    outputs = {"supervised": CLASSES[data], "deepcluster": 10 * CLASSES[data]}
    if method in outputs:
        fields = dict(embedding=outputs[method]) | fields
    if method != "random":
        fields = dict(full_views=1) | fields
    views = {"random": "qare", "deepinfomax": "flip"}.get(method, "padded")
    settings: dict[str, Any] = dict(views=views, schedule="constant", epochs=200) | fields
    return Recipe(loss, **settings), BASELINE_NOTE + note
