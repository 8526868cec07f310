"""What is one's own in a run: a loss, photographs some of which are damaged or gone, more epochs."""

import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image
from small_runs import FEW
from torch import nn

from setclr import InfoNCE, data, pretrain, views
from setclr.cli import main
from setclr.experiments import load_run
from setclr.experiments.kinds import image as kind
from setclr.experiments.records import read_record, record
from setclr.losses import Own, SetLoss, objective
from setclr.models import head
from setclr.recipes import RECIPES, ImageRecipe
from setclr.training import LoaderViews, Trainer, progress

RECIPE = ImageRecipe("InfoNCE(temperature=0.5)", epochs=2, batch=16, precision="float32", schedule="constant")


def nt_xent(z1, z2):
    return InfoNCE(0.5)(z1, z2)


class Mine(nn.Module):
    """Of any number of views, with labels, and with a number that it learns."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, z, labels=None):
        self.seen = z.dtype, torch.is_autocast_enabled("cpu"), None if labels is None else labels.tolist()
        return self.scale * InfoNCE(0.5)(z)


class Squares(SetLoss):
    def values(self, batch):
        x = batch.rows()
        return (x @ x.T).square().mean(1)


def same(a, b):
    return all(map(torch.equal, a.encoder.state_dict().values(), b.encoder.state_dict().values()))


def test_a_function_or_module_is_a_loss_and_a_record_names_it(tmp_path):
    ours, theirs = pretrain(RECIPE, data=FEW), pretrain(RECIPE, tmp_path, data=FEW, loss=nt_xent)
    assert same(ours, theirs) and theirs.own_loss == load_run(tmp_path).own_loss == "nt_xent()"
    pairs = [([x + 0.1 * torch.randn(4), x], k % 2) for k, x in enumerate(torch.randn(16, 4))]
    mine, encoder = Mine(), nn.Linear(4, 8)
    trainer = Trainer(
        LoaderViews(pairs), encoder, head(8, 8, 4), mine, epochs=1, batch=16, labels=True, device="cpu"
    )
    trainer.fit()
    assert mine.seen[:2] == (torch.float32, False) and sorted(mine.seen[2]) == [0] * 8 + [1] * 8
    assert mine.scale != 2 and repr(trainer.loss) == "Mine()"
    table = pd.DataFrame({"knn": [50.0]}, index=["trained"])
    record(tmp_path / "r.json", load_run(tmp_path), table, {"train": 70}, "noise", "a test")
    assert read_record(tmp_path / "r.json").recipe["loss"] == "nt_xent()"
    for other in ({}, {"loss": Mine()}):
        with pytest.raises(
            ValueError, match=r"another loss \(loss nt_xent\(\) there, .* now\); remove it, or take"
        ):
            pretrain(RECIPE, tmp_path, data=FEW, **other)


def test_a_loss_of_ones_own_computes_in_float32_and_says_what_it_cannot_take():
    z = torch.randn(2, 8, 256, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        inside = [loss(z) for loss in (Squares(), Own(lambda z: (z[0] @ z[1].T).sum()))]
    assert torch.equal(inside[0], Squares()(z)) and torch.equal(inside[1], (z[0] @ z[1].T).sum())
    with pytest.raises(ValueError, match=r"z must hold two views for nt_xent\(\), which takes two, got 3"):
        Own(nt_xent)(torch.randn(3, 4, 5))
    with pytest.raises(ValueError, match=r"loss must give one number, .* got \(4,\); end .* with .mean"):
        Own(lambda z1, z2: (z1 - z2).sum(1))(torch.randn(2, 4, 5))
    assert objective("InfoNCE") == "InfoNCE" and objective(InfoNCE) is InfoNCE
    with pytest.raises(ValueError, match="images must be an ImageSet, got list; ImageSet.torch.stack"):
        pretrain(RECIPE, data=[(torch.ones(3, 8, 8), 0)])
    with pytest.raises(ValueError, match="got DataLoader; of a DataLoader take its .dataset"):
        LoaderViews(torch.utils.data.DataLoader([1, 2]))


@pytest.fixture
def photographs(tmp_path):
    """Two classes of twelve noisy photographs, of which one is damaged."""
    for k in range(24):
        path = tmp_path / "photographs" / "ab"[k % 2] / f"{k:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(numpy_shifted(k).integers(0, 256, (40, 36, 3), dtype=np.uint8)).save(path)
    path.write_bytes(b"damaged")
    return tmp_path / "photographs"


def test_damaged_photographs_are_left_out_and_a_run_goes_on_without_them(photographs, tmp_path):
    recipe, out = replace(RECIPE, data=f"folder:{photographs}", size=32, epochs=1), tmp_path / "run"
    with pytest.raises(ValueError, match="23.png is no image that can be read"):
        pretrain(recipe, out)
    assert len(pretrain(recipe, out, skip_damaged=True).rows) == 1
    assert "b/23.png is no image" in (out / "left-out.txt").read_text()
    (photographs / "b" / "23.png").unlink()
    (photographs / "a" / "00.png").unlink()
    longer = replace(recipe, epochs=3)
    with pytest.raises(
        ValueError, match="on 23 images .* these are 22 .*; restore the data, or skip_damaged"
    ):
        pretrain(longer, out)
    for name in ("90.png", "91.png"):  # more are other data
        shutil.copy(photographs / "a" / "02.png", photographs / "a" / name)
    with pytest.raises(ValueError, match="on 23 images .* these are 24 "):
        pretrain(longer, out, skip_damaged=True)
    for name in ("90.png", "91.png"):
        (photographs / "a" / name).unlink()
    run = pretrain(longer, out, skip_damaged=True)
    assert [row["epoch"] for row in run.rows] == [1, 2, 3]
    with data.skip_damaged() as left_out:
        (photographs / "b" / "c.png").write_bytes(b"stray")
        assert len(data.load(f"folder:{photographs}", size=32)) == 22 and len(left_out) == 1
    with pytest.raises(ValueError, match="files that can be read, got 1 damaged"), data.skip_damaged():
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "x.png").write_bytes(b"damaged")
        data.load(f"folder:{tmp_path / 'bad'}", size=32)


def test_a_finished_run_goes_on_for_more_epochs_where_nothing_depends_on_their_number(tmp_path):
    pretrain(RECIPE, tmp_path / "a", data=FEW)
    longer = pretrain(replace(RECIPE, epochs=4), tmp_path / "a", data=FEW)
    at_once = pretrain(replace(RECIPE, epochs=4), tmp_path / "b", data=FEW)
    assert same(longer, at_once) and len(longer.rows) == 4
    cosine = replace(RECIPE, schedule="cosine")
    pretrain(cosine, tmp_path / "c", data=FEW)
    with pytest.raises(ValueError, match="epochs 2 there, 4 now.*init=.* in a new folder starts from"):
        pretrain(replace(cosine, epochs=4), tmp_path / "c", data=FEW)
    begun = pretrain(replace(cosine, epochs=0, init=str(tmp_path / "c")), tmp_path / "d", data=FEW)
    assert same(begun, load_run(tmp_path / "c"))


def test_a_log_file_gets_a_line_an_epoch_and_a_collapse_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have loaded it
    run = pretrain(RECIPE, data=FEW)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1 of 2", "epoch 2 of 2"] and "rank " in lines[0]
    assert run.history["std"].between(0.1, 1.01).all() and run.history["rank"].between(1, 32).all()
    z = torch.randn(2, 4000, 8, generator=torch.Generator().manual_seed(0))
    whole, point = progress.spread(z), progress.spread(torch.ones(2, 5, 8))
    assert whole == pytest.approx({"std": 1, "rank": 8}, rel=0.02) and point == pytest.approx(
        {"std": 0, "rank": 1}
    )
    two = torch.eye(8)[:2].repeat(2, 3, 1)  # half of the points on each of two axes
    assert progress.spread(two)["rank"] == pytest.approx(2)
    monkeypatch.setattr(progress, "COLLAPSED", 2.0)
    monkeypatch.setattr(data, "load", lambda *_, **__: FEW)
    main(["pretrain", "photo-infonce", "--epochs", "1", "--batch", "16", "--out", str(tmp_path / "run")])
    assert "collapsed: all embeddings are nearly one point" in capsys.readouterr().out


def test_a_recipe_changes_the_views_it_names_and_says_that_a_small_network_is_slow_at_full_size():
    recipe = replace(RECIPE, least_crop=0.5, jitter=2.0, blur=0.25, vertical=0.5, turn=0.5, local_views=1)
    first, _, small = kind.views_of(recipe, 32)
    assert first.scale == (0.5, 1) and small.scale == (0.05, 0.14)
    assert first.jitter == (1.6, 1.6, 1.6, 0.4) and {first.blur, small.blur} == {0.25}
    assert (first.vertical, first.turn) == (0.5, 0.5)
    assert kind.views_of(RECIPE, 32) == views.multi_crop("simclr", 2, 0)
    assert kind.views_of(replace(RECIPE, jitter=4.0), 32)[0].jitter[3] == 0.5
    with pytest.warns(UserWarning, match="conv4 is for small images, got views of 224 px; with resnet18"):
        kind.source(replace(RECIPE, view_size=224), FEW)
    photographs = RECIPES["photographs-224"]
    assert photographs.view_size == photographs.side == 224 and photographs.optimiser == "sgd"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind.source(photographs, FEW)


HEIC = """
import sys, types
told = []
sys.modules["pillow_heif"] = types.SimpleNamespace(register_heif_opener=lambda: told.append("registered"))
import setclr.data
print(*told)
"""


def test_heic_is_registered_where_its_package_is_installed():
    ran = subprocess.run([sys.executable, "-c", HEIC], capture_output=True, text=True, check=True)
    assert ran.stdout == "registered\n"
