"""Page 09's experiment with the rate as a factor: four losses, alone and with QARe, two first layers.

OMP_NUM_THREADS=1 python tests/tools/matching_rates.py choose PATH.jsonl  # seeds 100 to 102, held-out things
OMP_NUM_THREADS=1 python tests/tools/matching_rates.py report PATH.jsonl  # seeds 0 to 9, test things
python tests/tools/matching_rates.py join PATH.jsonl data/results/matching/rates.json

The rule, written before the first training: an arm is a loss, alone or with QARe, with or without the first
norm. Each arm's rate is the one with the highest mean over the three seeds of `choose`, which trains on the
upper part of the training scene and scores the matching of all things of its lower part (`data.split_pairs`);
the smaller rate wins a tie. An arm whose best rate stands at an end of the rates gets one more rate beyond
that end, at most once. `report` trains on the whole training scene and scores on the test things, first each
arm's own rate, then the rest.

A line a training; a training that is there is left alone, and several processes share the work.
"""

import fcntl
import json
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from subprocess import check_output

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
RATES = [0.001, 0.003, 0.01]
BELOW, ABOVE = 0.0003, 0.03
SETTINGS = dict(data="stereo-patches", views="matching", layers=1, epochs=20, batch=128, precision="float32")
SEEDS = {"choose": range(100, 103), "report": range(10)}
ARMS = list(product(("none", "image"), LOSSES, (False, True)))


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def means(lines: list[dict], arm: tuple) -> dict[float, float]:
    """Of each rate that an arm was tried at with all three seeds, the mean per cent on held-out things."""
    found = defaultdict(list)
    for line in lines:
        if line["part"] == "choose" and arm == (line["normalised"], line["loss"], line["qare"]):
            found[line["rate"]].append(line["matched_percent"])
    return {rate: sum(x) / len(x) for rate, x in sorted(found.items()) if len(x) == len(SEEDS["choose"])}


def best(lines: list[dict], arm: tuple) -> float:
    tried = means(lines, arm)
    return max(sorted(tried), key=tried.get)


def to_choose(lines: list[dict]) -> list[tuple]:
    first = [(*arm, rate) for rate, arm in product(RATES, ARMS)]
    done = [arm for arm in ARMS if set(RATES) <= set(means(lines, arm))]
    ends = {RATES[0]: BELOW, RATES[-1]: ABOVE}
    return first + [(*arm, ends[best(lines, arm)]) for arm in done if best(lines, arm) in ends]


def to_report(lines: list[dict]) -> list[tuple]:
    own = [(*arm, best(lines, arm)) for arm in ARMS]
    rest = [(*arm, rate) for arm in ARMS for rate in RATES if rate != best(lines, arm)]
    return own + rest


def trained(part, images, to_score, normalised, name, qare, rate, seed) -> dict:
    loss, share = LOSSES[name]
    used = (1 - share) * loss + share * QARe() if qare else loss
    recipe = ImageRecipe(repr(used), seed=seed, normalised=normalised, lr=rate, **SETTINGS)
    run = pretrain(recipe, data=data.paired(images, "together"), device="cpu")
    a, b = (evaluation.features(torch.nn.Sequential(run.encoder, run.head), view) for view in to_score)
    pools = [torch.arange(len(a))]
    if part == "report":
        order = torch.randperm(len(a), generator=seeding.seeded(0))
        pools = [pool for pool in order.split(128) if len(pool) == 128]
    right = [evaluation.matching_accuracy(a[pool], b[pool]) for pool in pools]
    x = normalize(a, dim=1)
    cosine = float(((x @ x.T).sum() - len(x)) / (len(x) * (len(x) - 1)))
    where = dict(part=part, normalised=normalised, loss=name, qare=qare, rate=rate, seed=seed)
    where |= {"used": repr(used), "matched_percent": round(100 * sum(right) / len(right), 2)}
    return where | {"mean_cosine": round(cosine, 4)}


def work(part: str, path: Path) -> None:
    torch.set_num_threads(1)
    train, test = (data.two_views(data.load("stereo-patches", split=s), size=16) for s in ("train", "test"))
    images, to_score = data.split_pairs(train) if part == "choose" else (train, test)
    path.parent.mkdir(parents=True, exist_ok=True)
    claims = path.with_suffix(".claims")
    while True:
        with open(claims, "a+") as taken:
            fcntl.flock(taken, fcntl.LOCK_EX)
            taken.seek(0)
            gone = set(taken.read().splitlines())
            todo = (to_choose if part == "choose" else to_report)(lines_of(path))
            free = [(*x, seed) for seed, x in product(SEEDS[part], todo) if str((part, *x, seed)) not in gone]
            if part == "report":  # each arm's own rate first
                free = sorted(free, key=lambda one: todo.index(one[:-1]) >= len(ARMS))
            if not free:
                return
            taken.write(str((part, *free[0])) + "\n")
        line = trained(part, images, to_score, *free[0])
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def join(path: Path, out: Path) -> None:
    """All lines as one record: numbers by seed, under each arm and rate."""
    lines = lines_of(path)
    commit = check_output(["git", "log", "-1", "--format=%h"], text=True).strip()
    commands = [f"python tests/tools/matching_rates.py {part} PATH.jsonl" for part in SEEDS]
    found = {"commands": commands, "commit": commit, "recipe": SETTINGS, "rates": RATES}
    found |= {
        "pixels": "original, 32 x 32, halved to 16 x 16",
        "mirrored": "together",
        "device": "CPU",
        "threads": 1,
    }
    found |= {"torch": torch.__version__, "setclr": setclr.__version__}
    found["choose"] = "trained on the upper 940 of the 1,141 training things, scored on the other 201 at once"
    found["report"] = "trained on all training things, scored on the test things in pools of 128"
    rows = defaultdict(dict)
    for line in sorted(lines, key=lambda line: (ARMS.index(arm_of(line)), line["rate"], line["seed"])):
        title = f"{line['loss']}{' + QARe' * line['qare']}, normalised {line['normalised']}"
        row = rows[title].setdefault(line["part"], {}).setdefault(f"{line['rate']:g}", defaultdict(list))
        for name in ("seed", "matched_percent", "mean_cosine"):
            row[name].append(line[name])
        rows[title] |= {"loss": line["used"], "chosen": best(lines, arm_of(line))}
    out.write_text(json.dumps(found | {"rows": rows}, indent=1) + "\n")


def arm_of(line: dict) -> tuple:
    return line["normalised"], line["loss"], line["qare"]


if __name__ == "__main__":
    if sys.argv[1] == "join":
        join(*map(Path, sys.argv[2:]))
    else:
        work(sys.argv[1], Path(sys.argv[2]))
