"""Images in memory and the same images in files answer alike."""

import pytest
import torch
from conftest import shifted
from PIL import Image

from setclr.data import ImageSet, Photographs
from setclr.data.sources import source_of
from setclr.views import View, draw

CPU = torch.device("cpu")
PLAIN = (View(size=12, jitter_p=0, grey=0), View(size=8, jitter_p=0, grey=0))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder, generator = tmp_path_factory.mktemp("files"), shifted(0)
    images = torch.randint(0, 256, (9, 3, 20, 20), generator=generator, dtype=torch.uint8)
    for i, image in enumerate(images):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{i}.png")
    return source_of(images), source_of(Photographs(sorted(folder.iterdir())))


def test_both_kinds_give_the_same_images(both):
    memory, files = both
    assert memory.in_ram and not files.in_ram
    for index in (slice(2, 7), torch.tensor([5, 5, 0]), slice(None)):
        assert torch.equal(memory.subset(index), files.subset(index)[:])
    for mine, theirs in zip(memory.split(4), files.split(4), strict=True):
        assert torch.equal(mine, theirs)
    for source in both:
        source.verify()
        assert torch.equal(source.to(CPU).images[:], memory.images)


@pytest.mark.parametrize("workers", [0, 1])
def test_both_kinds_give_the_same_views_but_for_rounding_to_grey_levels(both, workers):
    generator = shifted(1)
    batches = [(torch.tensor([k, 8 - k, 4]), draw(PLAIN, 3, generator)) for k in range(3)]
    memory, files = (list(one.view_batches(PLAIN, batches, workers, CPU)) for one in both)
    assert [x.shape for x in memory[0]] == [(1, 3, 3, 12, 12), (1, 3, 3, 8, 8)]
    for mine, theirs in zip(memory, files, strict=True):
        for x, y in zip(mine, theirs, strict=True):
            torch.testing.assert_close(x, y, rtol=0, atol=1.01 / 255)


def test_a_sample_of_either_kind_is_the_same(both):
    labels = torch.arange(9) % 3
    memory, files = (ImageSet(one.images, labels, ("a", "b", "c")).sample(5, seed=2) for one in both)
    assert torch.equal(memory.images, files.images[:]) and torch.equal(memory.labels, files.labels)
    assert isinstance(files.images, Photographs)
