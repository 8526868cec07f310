"""What users bring: encoders, Datasets, graphs and videos. It trains, or is refused in words.

A trial tries a few. Counted are those that trained and those that were refused; a finding is any other error,
or a loss that is not finite.
"""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data import Data
from trials import Outcome, Tries

from setclr import models, views
from setclr.data import ImageSet
from setclr.graphs import GIN, GraphSet, GraphViews, graph_head
from setclr.losses import parse
from setclr.training import ImageViews, LoaderViews, Machine, Trainer
from setclr.video import ClipViews, VideoSet, video_encoder, video_views
from setclr.video.views import VIDEO

TRIES = 5
LOSSES = ["InfoNCE(0.2)", "SparseCLR()", "GroCo()", "IOT()", "InfoNCE() + QARe()", "SupCon()", "MMCL()"]


def mostly(by: random.Random, usual: list, others: list) -> Any:
    """One of the usual, and now and then one of the others."""
    return by.choice(usual if by.random() < 0.85 else others)


class Mine(Exception):
    """An error of the user's own."""


def several(seed: int, one: Callable[[random.Random], tuple[str, Callable[[], Trainer]]]) -> Outcome:
    by, tries = random.Random(seed), Tries(ValueError, FloatingPointError, FileNotFoundError, Mine)
    torch.manual_seed(seed)
    for _ in range(TRIES):
        tell, make = one(by)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tries.one(tell, lambda make=make: make().fit(), loss_that_is_none)
    return tries.outcome()


def loss_that_is_none(rows: list[dict]) -> str:
    return "" if all(np.isfinite(row["loss"]) for row in rows) else str(rows)


class Encoder(nn.Module):
    """An encoder that does to its features what `also` does, and holds a buffer."""

    def __init__(self, also: Callable, channels: int, buffer: torch.Tensor):
        super().__init__()
        layers = [nn.Conv2d(channels, 8, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3)]
        self.net, self.also = nn.Sequential(*layers), also
        self.register_buffer("kept", buffer)

    def forward(self, x: torch.Tensor) -> Any:
        return self.also(self.net(x))


def raising(x: torch.Tensor) -> Any:
    raise Mine("of the user's own")


ALSO: dict[str, Callable] = {
    "features": lambda x: x, "maps": lambda x: x[..., None, None], "double": lambda x: x.double(),
    "tokens": lambda x: x[:, None].repeat(1, 3, 1), "tuple": lambda x: (x, x), "list": lambda x: [x],
    "dict": lambda x: {"x": x}, "none": lambda x: None, "half": lambda x: x[::2], "sum": lambda x: x.sum(),
    "nan": lambda x: x / 0 * 0, "zero": lambda x: 0 * x, "numpy": lambda x: x * float(np.random.rand()),
    "raises": raising, "bf16": lambda x: x.bfloat16(), "no gradient": lambda x: x.detach(),
    "integers": lambda x: x.long(),
}  # fmt: skip
BUFFERS = [
    torch.zeros(2),
    torch.full((2,), torch.inf),
    torch.full((2, 2), -torch.inf).triu(1),
    torch.tensor(torch.nan),
]


def machine(by: random.Random) -> Machine:
    return Machine("cpu", by.choice(["float32", "auto", "bf16"]), by.choice([None, None, 3]), 0, False)


def encoders(seed: int, folder: Path) -> Outcome:
    images = torch.randint(0, 256, (12, 3, 16, 16), dtype=torch.uint8)

    def one(by: random.Random) -> tuple[str, Callable[[], Trainer]]:
        kind, loss = mostly(by, ["features", "maps", "numpy", "double", "bf16"], [*ALSO]), by.choice(LOSSES)
        encoder = Encoder(ALSO[kind], mostly(by, [3], [1]), by.choice(BUFFERS).clone())
        encoder = encoder.to(by.choice([torch.float32, torch.float32, torch.float64]))
        if by.random() < 0.3:
            encoder.register_forward_hook(lambda *_: None)
        head = models.head(mostly(by, [8], [9]), 8, 6, last_norm=True)
        head = head.to(next(encoder.parameters()).dtype)
        labels = torch.tensor(mostly(by, [[0, 1, 2] * 4], [[-1, 0, 1] * 4, [0] * 12]))
        source = ImageViews(ImageSet(images, labels, ("a", "b", "c")), views.preset("photo"))
        how, given = machine(by), mostly(by, [loss == "SupCon()"], [True, False])
        return f"{kind} {loss}", lambda: Trainer(
            source, encoder, head, parse(loss), epochs=2, batch=6, labels=given, device=how
        )

    return several(seed, one)


class Items(Dataset):
    def __init__(self, item: Callable, n: int, labels: Any):
        self.item, self.n, self.targets = item, n, labels

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.item(i)


def picture(by: random.Random) -> Any:
    side = by.choice([(16, 16), (16, 16), (16, 16), (20, 9), (1, 1)])
    return by.choice([
        lambda: Image.new(by.choice(["RGB", "L", "RGBA", "P", "I;16", "F", "CMYK", "1"]), side, 3),
        lambda: torch.rand(by.choice([3, 3, 1, 2, 4]), *side),
        lambda: torch.rand(3, *side) * by.choice([1.0, 1.0, 255.0, -1.0, float("nan")]),
        lambda: torch.randint(0, 256, (3, *side), dtype=by.choice([torch.uint8, torch.int64])),
        lambda: np.zeros((*side, 3), np.uint8), lambda: None, lambda: "picture.png",
    ])  # fmt: skip


def datasets(seed: int, folder: Path) -> Outcome:
    def one(by: random.Random) -> tuple[str, Callable[[], Trainer]]:
        usual = [lambda: Image.new("RGB", (16, 16), 3), lambda: torch.rand(3, 16, 16)]
        first, other, bad = mostly(by, usual, [picture(by)]), picture(by), mostly(by, [-1], [5])
        form = by.choice(["one", "labelled", "two", "two labelled", "three"])

        def item(i: int) -> Any:
            if i == bad:
                return by.choice([raising, lambda _: other()])(torch.ones(1))
            x = first()
            return {"one": x, "labelled": (x, 1), "two": [x, x], "two labelled": ([x, x], 1),
                    "three": (x, x, x)}[form]  # fmt: skip

        usual_labels = [None, [0, 1] * 6, [-1] * 12, torch.arange(12)]
        labels = mostly(by, usual_labels, [[0.5] * 12, ["a"] * 12, [0, 1], [-2] * 12, np.full(12, np.nan)])
        made = Items(item, mostly(by, [12], [1, 0]), labels)
        loader = form.startswith("t") if by.random() < 0.8 else not form.startswith("t")
        small = tuple(views.View(size=12) for _ in range(2))

        def trainer() -> Trainer:
            source = LoaderViews(made) if loader else ImageViews(made, small)
            encoder = Encoder(ALSO["features"], 3, torch.zeros(1))
            head = models.head(8, 8, 6, last_norm=True)
            return Trainer(source, encoder, head, parse("InfoNCE()"), epochs=1, batch=6, device=machine(by))

        return f"{form} {'LoaderViews' if loader else 'ImageViews'}", trainer

    return several(seed, one)


def graphs(seed: int, folder: Path) -> Outcome:
    def one(by: random.Random) -> tuple[str, Callable[[], Trainer]]:
        def graph(spite: float) -> Data:
            n = by.choice([1, 3, 8])
            m = by.choice([0, n, 3 * n])
            x, edges = torch.rand(n, 3), torch.randint(0, n, (2, m))
            y: Any = torch.tensor([by.randrange(2)])
            if by.random() < spite:
                x = by.choice([x.double(), x.long(), x / 0, x[:, :2], x[:0], x[0], None, x.half()])
            if by.random() < spite:
                edges = by.choice([edges + 1, edges - 1, edges.float(), edges[:1], edges.int(), None])
            if by.random() < spite:
                y = by.choice([torch.tensor([0.7]), torch.tensor([-1]), torch.tensor([1, 0]), None, 1, "a",
                               torch.tensor([10**9])])  # fmt: skip
            more = by.choice([{}, {"edge_attr": torch.rand(m, 1)}, {"num_nodes": n + 1}])
            return Data(x=x, edge_index=edges, y=y, **(more if by.random() < spite else {}))

        made = [graph(mostly(by, [0], [0.2]) if i else 0) for i in range(mostly(by, [12], [1, 0]))]
        names = [mostly(by, ["same", "drop", "rewire", "mask", "walk", "any"], ["x"]) for _ in range(2)]
        loss, labels = by.choice(LOSSES), by.random() < 0.3

        def trainer() -> Trainer:
            encoder = GIN(3, 8, 2)
            source = GraphViews(
                GraphSet(made), (names[0], names[1]), mostly(by, [0.1, 0.2, 0.9], [0, 1, 1.5, -1])
            )
            head = graph_head(encoder.out, last_norm=True)
            return Trainer(source, encoder, head, parse(loss), epochs=1, batch=6, labels=labels,
                           device=machine(by))  # fmt: skip

        return f"graphs {names} {loss}", trainer

    return several(seed, one)


def videos(seed: int, folder: Path) -> Outcome:
    def one(by: random.Random) -> tuple[str, Callable[[], Trainer]]:
        other_shapes = [(8, 3, 2, 16, 16), (8, 3, 6, 16, 9), (0, 3, 6, 16, 16), (8, 1, 6, 16, 16)]
        shape = mostly(by, [(8, 3, 6, 16, 16), (8, 2, 6, 16, 16)], other_shapes)
        x = torch.randint(0, 256, shape).to(mostly(by, [torch.uint8], [torch.float32]))
        y = mostly(by, [torch.arange(len(x)) % 2], [torch.zeros(len(x)) + 0.7, torch.arange(3), [0, 1], None])
        frames, stride = mostly(by, [4], [9, 0]), mostly(by, [1], [2, 0])
        name, loss = mostly(by, [*VIDEO], ["x"]), by.choice(LOSSES)

        def trainer() -> Trainer:
            made = VideoSet(x, {"class": y}, {"class": ("a", "b")})
            encoder, width = video_encoder("conv4-clips", made.channels)
            source = ClipViews(made, video_views(name, 16, by.choice([0.0, 0.5])), frames, stride)
            head = models.head(width, 8, 6, last_norm=True)
            return Trainer(source, encoder, head, parse(loss), epochs=1, batch=4, device=machine(by))

        return f"videos {shape} {name} {loss}", trainer

    return several(seed, one)
