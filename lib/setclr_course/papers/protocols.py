"""The papers' evaluation protocols by name. The TOML files say which rows use which protocol."""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from setclr.data import ImageSet
from setclr.evaluation.protocols import OnFeatures, Protocol
from setclr.views import PRESETS, View


@dataclass(frozen=True)
class OnViews:
    """Settings of a linear classifier trained on views that are new in every epoch
    (`setclr_course.papers.probes`)."""

    view: View
    optimiser: str
    lr: float
    batch: int
    epochs: int
    schedule: str = "constant"
    weight_decay: float = 0.0
    spread: float | None = None
    """Standard deviation of the initial weights, with a bias of 0. None: torch's initial values."""

    def ranks(self, encoder: nn.Module, train: ImageSet, test: ImageSet) -> Tensor:
        """The likeliest classes of each test image, (Q, min(5, C)), the likeliest first, on the CPU."""
        from setclr_course.papers.probes import probe_on_views  # what few need

        return probe_on_views(encoder, train, test, self)


CROP = View(jitter_p=0.0, grey=0.0)  # 8 % to 100 % of the area, and a flip
CENTRE = 224 / 256
MMCL_PHOTOGRAPHS = Protocol(
    (200,), 0.5, OnViews(CROP, "sgd", 1.6, 4096, 90, "linear", spread=0.0), centre=CENTRE
)

GROCO = Protocol(
    (1, 10, 20), 0.07, OnViews(CROP, "lars", 1.6, 4096, 90, "cosine", spread=0.01), top5=True, centre=CENTRE
)

PROTOCOLS: dict[str, Protocol] = {
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
    # Appendix C, table 5: SGD at 30, 100 epochs, batch 256. Views, schedule and initial weights are MoCo's.
    "iot-moco": Protocol((5,), 0.1, OnViews(CROP, "sgd", 30.0, 256, 100, "tenths", spread=0.01)),
    # The authors' program for CIFAR-100, taken for STL-10 too. In it batch norms use the statistics of each
    # batch while the classifier learns, and it prints the best epoch on test images. Neither is done here.
    "mmcl": Protocol((200,), 0.5, OnViews(PRESETS["mmcl"][0], "adam", 1e-3, 512, 100, weight_decay=1e-6)),
    # By the authors' program: 28,080 steps (the text says 100 epochs), and 3,902 on ImageNet-100. Its central
    # crop is 7/8 of both sides, made a square.
    "mmcl-imagenet": MMCL_PHOTOGRAPHS,
    # The public program dkobak/simclr-cifar10: ten neighbours by cosine with a vote each, which a temperature
    # of 1,000 is (a tie goes to the nearer ones, there to the first class), and Adam on features as they are.
    "simclr-cifar10": Protocol(
        (10,), 1e3, OnFeatures(500, 1000, 0.01, raw=True, weight_decay=5e-6, cosine=True)
    ),
    "mmcl-imagenet100": replace(MMCL_PHOTOGRAPHS, probe=replace(MMCL_PHOTOGRAPHS.probe, epochs=126)),
}
