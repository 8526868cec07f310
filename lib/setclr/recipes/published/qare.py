"""Tables of Moskalev et al. 2022, "Contrasting quadratic assignments for set-based representation learning".

Left out. Figure 2: no numbers printed. Settings are those of the authors' program, contrasting_quadratic on
GitHub, where it has them; the notes say where the text has others. Variants are the text's. The weights of
QARe are those of the supplement (QARe, table 4).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from setclr.recipes.published.row import Published, Row
from setclr.recipes.recipe import Recipe

PAPER = "Moskalev 2022"
# Adam 1e-3 without a schedule, 200 epochs, batch 128, head 64 → 256 → 64.
COMMON: dict[str, Any] = dict(views="qare", schedule="constant", epochs=200, initial="he", drop_last=False)
COMMON["precision"] = "float32"
COMMON_NOTE = (
    ". The program begins with He's variance, the text says Xavier's; it normalises colours and, but for "
    "Deep InfoMax, keeps the last batch of an epoch, which the text leaves open"
)
DEEPER_NOTE = ". The program's ResNet-32 has one more linear layer, 64 → 64, which is probed, too"

SIMCLR = "InfoNCE(temperature=0.5, average='probabilities'{})"
SPARSE = "SparseCLR(margin=1.0{})"
SIMCLR_NOTE = (
    "as in the program, tau is 0.5, candidates are all 2N points and the loss is -log of the mean "
    "probability; the text has tau 0.05, and its algorithms N candidates of the other view "
    "(variant-qare-tau-, -text-)"
)
SPARSE_NOTE = "the margin of 1 is the program's; the text states none"
QARE_NOTE = (
    ". With QARe, and only there, the program counts negative cosines as 0, those of the pairwise loss too, "
    "and divides by N(N-1); the text does not clamp and divides by N². The weight is table 4's"
)

# Columns of tables 2 to 4.
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200}
COLUMNS = [(encoder, data) for encoder in ("conv4", "resnet32") for data in CLASSES]
BETA = {  # table 4
    "simclr": (0.5, 0.375, 0.875, 1.125, 1.125, 1.125),
    "sparseclr": (0.125, 1.25, 0.5, 1.0, 0.875, 1.25),
}
# Accuracy of the linear probe and its standard deviation over three seeds; of "supervised" its classifier's.
SIMCLR_ROW = "59.64 0.93  30.75 0.23  21.15 0.16  76.45 0.10  40.18 0.13  23.44 0.27"
PADDED: dict[str, Any] = dict(views="padded", full_views=1)
NO_SETTINGS = "the text gives no settings. "
BASELINES: dict[str, tuple[str, dict[str, Any], str]] = {  # loss, fields, note
    "supervised": (
        "Supervised()",
        PADDED | dict(layers=1, optimiser="sgd", lr=0.1, schedule="steps"),
        "The number is its own classifier's accuracy on test images, not a probe's",
    ),
    "random": (SIMCLR.format(""), dict(epochs=0), "No epochs: the weights are those of the seed"),
    "deepcluster": (
        "DeepCluster()",
        PADDED,
        "Ten clusters a class. The program clusters cropped and flipped images, the recipe whole ones. The "
        "program's training images are cropped and flipped twice, and made bytes after they are normalised, "
        "which wraps colours around; the recipe does not repeat that, and ends some points higher for it",
    ),
    "rotationnet": (
        "Rotation()",
        PADDED | dict(layers=1, embedding=4),
        "All four turns of 128 images a step",
    ),
    "deepinfomax": (
        "DeepInfoMax(features=64, channels={}, locations=16)",
        dict(views="flip", full_views=1, lr=1e-4, drop_last=True),
        "Of an image's 1024 locations (4096 at 64 px) each step takes 16 at random, to save time; the "
        "program takes all. In ResNet-32 the last linear layer keeps its first weights",
    ),
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
MATCHING = {  # table 1: loss, weight of QARe, mean and deviation without QARe and with it
    "triplet": ("Triplet(margin=0.5)", 0.4, "54.85 0.77  58.48 1.67"),
    "sparseclr": (SPARSE.format(""), 0.3, "53.03 0.43  54.84 1.40"),
    "infonce": ("InfoNCE(temperature=0.05)", 0.5, "57.87 1.19  61.96 1.38"),
    "ntlogistic": ("NTLogistic(temperature=0.05)", 0.2, "40.30 0.42  43.48 1.41"),
}
PAIRS: dict[str, Any] = dict(views="matching", encoder="resnet18-imagenet", layers=1, epochs=50, lr=0.01)
PAIRS |= dict(data="pairs:cuhk03", size=256)
PAIRS_NOTE = (
    "matching: per cent of the test things that the best one-to-one assignment by Euclidean distance brings "
    "together, of the epoch that is best on the validation split. Front and back views of the people of "
    "CUHK-03, 70/15/15 for training, test and validation, three seeds; Adam 0.01, a cosine, batch 128, from "
    "section 5.1; the program has no such experiment. QARe is taken to be algorithm 1, in a convex "
    "combination; SparseCLR's margin is not stated: 1, and U[0, 0.1] is taken for a jitter of 0.1. Nor is "
    "the size of the pictures, here 256 x 128 px, nor which of a camera's five pictures of a person is "
    "taken. setclr.data.cameras says how the folder is made, --data pairs:PATH where it is. All seeds have "
    "the same splits"
)


def rows() -> Iterator[Row]:
    yield from matching()
    yield from probed()


def matching() -> Iterator[Row]:
    """Table 1: the two cameras' views of a person are the two views."""
    for name, (loss, beta, line) in MATCHING.items():
        both = f"{round(1 - beta, 1)} * {loss} + {beta} * QARe(similarity='euclidean')"
        for method, text, printed in zip((name, f"{name}+qare"), (loss, both), line.split("  "), strict=True):
            recipe = Recipe(text, **PAIRS)
            yield row("1", method, recipe, "matching", printed, PAIRS_NOTE)


def probed() -> Iterator[Row]:
    """Tables 2 and 3."""
    for table, methods in TABLES.items():
        for method, line in methods.items():
            for i, printed in enumerate(line.split("  ")):
                encoder, data = COLUMNS[i]
                recipe, note = contrast(method, i) if method not in BASELINES else baseline(method, i)
                note += COMMON_NOTE + (DEEPER_NOTE if encoder == "resnet32" else "")
                metric = "classifier" if method == "supervised" else "linear"
                yield row(table, f"{encoder}-{data}-{method}", recipe, metric, printed, note)


def row(table: str, name: str, recipe: Recipe, metric: str, printed: str, note: str) -> Row:
    number, spread = map(float, printed.split())
    found = Published(PAPER, table, {metric: number}, {metric: spread}, note)
    return Row(f"qare-table{table}-{name}", recipe, found)


def contrast(method: str, column: int) -> tuple[Recipe, str]:
    """A loss with or without QARe, and its note."""
    base, _, qare = method.partition("+")
    loss, note = (SIMCLR, SIMCLR_NOTE) if base == "simclr" else (SPARSE, SPARSE_NOTE)
    if not qare:
        return of_column(column, loss.format("")), note
    weight = BETA[base][column]
    clamped = f"{loss.format(', clamped=True')} + {weight} * QARe(similarity='clamped cosine')"
    return of_column(column, clamped), note + QARE_NOTE


def baseline(method: str, column: int) -> tuple[Recipe, str]:
    """A baseline and its note."""
    loss, fields, note = BASELINES[method]
    note = NO_SETTINGS + note
    encoder, data = COLUMNS[column]
    outputs = {"supervised": CLASSES[data], "deepcluster": 10 * CLASSES[data]}
    if method in outputs:
        fields = fields | dict(embedding=outputs[method])
    return replace(of_column(column, SIMCLR.format("")), loss=loss.format(FIRST[encoder]), **fields), note


FIRST = {"conv4": 8, "resnet32": 16}  # channels of the first layer


def of_column(column: int, loss: str) -> Recipe:
    """A recipe of that column of the tables."""
    encoder, data = COLUMNS[column]
    return Recipe(loss, data=data, encoder=encoder, normalised=data, **COMMON)


def variants() -> dict[str, Recipe]:
    """SimCLR, alone and with QARe, at the text's tau of 0.05, else as the rows; and all as in the text, with
    candidates of the other view alone, N² and no clamps, as algorithm 2, and Xavier's first weights."""
    made = {}
    for i, (encoder, data) in enumerate(COLUMNS):
        text = "InfoNCE(temperature=0.05, candidates='other view')"
        as_text = {"simclr": text, "simclr+qare": f"{text} + {BETA['simclr'][i]} * QARe()"}
        for method, loss in as_text.items():
            row, name = contrast(method, i)[0], f"{encoder}-{data}-{method}"
            cold = row.loss.replace("temperature=0.5", "temperature=0.05")
            made[f"variant-qare-tau-{name}"] = replace(row, loss=cold)
            made[f"variant-qare-text-{name}"] = replace(row, loss=loss, initial="xavier")
    return made
