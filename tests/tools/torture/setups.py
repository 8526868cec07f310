"""The set-ups that are killed: what a user types, with few images and few steps.

"{out}" is the folder of the attempt, "{tree}" one of photographs of one size, "{wild}" one of any sizes.
"""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class SetUp:
    """A command, and by how many processes torchrun has it done."""

    words: list[str]
    processes: int = 1


FEW = (
    "--data folder:{tree} --images 48 --batch 16 --epochs 3 --hidden 32 --embedding 16"
    " --device cpu --compiled no --precision float32 --views photo"
)


def pretrain(loss: str, more: str = "", processes: int = 1) -> SetUp:
    words = shlex.split(f"{FEW} {more}")
    return SetUp(["pretrain", "photo-infonce", "--out", "{out}", "--loss", loss, *words], processes)


def campaign(recipe: str) -> SetUp:
    words = "--seeds 0 --data folder:{tree} --epochs 2 --batch 16 --runs {out}/runs --results {out}/results"
    return SetUp(["campaign", recipe, *words.split()])


SETUPS = {
    "adam": pretrain("InfoNCE()"),
    "sgd": pretrain(
        "GroCo()", "--last-norm --optimiser sgd --lr 0.1 --warmup 1 --schedule steps --no-drop-last"
    ),
    "queue": pretrain(
        "InfoNCE(temperature=learnable(0.2))",
        "--key-momentum 0.9 --queue 40 --optimiser adamw --weight-decay 0.1",
    ),
    "moco-v3": pretrain(
        "IOT(constraint='rows')",
        "--key-momentum 0.9 --key-schedule cosine --predictor 2 --optimiser lars --lr 0.2 --layers 3",
    ),
    "clusters": pretrain("DeepCluster()", "--full-views 1 --embedding 4"),
    "rotations": pretrain("Rotation()", "--full-views 1 --embedding 4"),
    "infomax": pretrain("DeepInfoMax()", "--full-views 1"),
    "multi-crop": pretrain("InfoNCE() + 0.5 * QARe()", "--local-views 2 --view-size 24 --local-size 16"),
    "schedule": pretrain(
        "MMCL(bandwidth=9)", "--precision bf16 --chunk 8 --loss-schedule 'bandwidth: 9, 4 from 1'"
    ),
    "streamed": pretrain("SparseCLR()", "--data folder:{wild} --view-size 24 --workers 2"),
    "campaign": campaign("photo-infonce"),
    "torchrun": pretrain("InfoNCE()", processes=2),
}
