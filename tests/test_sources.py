"""Images in memory and the same images in files answer alike."""

from dataclasses import replace

import pytest
import torch
from conftest import shifted
from pictures import grey_level, saved

from setclr.data import ImageSet, Photographs, load
from setclr.views import View, draw

PLAIN = (View(size=12, jitter_p=0, grey=0), View(size=8, jitter_p=0, grey=0))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    images = torch.randint(0, 256, (9, 3, 20, 20), generator=shifted(0), dtype=torch.uint8)
    photographs = Photographs(saved(tmp_path_factory.mktemp("files"), images))
    return [ImageSet(x, torch.arange(9) % 3, ("a", "b", "c")) for x in (images, photographs)]


def test_parts_of_both_kinds_are_the_same(both):
    """And leave files in files."""
    memory, files = both
    assert memory.in_ram and not files.in_ram
    for index in (slice(2, 7), torch.tensor([5, 5, 0]), torch.arange(9) > 5):
        for one in both:
            one.verify()
            assert torch.equal(one.subset(index).images[:], memory.images[index])
            assert torch.equal(one.subset(index).labels, memory.labels[index])
    assert isinstance(files.subset([0]).images, Photographs)


@pytest.mark.parametrize("workers", [0, 1])
def test_both_kinds_give_the_same_views_but_for_rounding_to_grey_levels(both, workers):
    batches = [(torch.tensor([k, 8 - k, 4]), draw(PLAIN, 3, shifted(k))) for k in range(3)]
    memory, files = (list(one.view_batches(PLAIN, batches, workers, torch.device("cpu"))) for one in both)
    assert [x.shape for x in memory[0]] == [(1, 3, 3, 12, 12), (1, 3, 3, 8, 8)]
    for mine, theirs in zip(memory, files, strict=True):
        for x, y in zip(mine, theirs, strict=True):
            torch.testing.assert_close(x, y, rtol=0, atol=1.01 / 255)


def test_a_digest_is_of_what_the_images_are_and_not_of_where_they_lie(tmp_path):
    streamed = {}
    for place, names in (("here", "ab"), ("there", "ab"), ("renamed", "cb")):
        for name in names:
            grey_level(tmp_path / place / "train" / name / "0.png", 9)
        streamed[place] = load(f"folder:{tmp_path / place}", stream=True).digest()
    assert streamed["here"] == streamed["there"] != streamed["renamed"]
    pixels = torch.arange(96, dtype=torch.uint8).view(2, 3, 4, 4)
    one = ImageSet(pixels, torch.tensor([0, 1]), ("a", "b"))
    changes = dict(classes=("b", "a")), dict(labels=torch.tensor([1, 0])), dict(images=pixels + 1)
    assert len({one.digest(), *(replace(one, **change).digest() for change in changes)}) == 4
    assert one.digest() == replace(one).digest() and one.digest().startswith("2 images with checksum ")
