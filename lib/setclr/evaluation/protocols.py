"""How each paper measures a frozen encoder: the kNN vote, the training of the linear classifier, the crop."""

from dataclasses import dataclass, field, replace

from setclr.checks import choice
from setclr.views import PRESETS, View


@dataclass(frozen=True)
class OnFeatures:
    """A linear classifier trained by Adam on features that are computed once (`linear_probe`)."""

    epochs: int = 100
    batch: int = 128
    lr: float = 1e-3
    raw: bool = False
    """Features as they are and torch's first weights, instead of scaled features and zeros."""


@dataclass(frozen=True)
class OnViews:
    """A linear classifier trained on views that are new in every epoch (`probe_on_views`)."""

    view: View
    optimiser: str
    lr: float
    batch: int
    epochs: int
    schedule: str = "constant"
    weight_decay: float = 0.0
    spread: float | None = None
    """Standard deviation of the first weights; the bias is then 0. None: torch's."""


@dataclass(frozen=True)
class Protocol:
    """What is measured of a frozen encoder. Accuracies are in per cent, on the test split."""

    ks: tuple[int, ...] = (10,)
    temperature: float = 0.1
    probe: OnFeatures | OnViews = field(default_factory=OnFeatures)
    longer: tuple[int, ...] = ()
    """Also the probe on features after so many epochs, as columns such as "linear200"."""
    top5: bool = False
    """Also the share of test images whose class is among the classifier's five best."""
    centre: float = 1.0
    """Of photographs the central square is shown, this fraction of the shorter side."""
    projection: bool = False
    """Also the kNN accuracies in the trained head's outputs, such as "knn-projection"."""

    def column(self, k: int) -> str:
        """The name of a kNN accuracy, such as "knn20"; "knn" is the project's own vote, as in its records."""
        return "knn" if (k, self.temperature) == (10, 0.1) else f"knn{k}"

    @property
    def columns(self) -> list[str]:
        knn = [*map(self.column, self.ks)]
        more = [f"{name}-projection" for name in knn] if self.projection else []
        return [*knn, *self.probes, *(["linear-top5"] if self.top5 else []), *more]

    @property
    def probes(self) -> dict[str, OnFeatures | OnViews]:
        """The linear classifiers by the names of their columns."""
        return {"linear": self.probe} | {f"linear{n}": replace(self.probe, epochs=n) for n in self.longer}


CROP = View(jitter_p=0.0, grey=0.0)  # 8 % to all of the area, and a flip
CENTRE = 224 / 256
MMCL_PHOTOGRAPHS = Protocol(
    (200,), 0.5, OnViews(CROP, "sgd", 1.6, 4096, 90, "linear", spread=0.0), centre=CENTRE
)

GROCO = Protocol(
    (1, 10, 20), 0.07, OnViews(CROP, "lars", 1.6, 4096, 90, "cosine", spread=0.01), top5=True, centre=CENTRE
)

PROTOCOLS: dict[str, Protocol] = {
    # The project's own.
    "setclr": Protocol(),
    "setclr-projection": Protocol(projection=True),
    # Section 5.2 and the authors' program. It has no kNN vote; the project's own is added. Pairs are matched
    # by Euclidean distance, section 5.1.
    "qare": Protocol(probe=OnFeatures(raw=True)),
    # Appendix E.1 and the authors' program, whose LARC scales the classifier's bias as well, and whose crops
    # for kNN are bicubic.
    "groco": GROCO,
    "groco-projection": replace(GROCO, projection=True),
    # Section 4.1: k = 5, batch 256, 200 epochs; tables 1 to 3 print 100, or both. Temperature, optimiser,
    # rate and crop are not stated.
    "iot": Protocol((5,), 0.1, OnFeatures(100, 256), (200,), centre=CENTRE),
    # Appendix C, table 5: SGD at 30, 100 epochs, batch 256. Views, schedule and first weights are MoCo's.
    "iot-moco": Protocol((5,), 0.1, OnViews(CROP, "sgd", 30.0, 256, 100, "tenths", spread=0.01)),
    # The authors' program for CIFAR-100, taken for STL-10 too. There batch norms see batches while the
    # classifier learns, and it prints the best epoch on test images; here neither.
    "mmcl": Protocol((200,), 0.5, OnViews(PRESETS["mmcl"][0], "adam", 1e-3, 512, 100, weight_decay=1e-6)),
    # By the authors' program: 28,080 steps (the text says 100 epochs), and 3,902 on ImageNet-100. Its central
    # crop is 7/8 of both sides, made a square.
    "mmcl-imagenet": MMCL_PHOTOGRAPHS,
    "mmcl-imagenet100": replace(MMCL_PHOTOGRAPHS, probe=replace(MMCL_PHOTOGRAPHS.probe, epochs=126)),
}
OWN = "setclr"
# Beginnings of recipes' names, the longest first: rows of the papers' tables, and what stands beside them.
OF_RECIPES = {
    "iot-table5": "iot-moco", "iot-moco": "iot-moco", "iot-": "iot",
    "mmcl-table1": "mmcl-imagenet", "mmcl-table2": "mmcl-imagenet100", "mmcl-table3": "mmcl-imagenet",
    "mmcl-text": "mmcl-imagenet", "mmcl-": "mmcl", "qare-": "qare", "column-": "qare",
    "groco-table9f": "groco-projection", "groco-": "groco", "small-groco-": "setclr-projection",
}  # fmt: skip


def protocol_named(name: str) -> Protocol:
    """The protocol of that name. Raises ValueError, with all names, if there is none."""
    return PROTOCOLS[choice("protocol", name, PROTOCOLS)]


def protocol_of(recipe: str) -> str:
    """The protocol by which the recipe of that name is measured: its paper's, or the project's own."""
    row = recipe.removeprefix("variant-")
    return next((name for start, name in OF_RECIPES.items() if row.startswith(start)), OWN)
