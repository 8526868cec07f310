"""Evaluation protocols: the settings of the kNN vote, the linear classifier and the crop."""

from dataclasses import dataclass, field, replace
from typing import Any

from setclr.checks import choice
from setclr.recipes.registry import OWN, collections, missing


@dataclass(frozen=True)
class OnFeatures:
    """Settings of a linear classifier trained by Adam on features computed once (`linear_probe`)."""

    epochs: int = 100
    batch: int = 128
    lr: float = 1e-3
    raw: bool = False
    """Features without scaling and torch's initial weights, instead of scaled features and zeros."""
    weight_decay: float = 0.0
    cosine: bool = False
    """The rate falls to 0 as half a cosine; otherwise it is constant."""


@dataclass(frozen=True)
class Protocol:
    """The measurements of a frozen encoder. Accuracies are in per cent, on the test split."""

    ks: tuple[int, ...] = (10,)
    temperature: float = 0.1
    probe: Any = field(default_factory=OnFeatures)
    """The linear classifier: `OnFeatures`, or a dataclass of your own with `epochs`, a `view`, and a method
    `ranks(encoder, train, test)` that gives the likeliest classes (Q, 5) of each test image."""
    longer: tuple[int, ...] = ()
    """Further probes on features, trained for these numbers of epochs, in columns such as "linear200"."""
    top5: bool = False
    """Also measure the share of test images whose class is among the classifier's five best."""
    centre: float = 1.0
    """Photographs are cropped to a central square of this fraction of the shorter side."""
    projection: bool = False
    """Also measure the kNN accuracies on the trained head's outputs, in columns such as "knn-projection"."""

    def column(self, k: int) -> str:
        """The column of a kNN accuracy, such as "knn20"; "knn" is the project's own vote, as in its
        records."""
        return "knn" if (k, self.temperature) == (10, 0.1) else f"knn{k}"

    @property
    def columns(self) -> list[str]:
        knn = [*map(self.column, self.ks)]
        more = [f"{name}-projection" for name in knn] if self.projection else []
        return [*knn, *self.probes, *(["linear-top5"] if self.top5 else []), *more]

    @property
    def probes(self) -> dict[str, Any]:
        """The linear classifiers by the names of their columns."""
        return {"linear": self.probe} | {f"linear{n}": replace(self.probe, epochs=n) for n in self.longer}


PROTOCOLS = {OWN: Protocol(), "setclr-projection": Protocol(projection=True)}  # the project's own


def known_protocols() -> dict[str, Protocol]:
    """The project's own protocols, and those that other packages register, by name."""
    return PROTOCOLS | {name: one for other in collections() for name, one in other.protocols.items()}


def protocol_named(name: str) -> Protocol:
    """The protocol of that name. Raises ValueError, with all names, if there is none."""
    known = known_protocols()
    return known[choice("protocol", name, known, missing())]
