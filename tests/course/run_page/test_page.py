"""The page of a run, what it is made of, and evaluating on two processes."""

import base64
import io
import json
import os
import shlex
import socket
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
import torch.multiprocessing as mp
from conftest import numpy_shifted, shifted
from in_browser import chromium
from pictures import striped
from PIL import Image
from sklearn.metrics import confusion_matrix
from sweep import opened
from torch import nn

from setclr import data, pretrain
from setclr.cli import main
from setclr.evaluation import features, frozen, protocols
from setclr.evaluation.neighbours import nearest, vote
from setclr.evaluation.protocols import OnFeatures
from setclr.experiments import evaluate
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES, ImageRecipe
from setclr.training.distributed import joined
from setclr_course.kit.front import joined as script
from setclr_course.papers.protocols import PROTOCOLS
from setclr_course.run_page import measured as report
from setclr_course.run_page import pictures
from setclr_course.run_page.html_page import nowhere, page
from setclr_course.run_page.measured import augmented_pairs, evaluate_all

RECIPE = ImageRecipe("InfoNCE(temperature=0.2)", views="photo", epochs=3, batch=20, lr=3e-3)
HOSTILE = "b</script><script>alert(2)</script>"
CLASSES = ("<b>bold</b>", "$a_1$ & b", "a name of more than eighteen letters")
made = partial(striped, classes=CLASSES)


def a_run(recipe: ImageRecipe = RECIPE, channels: int = 3):
    run = new_run(recipe, channels)
    run.rows = [{"epoch": e, "loss": 2 / e, "lr": 0.1, "seconds": 1.0, "images_per_s": 9} for e in (1, 2, 3)]
    run.encoder.eval(), run.head.eval()
    return run


def mislabelled(n: int):
    """A third have the label of another class: one neighbour votes otherwise than many."""
    of = made(n)
    return replace(of, labels=(of.labels + (torch.arange(n) % 9 > 5)) % 3)


def voted(bank, labels, queries, k: int) -> torch.Tensor:
    """The vote of k among 20 neighbours: between two as near, another call might choose another one."""
    similarity, found = nearest(bank, queries, 20)
    return vote(similarity[:, :k], labels[found[:, :k]], 0.1)


def first_two(random_state, **_):
    """In place of scikit-learn's t-SNE, which takes seconds."""
    assert random_state == 0
    return SimpleNamespace(fit_transform=lambda x: x[:, :2])


@pytest.fixture(autouse=True)
def short(monkeypatch):
    own, probe = protocols.PROTOCOLS["setclr"], OnFeatures(epochs=2)
    monkeypatch.setitem(protocols.PROTOCOLS, "setclr", replace(own, probe=probe))
    monkeypatch.setattr(report, "PAGE", replace(report.PAGE, probe=probe))


class Seen(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.tags, self.text, self.scripts, self.open = [], "", [], []
        self.feed(text)
        self.close()
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1:] == ["script"]:
            self.scripts.append(text)
        else:
            self.text += text


def scenes_of(seen: Seen) -> dict:
    """The data of the page's pictures. It has no script but these and its own."""
    told, own = seen.scripts
    assert own.strip() == script(Path(pictures.__file__).with_name("page.js")).strip()
    return json.loads(told)


def test_the_page_stands_alone_says_its_pictures_and_names_nobodys_folders(tmp_path, monkeypatch, capsys):
    """Run, record, root and data set lie in absolute folders, and are named by their last names alone."""
    monkeypatch.setattr("sklearn.manifold.TSNE", first_two)
    monkeypatch.setattr(data, "load", lambda name, root, split, size: made(90 if split == "train" else 45))
    out, record = tmp_path / "runs" / "a run", tmp_path / "results" / "r.json"
    a_run(replace(RECIPE, data=f"folder:{tmp_path / 'my images'}", view_size=16)).save(out)
    words = ["--root", str(tmp_path / "sets"), f"--record={record}", "--device=cpu"]
    main(["evaluate", str(out), "--all", *words, "--pixels", "JPEG <i>75</i>"])
    shown = capsys.readouterr().out
    assert "projection" in shown and "retrieval@1" in shown and '"matching"' in record.read_text()
    html = (out / "report.html").read_text()
    seen = Seen(html)
    assert not seen.open and not {"link", "iframe", "a", "b", "i"} & {tag for tag, _ in seen.tags}
    assert scenes_of(seen)["told"].keys() == {"loss", "confusion", "plane", "nearest"}
    for word in ("http", "@import", "url(", str(tmp_path), str(Path.home()), str(Path.cwd())):
        assert word not in html.replace(seen.scripts[1], "")
    images = [attributes for tag, attributes in seen.tags if tag == "img"]
    assert len(images) == 4
    for one in images:
        kind, content = one["src"].split(",")
        assert kind == "data:image/png;base64" and len(one["alt"]) > 40
        assert opened(base64.b64decode(content)).size
    for said in ("a run", "InfoNCE(temperature=0.2)", "folder:my images: 90 training and 45 test images",
                 "evaluate 'a run' --all --root sets --record=r.json --device=cpu", "JPEG <i>75</i>",
                 "seed 0", "3 of 3", "lr=0.003", "k = 1, 10, 20", "T = 0.1", "100 epochs",
                 "CPU"):  # fmt: skip
        assert said in seen.text, said
    assert "last_norm" not in seen.text and "temperature=0.07" not in seen.text


def test_wherever_a_path_stands_in_a_text_only_its_last_name_is_shown():
    names = {"JPEG q75 of /home/ada l/my cats, (/srv/x)": "JPEG q75 of my cats, (x)",
             "init='/a/b.pt'": "init='b.pt'", "../ada/x": "x", "folder:~ada/x": "folder:x",
             "/a/b:/c/d": "b:d", "file:///a/b": "file:b",
             "of </a/b> and\n/c/d": "of <b> and\nd", "T-shirt/top or 3 / 4": "T-shirt/top or 3 / 4",
             "<i>75</i>": "<i>75</i>", "folder:/a/b/": "folder:b", "--out=/a/b": "--out=b", "/": "",
             "~/x/y": "y", "data/runs/x": "data/runs/x"}  # fmt: skip
    assert {text: nowhere(text) for text in names} == names


def test_no_path_and_no_tag_of_a_recipe_a_command_or_a_name_is_on_the_page(monkeypatch):
    monkeypatch.setattr(pictures, "plane", lambda *_: None)  # the slowest of the pictures
    """Nor does the name of a class end the script that holds the scenes."""
    tag, home = "<img src=x onerror=alert(1)>", "/home/ada lovelace"
    recipe = replace(RECIPE, data=f"folder:{home}/cats{tag}", init=f"{home}/weights{tag}.pt")
    images = striped(40, (f"a{tag}", HOSTILE), 3)
    of = a_run()
    measured = evaluate_all(of, images, images)
    of.recipe = recipe
    command = shlex.join(["setclr", "evaluate", f"{home}/runs/{tag}", "--init", recipe.init, "--data",
                          recipe.data, f"--pixels=JPEG of {home}/sets/x"])  # fmt: skip
    machine = {"device": f"CPU {tag}", "torch": tag}
    html = page(f"run {tag}", of, images, images, measured, f"JPEG of {home}/sets/x {tag}", command, machine)
    assert "<img src=x" not in html and html.count("&lt;img src=x onerror=alert(1)&gt;") >= 8
    seen = Seen(html)
    text, links = seen.text, scenes_of(seen)["told"]["nearest"]["columns"][0]["scene"]["links"]
    assert HOSTILE in {said.partition(": ")[2] for said, *_ in links} and "<script>" not in html
    assert "lovelace" not in html and "ada" not in text and "/home" not in text
    for said in (f"folder:cats{tag}", f"init='weights{tag}.pt'", f"JPEG of x {tag}",
                 f"evaluate '{tag}' --init", "'--pixels=JPEG of x'"):  # fmt: skip
        assert said in text, said


@pytest.mark.browser
def test_the_page_paints_its_pictures_in_its_own_colours_and_shows_them_still_without_scripts(tmp_path):
    of, images, about = a_run(), striped(40, CLASSES, 3), {"device": "CPU", "torch": "2"}
    html = page("x", of, images, images, evaluate_all(of, images, images), "original", "c", about)
    (tmp_path / "page.html").write_text(html)
    names, errors = ["loss", "confusion", "plane", "nearest"], []
    with chromium() as browser:
        for alive, painted in ((True, "svg.setclr-plot"), (False, "img")):
            shown = browser.new_page(java_script_enabled=alive, color_scheme="dark")
            shown.on("pageerror", lambda error: errors.append(str(error)))
            shown.goto((tmp_path / "page.html").as_uri())
            for name in names:
                shown.locator(f"#{name} {painted}").first.wait_for()
            assert shown.locator(".picture img").count() == (0 if alive else 4)
            ground = shown.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
            assert ground == ("rgb(20, 24, 30)" if alive else "rgb(255, 255, 255)")
    assert not errors


@pytest.mark.parametrize("classes, channels", [(tuple("ab"), 1), (tuple(f"n{i:08}" for i in range(100)), 3)])
def test_two_classes_or_many_and_no_epochs(classes, channels, monkeypatch):
    monkeypatch.setattr("sklearn.manifold.TSNE", first_two)
    of, images = new_run(RECIPE, channels), striped(100, classes, channels)
    measured = evaluate_all(of, images, images)
    seen = Seen(page("x", of, images, images, measured, "original", "c", {"device": "CPU", "torch": "2"}))
    assert "No epoch was finished" in seen.text and f"{len(classes)} classes" in seen.text
    assert len([tag for tag, _ in seen.tags if tag == "img"]) == 3


def test_the_numbers_are_those_of_the_parts():
    run, train, test = a_run(), mislabelled(90), made(45)
    measured = evaluate_all(run, train, test)
    table, known = measured.table, evaluate(run, train, test)
    assert list(table.index) == ["raw pixels", "untrained", "trained", "projection"]
    assert table.loc[known.index, ["knn", "linear"]].equals(known)
    z = [features(nn.Sequential(run.encoder, run.head), split.images) for split in (train, test)]
    for k, column in ((1, "knn1"), (10, "knn"), (20, "knn20")):
        right = (voted(z[0], train.labels, z[1], k) == test.labels).float().mean()
        assert table.loc["projection", column] == pytest.approx(100 * float(right))
    assert np.isnan(table.loc["projection", "linear"]) and table["matching"].between(0, 100).all()

    bank, queries = features(run.encoder, train.images), features(run.encoder, test.images)
    cosine = nn.functional.cosine_similarity(queries[measured.shown, None], bank, dim=2)
    found, nearest = cosine.gather(1, measured.nearest), cosine.topk(8).values
    torch.testing.assert_close(found, nearest, rtol=0, atol=1e-6)  # of equal cosines either may come first
    assert all(len(row.unique()) == 8 for row in measured.nearest)
    one, ten = (voted(bank, train.labels, queries, k) for k in (1, 10))
    assert torch.equal(measured.predicted, ten) and not torch.equal(one, ten)
    assert torch.equal(measured.points, queries[measured.drawn])
    assert test.labels[measured.shown].bincount().tolist() == [4, 3, 3] and len(measured.shown.unique()) == 10
    recipe = replace(RECIPE, views="groco", full_views=4, local_views=2, view_size=24, local_size=12)
    a, b = (augmented_pairs(recipe, made(6).images, shifted(0)) for _ in range(2))
    assert a.shape == (2, 6, 3, 24, 24) and a.dtype == torch.uint8 and torch.equal(a, b)
    assert not torch.equal(a[0], a[1])


def test_shares_are_scikit_learns_confusion_matrix_and_mistakes_are_said_largest_first():
    truth, predicted = torch.randint(0, 4, (2, 200))
    expected = confusion_matrix(truth, predicted, normalize="true")
    np.testing.assert_allclose(pictures.confusion_shares(truth, predicted, 4), expected)
    assert np.isnan(pictures.confusion_shares(truth, predicted, 5)[4]).all()
    shares = np.array([[0.6, 0.4, 0], [0.1, 0.9, 0], [np.nan] * 3])
    assert pictures.mistakes(shares, tuple("abc")) == "Most often taken: a for b (40 %), b for a (10 %)."
    assert "No image" in pictures.mistakes(np.eye(2), tuple("ab"))
    assert "best: b (90 %); worst: a (60 %)" in pictures.confusion(shares, tuple("abc")).alt
    planes = [pictures.plane(torch.randn(n, 3), torch.zeros(n).long(), ("a",)) for n in (4, 5)]
    assert planes[0] is None and planes[1].png.startswith(b"\x89PNG"), "a few points have no plane"


def one_of_two(process: int, ports: list[int], folder: str, results) -> None:
    torch.set_num_threads(1)
    os.environ.update(WORLD_SIZE="2", RANK=str(process), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(ports[0]))
    with joined("cpu"):
        results["by groco", process] = by_groco()
    os.environ["MASTER_PORT"] = str(ports[1])
    data.load = lambda name, root, split, size: made(60 if split == "train" else 30)
    pictures.plane = lambda *_: None  # the slowest of the pictures
    report.PAGE = replace(report.PAGE, probe=OnFeatures(epochs=2))
    with redirect_stdout(io.StringIO()) as printed:
        main(["evaluate", f"{folder}/run", "--all", "--device", "cpu"])
    results["printed", process] = printed.getvalue()


def by_groco() -> pd.DataFrame:
    """With a probe of two epochs, of two steps each."""
    whole = PROTOCOLS["groco"]
    short = replace(whole, probe=replace(whole.probe, epochs=2, batch=30))
    with mock.patch.dict(PROTOCOLS, groco=short):
        return evaluate(a_run(), made(60), made(30), protocol="groco")


@pytest.mark.processes
def test_two_processes_evaluate_as_one(tmp_path):
    a_run().save(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        ports = [one.getsockname()[1], two.getsockname()[1]]
    with mp.Manager() as manager:
        shared = manager.dict()
        mp.spawn(one_of_two, (ports, str(tmp_path), shared), nprocs=2)
        results = dict(shared)
    one, two = results["by groco", 0], results["by groco", 1]
    assert one.equals(two)
    assert (one - by_groco()).abs().max().max() < 100 * 1.5 / 30  # rounding may turn an image on the edge
    assert not results["printed", 1]
    html = (tmp_path / "run" / "report.html").read_text()
    table = evaluate_all(a_run(), made(60), made(30)).table
    assert results["printed", 0] == f"{table.round(1).to_string()}\n{tmp_path / 'run' / 'report.html'}\n"
    for cell in table.loc["trained"]:
        assert f"<td>{cell:.1f}</td>" in html


def test_one_of_many_processes_may_embed_alone(monkeypatch):
    monkeypatch.setattr(frozen, "world", lambda: 2)
    run, images = a_run(), made(9).images
    assert torch.equal(features(run.encoder, images, shared=False), run.encoder(images.float() / 255))


def test_neighbours_of_a_photograph_are_named_and_drawn(tmp_path, capsys):
    """A training image is its own nearest; a folder has a line and a row for each photograph."""
    for k in range(24):
        path = tmp_path / "photographs" / "ab"[k % 2] / f"{k:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(numpy_shifted(k).integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(path)
    name = f"folder:{tmp_path / 'photographs'}"
    recipe = replace(RECIPES["photo-infonce"], data=name, size=32, epochs=0, batch=8)
    out, alone = tmp_path / "run", tmp_path / "photographs" / "a" / "04.png"
    pretrain(recipe, out)
    for place, first in (
        (alone, "04.png: a/04.png 1.00, "),
        (alone.parents[1] / "b", "01.png: b/01.png 1.00, "),
    ):
        main(["neighbours", str(out), str(place), "--k", "3"])
        *lines, written = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(first) and len(lines) == (1 if place is alone else 12)
        assert lines[0].count(",") == 2 and Path(written) == out / f"neighbours-{place.stem}.png"
        with Image.open(written) as picture:
            assert picture.mode == "RGB" and abs(picture.height / picture.width - len(lines) / 4) < 0.1
    with pytest.raises(ValueError, match="k must be an integer >= 1 and <= 24, got 25; there are 24 images"):
        main(["neighbours", str(out), str(alone), "--k", "25"])
