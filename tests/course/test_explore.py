"""`explore`: the numbers are the library's, what does not fit is said, a slider moves what is shown."""

from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from setclr import data, losses
from setclr.experiments import load_run, pretrain
from setclr.losses import InfoNCE, QARe
from setclr.recipes import ImageRecipe
from setclr_course.explore import explore

LABELS = torch.arange(40) % 4


@pytest.fixture
def z():
    return torch.randn(2, 40, 8)


def test_the_loss_as_it_stands_is_the_loss_that_is_shown(z):
    """Its number, its gradient and its table are what its repr gives, whatever was moved before."""
    batch = explore(z, labels=LABELS)
    moved = {"loss": "GroCo()", "beside": "InfoNCE()", "beta": 3.0, "temperature": 0.2, "QARe": 0.5}
    for name, value in (moved | {"images": 20}).items():
        batch.controls[name].value = value
    assert repr(batch.loss).startswith("GroCo(beta=3.0") and repr(batch.loss).endswith(repr(0.5 * QARe()))
    assert LABELS[batch.index].bincount().tolist() == [5] * 4
    some, near = z[:, batch.index].requires_grad_(), pytest.approx
    shown = [losses.parse(repr(batch.loss)), InfoNCE(0.2) + 0.5 * QARe()]
    for loss, numbers, block in zip(shown, (batch.values, batch.values["beside"]), batch.blocks):
        table = torch.nn.functional.normalize(loss.assignment(some.detach()), 1, 1)
        torch.testing.assert_close(block, table[:20, 20:])
        true = (table[:20, 20:].trace() + table[20:, :20].trace()).item() / 40
        assert (numbers["loss"], numbers["share of true pairs"]) == near((loss(some).item(), true), rel=1e-4)
        held = table[:20].sort(descending=True).values.cumsum(1) / table[:20].sum(1, keepdim=True)
        assert numbers["candidates with 90 %"] == ((held < 0.9).sum(1) + 1).float().quantile(0.5)
    torch.testing.assert_close(batch.blocks[2], batch.blocks[0] - batch.blocks[1])
    torch.testing.assert_close(batch.gradient, torch.autograd.grad(batch.loss(some), some)[0])
    x = torch.nn.functional.normalize(some.detach(), dim=-1)
    assert batch.values["alignment"] == near((x[0] - x[1]).square().sum(-1).mean().item(), rel=1e-4)
    apart = torch.cdist(x.flatten(0, 1), x.flatten(0, 1)).square()[*torch.triu_indices(40, 40, 1)]
    assert batch.values["uniformity"] == near((-2 * apart).exp().mean().log().item(), rel=1e-4)


def test_each_loss_is_taken_or_left_out_with_its_reason(z):
    batch = explore(z, labels=LABELS)
    assert "MMCL()" in batch.controls["loss"].options and "regulariser" in batch.controls["loss"].tooltip
    batch.controls["labels"].value = True
    assert "labels must be None for MMCL" in batch.controls["loss"].tooltip
    flat = explore(z[0], labels=[f"class {k}" for k in LABELS])
    assert flat.values["loss"] == pytest.approx(InfoNCE()(z[0], labels=LABELS).item(), rel=1e-4)
    keyed = explore(z[:1], keys=z[1:])
    assert keyed.values["loss"] == pytest.approx(InfoNCE()(z[:1], keys=z[1:]).item(), rel=1e-4)


def test_more_images_are_taken_evenly_and_exact_machines_see_fewer():
    batch = explore(torch.randn(2, 600, 4), labels=torch.arange(600) // 300)
    assert "512 of 600 images" in batch.said.value and len(batch.figures[0].data[0].z) == 256 * 256
    assert abs(int((batch.classes[batch.index] == 0).sum()) - 256) <= 1
    batch.controls["loss"].value = "MMCL(solver='exact')"
    assert "128 of 600 images" in batch.said.value and batch.blocks[0].shape == (128, 128)


def test_pointing_names_the_pair_farthest_from_0_in_a_cell_and_shows_both_pictures():
    batch = explore(torch.randn(2, 300, 8), torch.zeros(300, 3, 8, 8).byte())
    batch._hovered(batch.figures[0].data[0], SimpleNamespace(point_inds=[150 + 7]), None)
    part = batch.blocks[0][2:4, 14:16]
    i, j = divmod(int(part.argmax()), 2)
    cosine = torch.cosine_similarity(batch.z[0, 2 + i], batch.z[1, 14 + j], 0)
    for words in (f"image {2 + i} gives", f"image {14 + j}: share {part.max():.3f}, cosine {cosine:.2f}"):
        assert words in batch.pointed.value
    assert batch.pointed.value.count("<img") == 2
    batch._hovered(batch.figures[-1].data[0], SimpleNamespace(point_inds=[300 + 7]), None)
    assert f"image 7 has a gradient of the length {batch.gradient[1, 7].norm():.3g}" in batch.pointed.value


def test_what_does_not_fit_is_said(z):
    wrong = {
        r"images must be \(40, C, H, W\)": {"z": z, "images": torch.zeros(5, 3, 8, 8).byte()},
        "z.* must be finite": {"z": z * torch.nan},
        "with keys or labels V >= 1": {"z": z[0]},
        "labels must be a tensor of N = 40": {"z": z, "labels": LABELS[:5]},
    }
    for words, given in wrong.items():
        with pytest.raises(ValueError, match=words):
            explore(**given)


def test_a_run_is_explored_with_its_checkpoints_or_on_photographs(tmp_path):
    images = data.ImageSet(torch.randint(256, (48, 3, 16, 16)).byte(), torch.arange(48) % 2, ("cat", "dog"))
    recipe = ImageRecipe("InfoNCE(0.5)", encoder="conv4", epochs=2, batch=16, data="folder:nowhere", size=16)
    pretrain(recipe, tmp_path / "run", data=images, keep_every=1)
    (tmp_path / "mine").mkdir()
    for k, image in enumerate(images.images[:9]):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / f"mine/{k}.png")
    batch = explore(tmp_path / "run", photographs=tmp_path / "mine")
    assert batch.z.shape[:2] == (2, 9) and batch.controls["epoch"].options == (1, 2, "last")
    last = batch.values["loss"]
    batch.controls["epoch"].value = 1
    assert batch.values["loss"] != last
    with pytest.raises(FileNotFoundError, match="nowhere"):
        explore(load_run(tmp_path / "run"))
