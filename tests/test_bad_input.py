"""What is given wrong: every argument of every loss and inner function, and what is evaluated. A ValueError
names it, what it got, and what to do."""

import inspect
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image

from setclr import inner
from setclr.cli import main
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.experiments.tables import evaluate
from setclr.losses import (
    HCL,
    IOT,
    LOSSES,
    MMCL,
    AlignUniform,
    DebiasedInfoNCE,
    InfoNCE,
    LinearAssignment,
    QARe,
    Triplet,
)
from setclr.recipes import ImageRecipe
from setclr.training import checkpoint
from setclr.training.checkpoint import CHECKPOINT
from setclr_course.run_page.measured import evaluate_all

NO_POSITIVE_NUMBER = [0, -1.0, math.nan, math.inf, -math.inf, "0.5", None, True, [1.0], torch.ones(2)]
NO_NUMBER_FROM_ZERO = [-1e-9, math.nan, math.inf, "0.5", None, False, [1.0]]
NO_INTEGER_FROM_1 = [0, -1, 1.5, 2.0, "1", True, math.nan, [1]]
NO_ROUNDS = [*NO_INTEGER_FROM_1, 10**9]
NO_NAME = ["", "nonsense", None, 1, True]
NO_OFFSET = [0.5, math.nan, math.inf, "0.5", None, False, [1.0]]
NO_BOOLEAN = [0, 1, None, "True", 1.0]
NO_TENSOR = [None, 1.0, [[1.0, 2.0]], "K"]

WRONG_IN_A_LOSS = {
    "temperature": NO_POSITIVE_NUMBER,
    "epsilon": NO_POSITIVE_NUMBER,
    "beta": NO_POSITIVE_NUMBER,
    "bandwidth": NO_POSITIVE_NUMBER,
    "ridge": NO_POSITIVE_NUMBER,
    "t": NO_POSITIVE_NUMBER,
    "alpha": NO_POSITIVE_NUMBER,
    "C": [x for x in NO_POSITIVE_NUMBER if x is not math.inf],
    "margin": NO_NUMBER_FROM_ZERO,
    "uniformity": NO_NUMBER_FROM_ZERO,
    "hardness": NO_NUMBER_FROM_ZERO,
    "weight": NO_NUMBER_FROM_ZERO,
    "keep": [*NO_POSITIVE_NUMBER, 1.5],
    "prior": [*NO_NUMBER_FROM_ZERO, 1.0, 2],
    "negatives": [*NO_INTEGER_FROM_1, None],
    "iterations": NO_ROUNDS,
    "positive_views": [x for x in [*NO_INTEGER_FROM_1, 1] if x is not None],
    "preorder": NO_BOOLEAN,
    "stop_gradient": NO_BOOLEAN,
    "key_gradient": NO_BOOLEAN,
    "clamped": NO_BOOLEAN,
    "average": [x for x in NO_NAME if x is not None],
    "random": NO_BOOLEAN,
    "offset": NO_OFFSET,
    **dict.fromkeys(
        ["kernel", "solver", "pool", "constraint", "uniform_target", "similarity", "distance", "mining"],
        NO_NAME,
    ),
    "candidates": [x for x in NO_NAME if x is not None],
    "positives": NO_NAME,
}
OTHERWISE = {  # where a name means something else in one loss
    (LinearAssignment, "temperature"): NO_NUMBER_FROM_ZERO,
    (Triplet, "margin"): [x for x in NO_NUMBER_FROM_ZERO if x is not None],
}

K = torch.eye(3) + 0.5
x = torch.randn(4, 3)
NO_MATRIX = [*NO_TENSOR, torch.ones(3), torch.ones(2, 3), torch.ones(3, 3, dtype=torch.int64), K * math.nan]
WRONG_IN_AN_INNER_FUNCTION = {
    "kernel": (
        dict(x=x, y=x, kind="rbf", bandwidth=1.0, offset=0.0),
        dict(
            x=[*NO_TENSOR, torch.ones(3), torch.ones(4, 3, dtype=torch.int64), x * math.nan],
            y=[*NO_TENSOR, torch.ones(4, 2), x.double(), x / 0],
            kind=NO_NAME,
            bandwidth=NO_POSITIVE_NUMBER,
            offset=NO_OFFSET,
        ),
    ),
    "svm_dual": (
        dict(K=K, positive=0, own=None, C=1.0, ridge=0.1, solver="pgd", tolerance=1e-3, rounds=9),
        dict(
            K=[*NO_MATRIX, K.triu()],
            positive=[-1, 3, 0.5, None, "0", torch.ones(1), torch.zeros(1, 1, dtype=torch.int64)],
            own=[[[0]], torch.zeros(1, dtype=torch.int64), torch.ones(1, 1), torch.tensor([[1]])],
            C=WRONG_IN_A_LOSS["C"],
            ridge=NO_POSITIVE_NUMBER,
            solver=NO_NAME,
            tolerance=NO_POSITIVE_NUMBER,
            rounds=[*NO_ROUNDS, None],
        ),
    ),
    "sinkhorn": (
        dict(cost=x, epsilon=0.5, iterations=2, tolerance=1e-3, a=None, b=None),
        dict(
            cost=[*NO_TENSOR, torch.ones(3), torch.ones(2, 0), x.long(), x * math.nan, x - math.inf],
            epsilon=NO_POSITIVE_NUMBER,
            iterations=NO_ROUNDS,
            tolerance=NO_POSITIVE_NUMBER,
            a=[
                [0.25] * 4,
                torch.ones(3),
                torch.zeros(4),
                torch.full((4,), math.nan),
                torch.ones(4),
                torch.ones(4) * 1j,
            ],
            b=[[0.25] * 3, torch.ones(4), -torch.ones(3), torch.full((3,), math.inf), torch.ones(3)],
        ),
    ),
    "sorting_network": (
        dict(x=x[:, :2], beta=1.0, kind="odd-even", swap="arctan"),
        dict(
            x=[*NO_TENSOR, torch.tensor(1.0), torch.ones(2, 0), torch.arange(3), x * math.nan, x / 0],
            beta=NO_POSITIVE_NUMBER,
            kind=NO_NAME,
            swap=NO_NAME,
        ),
    ),
    "top_probability": (
        dict(x=x, top=1, beta=1.0, kind="odd-even", swap="arctan"),
        dict(
            x=[*NO_TENSOR, torch.tensor(1.0), torch.ones(2, 0), torch.arange(3), x * math.nan, x / 0],
            top=[*NO_INTEGER_FROM_1, None, 4],
            beta=NO_POSITIVE_NUMBER,
            kind=NO_NAME,
            swap=NO_NAME,
        ),
    ),
    "linear_assignment": (
        dict(cost=K, temperature=0.0, mining="one-to-one"),
        dict(
            cost=[*NO_TENSOR, torch.ones(3), torch.ones(3, 2), K * math.nan, -K / 0],
            temperature=NO_NUMBER_FROM_ZERO,
            mining=NO_NAME,
        ),
    ),
    "quadratic_assignment": (
        dict(S=K, S_A=K, S_B=K),
        dict(
            S=[*NO_MATRIX, torch.eye(9), torch.eye(2)],
            S_A=[*NO_MATRIX, torch.eye(2)],
            S_B=[*NO_MATRIX, torch.eye(4)],
        ),
    ),
    "spectral_bounds": (
        dict(F=K, D=K),
        dict(F=[*NO_MATRIX, K.triu(), torch.eye(2)], D=[*NO_MATRIX, K.triu(), torch.eye(4)]),
    ),
    "sparsemax": (dict(x=x), dict(x=[*NO_TENSOR, torch.tensor(1.0), torch.ones(2, 0), torch.arange(3)])),
}


def named(name, value):
    """A message that begins with the name, alone or with the one it does not fit, and shows what it got."""
    shown = (
        rf"({re.escape(repr(value))}|{type(value).__name__})" if not isinstance(value, torch.Tensor) else ""
    )
    alone = rf"(\w+ and )?{name}\b( and \w+)? must .*{shown}"
    return rf"(?s)^({alone}|\w+ must have the shape and dtype of {name}\b)"


@pytest.mark.parametrize(
    "kind, name", [(kind, name) for kind in LOSSES for name in inspect.signature(kind).parameters]
)
def test_every_argument_of_every_loss(kind, name):
    for value in OTHERWISE.get((kind, name), WRONG_IN_A_LOSS[name]):
        with pytest.raises(ValueError, match=named(name, value)):
            kind(**{name: value})


@pytest.mark.parametrize(
    "function, name",
    [(f, name) for f in inner.__all__ for name in inspect.signature(getattr(inner, f)).parameters],
)
def test_every_argument_of_every_inner_function(function, name):
    right, wrong = WRONG_IN_AN_INNER_FUNCTION[function]
    getattr(inner, function)(**right)
    for value in wrong[name]:
        with pytest.raises(ValueError, match=named(name, value)):
            getattr(inner, function)(**{**right, name: value})
    if isinstance(right[name], torch.Tensor):
        with pytest.raises(ValueError, match=f"^{name} must be a dense tensor, got torch.sparse_coo"):
            getattr(inner, function)(**{**right, name: right[name].to_sparse()})


@pytest.mark.parametrize("name", ["z", "keys", "memory", "weight", "labels"])
def test_a_loss_refuses_sparse_tensors(name):
    z = torch.ones(2, 3, 4)
    right = {"z": z, "keys": z, "memory": z[0], "weight": torch.ones(3), "labels": torch.arange(3)}
    given = {"z": z, name: right[name].to_sparse()}
    with pytest.raises(ValueError, match=f"^{name} must be a dense tensor"):
        InfoNCE()(**given)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: QARe("cosin"), "did you mean 'cosine'"),
        (lambda: IOT("row"), "did you mean 'rows'"),
        (lambda: MMCL(solver="exakt"), "did you mean 'exact'"),
        (lambda: AlignUniform(alpha=0), "alpha must be > 0 and <= 64, got 0"),
        (lambda: DebiasedInfoNCE(prior=1.0), "prior must be .*got 1.0"),
        (lambda: HCL(hardness=-1), "hardness must be >= 0, got -1"),
    ],
)
def test_messages_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
