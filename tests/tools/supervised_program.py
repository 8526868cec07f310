"""The supervised row of QARe's own program, trained by that program on images that we have too.

git clone https://github.com/amoskalev/contrasting_quadratic CLONE
python tests/tools/supervised_program.py CLONE data/unpacked/cifar10 50 data/results/jpeg/program.json

Network, optimiser, schedule, views and the test of accuracy are the program's; the images are those of the
folder, for that many epochs, with seeds 0, 1 and 2. Each seed is added to the file when it is trained, and
one that is there is left alone: if ours differs on the same images, the reason lies in our training.
"""

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import ImageFolder
from tqdm.auto import tqdm

BATCH, SEEDS = 128, ("0", "1", "2")


class Decoded(Dataset):
    """The images of a folder of classes, each decoded once, as the program's transforms take them."""

    def __init__(self, folder: Path, transform):
        files = ImageFolder(str(folder))
        self.images, self.transform = [files[i] for i in range(len(files))], transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple:
        picture, label = self.images[index]
        return self.transform(picture), label


def accuracy(folder: Path, epochs: int, seed: int) -> float:
    """In per cent, of the program's own classifier on the test images after the last epoch."""
    manager = import_module("datamanager").DataManager(seed)  # sets the seeds of torch, numpy and random
    made = {kind: manager.get_train_transforms(kind, "cifar10") for kind in ("standard", "lineval")}
    train = DataLoader(Decoded(folder / "train", made["standard"]), BATCH, shuffle=True)
    test = DataLoader(Decoded(folder / "val", made["lineval"]), BATCH)
    encoder = import_module("backbones.conv4").Conv4()
    model = import_module("methods.standard").StandardModel(encoder, 10, tot_epochs=epochs)
    for epoch in tqdm(range(epochs)):
        model.train(epoch, train)
    return model.test(test)[1]


def main(program: str, folder: str, epochs: str, out: str) -> None:
    sys.path.insert(0, program)
    path = Path(out)
    command = shlex.join(["python", "tests/tools/supervised_program.py", *sys.argv[1:]])
    found = {"command": command, "epochs": int(epochs), "pixels": "JPEG q75", "torch": torch.__version__}
    found["device"] = f"CPU, {torch.get_num_threads()} threads"
    kept = json.loads(path.read_text())["classifier_percent"] if path.exists() else {}
    for seed in SEEDS:
        if seed not in kept:
            kept[seed] = round(accuracy(Path(folder), int(epochs), int(seed)), 2)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**found, "classifier_percent": kept}, indent=1) + "\n")
            print(f"seed {seed}: {kept[seed]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
