"""What is evaluated is wrong: an error names it, what it got, and what to do."""

import pytest
import torch
from pictures import grey_level

from setclr.cli import main
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.experiments.tables import evaluate
from setclr.recipes import ImageRecipe
from setclr_course.run_page.measured import evaluate_all


def test_a_run_on_a_folder_is_evaluated_by_its_name_grey_images_among_others(tmp_path, capsys):
    for split, n in (("train", 12), ("val", 3)):
        for name in ("cat", "dog"):
            for i in range(n):
                path = tmp_path / "tree" / split / name / f"{i:02}.png"
                grey_level(path, 9 * i, (24, 20), "RGB" if i % 2 else "L")
    new_run(ImageRecipe("InfoNCE()", data=f"folder:{tmp_path}/tree", size=16), 3).save(tmp_path / "run")
    main(["evaluate", f"{tmp_path}/run", "--device", "cpu"])
    assert "trained" in capsys.readouterr().out
    for path in (tmp_path / "tree/train").glob("*/0[0-7].png"):
        path.unlink()
    with pytest.raises(ValueError, match="k must be .* <= 8, got 10; the bank has 8 .* or more images"):
        main(["evaluate", f"{tmp_path}/run", "--device", "cpu"])


def some(labels, classes) -> ImageSet:
    images = torch.randint(0, 256, (len(labels), 3, 16, 16), dtype=torch.uint8)
    return ImageSet(images, torch.tensor(labels), classes)


@pytest.mark.parametrize("evaluation", [evaluate, evaluate_all])
@pytest.mark.parametrize("train, test, message", [
    ("ab", "a", r"test must have the classes of train; they differ in b\. .*matching_accuracy"),
    ("a", "abc", r"test must have the classes of train; they differ in b, c\."),
    ("ab", "ba", r"test must have the classes of train; they differ in their order\."),
    ("ba", "ba", "train must have images of 'a', got none, and test has some; add them"),
])  # fmt: skip
def test_splits_of_different_classes(evaluation, train, test, message):
    sets = some([0] * 20, tuple(train)), some([0, len(test) - 1], tuple(test))
    with pytest.raises(ValueError, match=message):
        evaluation(new_run(ImageRecipe("InfoNCE()"), 3), *sets)
