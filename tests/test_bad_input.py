"""What is evaluated is wrong: an error names it, what it got, and what to do."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image

from setclr.cli import main
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.experiments.tables import evaluate
from setclr.recipes import ImageRecipe
from setclr.training import checkpoint
from setclr.training.checkpoint import CHECKPOINT
from setclr_course.run_page.measured import evaluate_all


@pytest.fixture
def run(tmp_path) -> Path:
    """A run on a folder of two classes, 12 + 3 images, half of them grey."""
    drawn, tree = numpy_shifted(0), tmp_path / "tree"
    for split, n in (("train", 12), ("val", 3)):
        for name in ("cat", "dog"):
            (tree / split / name).mkdir(parents=True)
            for i in range(n):
                pixels = drawn.integers(0, 256, (20, 24, 3) if i % 2 else (20, 24), dtype=np.uint8)
                Image.fromarray(pixels).save(tree / split / name / f"{i}.png")
    new_run(ImageRecipe("InfoNCE()", data=f"folder:{tree}", size=16), 3).save(tmp_path / "run")
    return tmp_path / "run"


def test_grey_images_among_others_are_evaluated(run, capsys):
    main(["evaluate", str(run), "--device", "cpu"])
    assert "trained" in capsys.readouterr().out


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda tree: shutil.rmtree(tree), "tree is no folder; folder:PATH takes PATH/train/CLASS/IMAGE"),
        (lambda tree: shutil.rmtree(tree / "train" / "dog"), "val/dog has no counterpart in .*train; both"),
        (lambda tree: shutil.rmtree(tree / "val" / "dog"), "train/dog has no counterpart in .*val; both"),
        (lambda tree: empty(tree / "train" / "dog"), "train/dog has no images; fill it or remove it"),
        (lambda tree: empty(tree / "val" / "cat"), "val/cat has no images; fill it or remove it"),
        (lambda tree: (tree / "val" / "cat" / "1.png").write_text("no"), "cat/1.png is no image .*remove or"),
        (lambda tree: [(tree / "train" / name / f"{i}.png").unlink() for name in ("cat", "dog")
                       for i in range(8)], "k must be .* <= 8, got 10; the bank has 8 .* or more images"),
    ],
)  # fmt: skip
def test_folders_that_cannot_be_evaluated(run, spoil, message):
    spoil(run.parent / "tree")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        main(["evaluate", str(run), "--device", "cpu"])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"encoder": "resnet18"}, "run: its encoder is not the recipe's .*train again in another folder"),
        (
            {"hidden": 32},
            r"run: its head is not the recipe's \('\S+' is \(256, 64\), and must be \(32, 64\)\)",
        ),
        ({"last_norm": True}, "run: its head is not the recipe's .* is missing, and must be"),
        ({"layers": 1}, "run: its head is not the recipe's"),
    ],
)
def test_a_checkpoint_of_another_model(run, change, message):
    state = checkpoint.read(run)
    torch.save({**state, "recipe": {**state["recipe"], **change}}, run / CHECKPOINT)
    with pytest.raises(ValueError, match=message):
        main(["evaluate", str(run), "--device", "cpu"])


def some(labels, classes) -> ImageSet:
    return ImageSet(
        torch.randint(0, 256, (len(labels), 3, 16, 16), dtype=torch.uint8), torch.tensor(labels), classes
    )


@pytest.mark.parametrize("evaluation", [evaluate, evaluate_all])
@pytest.mark.parametrize(
    "train, test, message",
    [
        (("a", "b"), ("a",), r"test must have the classes of train; they differ in b\. .*matching_accuracy"),
        (("a",), ("a", "b", "c"), r"test must have the classes of train; they differ in b, c\."),
        (("a", "b"), ("b", "a"), r"test must have the classes of train; they differ in their order\."),
        (("b", "a"), ("b", "a"), "train must have images of 'a', got none, and test has some; add them"),
    ],
)
def test_splits_of_different_classes(evaluation, train, test, message):
    with pytest.raises(ValueError, match=message):
        evaluation(
            new_run(ImageRecipe("InfoNCE()"), 3), some([0] * 20, train), some([0, len(test) - 1], test)
        )
