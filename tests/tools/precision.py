"""Does bf16 cost accuracy? Five seeds of photo-infonce and photo-groco in float32 and in bf16, paired.

python tests/tools/precision.py [RECIPE ...] trains what data/results/precision lacks, then prints the table.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from setclr.experiments import campaign
from setclr.recipes import RECIPES

ROOT = Path(__file__).resolve().parents[2]
RESULTS, SEEDS = ROOT / "data" / "results" / "precision", range(5)
NAMES = ("photo-infonce", "photo-groco")


def accuracies(name: str, precision: str, column: str) -> np.ndarray:
    paths = [RESULTS / f"{name}-{precision}-seed{seed}.json" for seed in SEEDS]
    kept = [json.loads(path.read_text()) if path.exists() else None for path in paths]
    return np.array([one["accuracy_percent"]["trained"][column] if one else np.nan for one in kept])


def main(*names: str) -> None:
    for name in names or NAMES:
        both = {f"{name}-{p}": replace(RECIPES[name], precision=p) for p in ("float32", "bf16")}
        runs, data = ROOT / "data" / "runs", ROOT / "data"
        for line in campaign(
            both, SEEDS, runs, RESULTS, data, "cpu", command="python tests/tools/precision.py"
        ):
            print(line, flush=True)
    for name in names or NAMES:
        for column in ("knn", "linear"):
            a, b = (accuracies(name, precision, column) for precision in ("float32", "bf16"))
            gap = (b - a)[~np.isnan(b - a)]
            half = stats.t.ppf(0.975, len(gap) - 1) * stats.sem(gap) if len(gap) > 1 else np.nan
            print(f"{name}, {column}: float32 {np.nanmean(a):.2f}, bf16 {np.nanmean(b):.2f}, "
                  f"difference {gap.mean():+.2f} ± {half:.2f} (95 %, {len(gap)} pairs)")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
