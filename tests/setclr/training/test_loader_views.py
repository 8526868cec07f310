"""LoaderViews takes the labels that a Dataset gives: after its transforms, and of Datasets in Datasets."""

from types import SimpleNamespace

import pytest
import torch
from pictures import grey_level
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset
from torchvision.datasets import FakeData, ImageFolder, wrap_dataset_for_transforms_v2
from torchvision.transforms.v2.functional import to_image

from setclr.training import LoaderViews


class Items(Dataset):
    """Six items of two views, followed by what `give` makes of the number."""

    def __init__(self, *give, **more):
        self.give = give
        vars(self).update(more)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int):
        if i >= 6:
            raise IndexError(i)
        return [torch.rand(3), torch.rand(3)], *(one(i) for one in self.give)


def twice(image) -> list[torch.Tensor]:
    return [to_image(image) / 255] * 2


def animal(label: int) -> int:
    return {0: 0, 1: 0, 2: 1}[label]


@pytest.fixture
def folder(tmp_path):
    for name in ("cat", "dog", "train"):
        grey_level(tmp_path / name / "1.png", 9)
    return tmp_path


def fake(n: int = 5, **how) -> FakeData:
    return FakeData(n, (3, 4, 4), 7, twice, **how)


def labels(dataset) -> list[int]:
    return LoaderViews(dataset).labels.tolist()


def given(dataset) -> list[int]:
    return [int(item[-1]) for item in dataset]


def test_a_target_transform_is_applied(folder):
    """imbalanced-dataset-sampler#6, pytorch/vision#8199."""
    images = ImageFolder(folder, twice, animal)
    for one in (images, Subset(images, [2, 0]), ConcatDataset([images, ImageFolder(folder, twice)])):
        assert labels(one) == given(one)
    assert labels(images) == [0, 0, 1]
    assert labels(wrap_dataset_for_transforms_v2(images)) == [0, 0, 1]


@pytest.mark.parametrize("targets", [list, torch.tensor, lambda x: torch.tensor(x).numpy()])
def test_a_target_transform_gets_numbers(targets):
    known = targets([0, 1, 2, 2, 1, 0])
    one = Items(lambda i: animal(int(known[i])), targets=known, target_transform=animal)
    assert labels(one) == given(one) == [0, 0, 1, 1, 0, 0]


def test_labels_of_datasets_in_datasets_and_of_items_are_not_lost():
    tensors = TensorDataset(torch.rand(6, 3), torch.rand(6, 3), torch.arange(6) % 4)
    some = [fake(), fake(target_transform=lambda x: x % 2), tensors, Items(lambda i: torch.tensor(i))]
    some += [Items(lambda i: i, lambda i: f"{i}.png"), Items(lambda i: i > 3), Items(lambda i: i - 1)]
    for one in some:
        assert labels(one) == given(one) if len(one[0]) < 3 or one is tensors else labels(one) == [*range(6)]
    joined = ConcatDataset([fake(), Subset(some[3], [4, 2]), fake(3, random_offset=9)])
    for one in (joined, Subset(joined, [9, 0, 5, 6]), Subset(Subset(joined, range(2, 9)), [6, 3]),
                Subset(joined, [-1, 2]), ConcatDataset([joined, Subset(joined, [1])])):  # fmt: skip
        assert labels(one) == given(one)


def test_without_labels_there_are_none_and_items_are_not_read_for_them(monkeypatch):
    read = []
    none = Items(lambda i: read.append(i) or f"{i}.png")
    assert labels(none) == [-1] * 6 and set(read) == {0}
    assert labels(Items(lambda i: i / 7)) == [-1] * 6, "a number that is not whole is no class"
    assert labels(ConcatDataset([none, fake(2)])) == [-1] * 6 + given(fake(2))
    assert labels(Subset(none, [3])) == [-1]


def test_targets_that_the_items_do_not_give_are_refused():
    """A subclass that joins classes in its items, or an item whose number is no class."""
    for one in (Items(lambda i: 1, targets=[0] * 6), Items(lambda i: i, labels=[5] * 6)):
        for dataset in (one, Subset(one, [0]), ConcatDataset([one, one])):
            with pytest.raises(ValueError, match=r"labels of \w+ must be those of its items, got . in"):
                LoaderViews(dataset)


def test_labels_are_found_where_they_are():
    for name in ("targets", "labels"):
        one = Items(**{name: [0, 1, 2.0, 0, -1, 2]}, classes=["a", "b", "c"])
        assert labels(one) == [0, 1, 2, 0, -1, 2]
        assert labels(Subset(Subset(one, [5, 4, 3, 2]), [3, 1])) == [2, -1]
    with pytest.raises(ValueError, match="targets must be 6 whole numbers .*'a' among"):
        LoaderViews(Items(targets=[0] * 6, target_transform=lambda _: "a"))


@pytest.mark.parametrize("one", [5, torch.rand(4, 2, 3), SimpleNamespace(), iter([])])
def test_what_is_no_dataset_with_a_length_is_refused(one):
    with pytest.raises(ValueError, match="dataset must be a Dataset with a length and numbered items, got"):
        LoaderViews(one)
