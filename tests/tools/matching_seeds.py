"""Page 09's experiment with ten seeds: four losses, alone and with QARe, with and without a first norm.

OMP_NUM_THREADS=1 python tests/tools/matching_seeds.py data/results/matching/seeds.json

The file holds, for each loss, the share of right matches in per cent (pools of 128 test things) and the mean
cosine of two different things, a number a seed. A row that is there is left alone.
"""

import json
import shlex
import sys
from pathlib import Path

import torch
from torch.nn.functional import normalize

import setclr
from setclr import data, evaluation, pretrain, seeding
from setclr.losses import InfoNCE, NTLogistic, QARe, SparseCLR, Triplet
from setclr.recipes import ImageRecipe

LOSSES = {  # and QARe's share, as the paper has it
    "Triplet": (Triplet(margin=0.5), 0.4),
    "InfoNCE": (InfoNCE(temperature=0.05), 0.5),
    "NTLogistic": (NTLogistic(temperature=0.05), 0.2),
    "SparseCLR": (SparseCLR(margin=1.0), 0.3),
}
SETTINGS = dict(data="stereo-patches", views="matching", layers=1, lr=0.01, epochs=20, batch=128)
SETTINGS |= {"precision": "float32"}
SEEDS = range(10)


def main(out: str) -> None:
    torch.set_num_threads(1)
    train, test = (data.two_views(data.load("stereo-patches", split=s), size=16) for s in ("train", "test"))
    order = torch.randperm(test.shape[1], generator=seeding.seeded(0))
    pools = [part for part in order.split(128) if len(part) == 128]
    path = Path(out)
    rows = json.loads(path.read_text())["rows"] if path.exists() else {}
    found = {"command": shlex.join(["python", "tests/tools/matching_seeds.py", out]), "seeds": list(SEEDS)}
    found |= {"recipe": SETTINGS, "device": f"CPU, {torch.get_num_threads()} threads"}
    found |= {"torch": torch.__version__, "setclr": setclr.__version__, "rows": rows}
    for normalised in ("image", "none"):
        for name, (loss, share) in LOSSES.items():
            for used in (loss, (1 - share) * loss + share * QARe()):
                key = f"{name}{'' if used is loss else ' + QARe'}, normalised {normalised}"
                if key in rows:
                    continue
                matched, cosines = [], []
                for seed in SEEDS:
                    recipe = ImageRecipe(repr(used), seed=seed, normalised=normalised, **SETTINGS)
                    run = pretrain(recipe, data=data.paired(train, "together"), device="cpu")
                    network = torch.nn.Sequential(run.encoder, run.head)
                    a, b = (evaluation.features(network, view) for view in test)
                    right = [evaluation.matching_accuracy(a[part], b[part]) for part in pools]
                    matched.append(round(100 * sum(right) / len(right), 2))
                    x = normalize(a, dim=1)
                    cosines.append(round(float(((x @ x.T).sum() - len(x)) / (len(x) * (len(x) - 1))), 4))
                rows[key] = {"loss": repr(used), "matched_percent": matched, "mean_cosine": cosines}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(key, matched, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
