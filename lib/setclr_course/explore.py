"""A reader's own embeddings under sliders: ipywidgets are the controls, plotly draws what zooms and turns."""

import html
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
import torch
from plotly.graph_objects import FigureWidget, Heatmap, Scatter3d
from torch import Tensor, nn

from setclr import data, views
from setclr.checks import choice
from setclr.evaluation import features
from setclr.experiments import Run, load_run
from setclr.experiments.kinds.image import side_of, views_of
from setclr.losses import BY_NAME, QARe, SetLoss, parse
from setclr.losses.checking import checked
from setclr.seeding import seeded
from setclr.training.progress import spread
from setclr.views.pixels import grey
from setclr_course.kit.front import address
from setclr_course.kit.palette import EMPTY, FULL, LINES
from setclr_course.kit.still import RAMP
from setclr_course.kit.tiles import tiles

LOSSES = [f"{name}()" for name in sorted(BY_NAME, key="InfoNCE".__ne__)]  # that one first
LOSSES += ["LinearAssignment(0, 0.1, 'batch-hard')", "IOT('both', iterations=8)", "MMCL(solver='exact')"]
KNOBS = {"temperature": "temperature τ", "beta": "β", "epsilon": "ε", "margin": "margin", "bandwidth": "σ²"}
MOST, MOST_EXACT = 512, 128  # images that answer a slider at once; the second by exact machines
CELLS = 256  # of a table, in each direction
COLOURS = np.array(LINES[:6])  # of classes
GREY, CLEAR = "#767676", "rgba(0,0,0,0)"  # this grey can be read on white and on black
LOOK: dict[str, Any] = dict(paper_bgcolor=CLEAR, plot_bgcolor=CLEAR, font_color=GREY, title_x=0)
LOOK |= dict(template="none", uirevision="stays", width=380, height=340, margin=dict(l=40, r=10, t=40, b=30))
LOOK |= dict(showlegend=False, yaxis_autorange="reversed", yaxis_scaleanchor="x")
# Of two losses, and of their difference.
MAPS = [dict(colorscale=x, hoverinfo="z", zhoverformat=".3f") for x in ([EMPTY, FULL], [EMPTY, FULL], "RdBu")]


def explore(z: Any, images: Any = None, labels: Any = None, keys: Any = None, **of_run: Any) -> "Explorer":
    """A batch under sliders: whom each loss takes for whose partner, and where it pushes.

    Args:
        z: embeddings (V, N, E); or (N, E) with labels. Or a run, or its folder: then a batch of its images is
            encoded, and the checkpoints that `--keep-every` left can be gone through.
        images: (N, C, H, W) or (V, N, C, H, W) uint8; seen where one points at something.
        labels: N numbers or words; they sort and colour the images. As positives they serve where V = 1, and
            where one asks for it.
        keys: (U, N, E), from a momentum encoder.
        of_run: `photographs`, a folder that is encoded instead of the run's own images; `root`, where the
            run's data set lies.

    Raises ValueError where these do not fit together, FileNotFoundError where a run has no data at hand.
    """
    if not isinstance(z, Run | str | Path):
        return Explorer(z, images, labels, keys)
    run = z if isinstance(z, Run) else load_run(z)
    found = images_of(run, **of_run)
    pixels = two_views(run, found.images[:])
    labels = [[*found.classes, "no class"][k] for k in found.labels] if found.classes else None
    kept = [] if isinstance(z, Run) else Path(z).glob("epoch-*.pt")
    return Explorer(embedded(run, pixels), pixels, labels, kept={int(one.stem[6:]): one for one in kept})


def images_of(run: Run, photographs: str | Path | None = None, root: str | Path = "data") -> Any:
    """Images that a run was trained on, or photographs in a folder, as many as are explored."""
    choice("run", run.recipe.kind, ("image",), "explore(z) takes embeddings of anything")
    name = f"folder:{photographs}" if photographs else run.recipe.data
    found = data.load(name, root, size=side_of(run) if data.known(name).in_files else None)
    return found.sample(min(len(found), MOST))


def two_views(run: Run, images: Tensor) -> Tensor:
    """Two random views of each image, as in the run's training: (2, N, C, S, S) uint8."""
    images = grey(images.float()).round().byte() if run.channels < images.shape[1] else images
    full = views_of(run.recipe, images.shape[-1])[:2]
    return (255 * views.augment(images, full, seeded(0))).round().byte()


def embedded(run: Run, pixels: Tensor) -> Tensor:
    """The head's embeddings (V, N, E) of views (V, N, C, S, S)."""
    whole = nn.Sequential(run.encoder, run.head)
    return features(whole, pixels.flatten(0, 1)).unflatten(0, pixels.shape[:2])


def pooled(block: Tensor, most: int = CELLS) -> tuple[Tensor, Tensor]:
    """At most `most` x `most` cells of a table: in each the number of its pairs that is farthest from 0, and
    the place of that pair."""
    step = -(-len(block) // most)
    _, place = nn.functional.max_pool2d(block.abs()[None], step, ceil_mode=True, return_indices=True)
    return block.flatten()[place[0]], place[0]


class Explorer:
    """What `explore` returns. It displays itself; `controls` are its widgets by name."""

    loss: SetLoss
    """The loss as it stands; its repr can be pasted into a training."""
    values: dict[str, Any]
    """The numbers that are shown; those of a second loss are under "beside"."""

    asked: Any = None
    """What the present batch was made for."""

    def __init__(self, z: Tensor, images: Any, labels: Any, keys: Any = None, kept: Any = ()) -> None:
        self.note = "" if z.device.type == "cpu" else f"z is on {z.device}: this is a copy on the CPU. "
        given = z.unsqueeze(0) if z.ndim == 2 else z, images, labels, keys
        z, images, labels, keys = (x.detach().cpu() if isinstance(x, Tensor) else x for x in given)
        words = [] if labels is None else [str(x) for x in np.asarray(labels)]
        if words and not isinstance(labels, Tensor):
            labels = torch.from_numpy(np.unique(words, return_inverse=True)[1])
        checked(z, keys=keys, labels=labels)
        V, N, _ = z.shape
        if images is not None:
            images = images.unsqueeze(0) if images.ndim == 4 else images
            if images.shape[:2] not in ((1, N), (V, N)) or images.dtype != torch.uint8:
                got = f"{images.dtype} {tuple(images.shape)}"
                raise ValueError(f"images must be ({N}, C, H, W) uint8, or ({V}, {N}, C, H, W), got {got}")
        self.z, self.images, self.keys, self.kept = z.float(), images, keys, dict(kept)
        self.classes = torch.zeros(N) if labels is None else labels
        self.names = [f"image {i} {word}".rstrip() for i, word in enumerate(words or [""] * N)]
        self.losses: dict[str, Any] = {name: parse(name) for name in LOSSES}
        self.said, self.pointed = widgets.HTML(), widgets.HTML("Point at a cell or at a point.")
        self.figures = [FigureWidget(Heatmap(**how), LOOK) for how in MAPS]
        self.figures += [FigureWidget([Scatter3d(mode="markers"), Scatter3d(mode="lines")], LOOK)]
        for figure in self.figures:
            figure.data[0].on_hover(self._hovered)
        self.boxes = [widgets.Box([figure]) for figure in self.figures]
        self.controls = self._controls(V == 1 and keys is None, labels is not None)
        self.boxes.insert(3, widgets.VBox([self.said, self.pointed], layout={"width": "300px"}))
        rows = [*self.controls.values()], self.boxes
        self.widget = widgets.VBox([widgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in rows])
        self._changed("labels")

    def _controls(self, flat: bool, labelled: bool) -> dict[str, Any]:
        """The widgets by name. `flat`: labels alone say who belongs to whom."""
        made: dict[str, Any] = {name: widgets.Dropdown(description=name) for name in ("loss", "beside")}
        for name, word in KNOBS.items():
            made[name] = widgets.FloatLogSlider(1, min=-2, max=2, step=0.05, description=word)
        made["QARe"] = widgets.FloatSlider(0, max=2, description="weight of QARe", disabled=len(self.z) < 2)
        N = min(len(self.names), MOST)
        made["images"] = widgets.IntSlider(N, min=min(N, 8), max=N, description="images N")
        made["labels"] = widgets.Checkbox(flat, description="labels make positives")
        made["labels"].disabled = flat or not labelled
        epochs = [*sorted(self.kept), "last"]
        made["epoch"] = widgets.SelectionSlider(options=epochs, value="last", description="epoch")
        made["epoch"].layout.display = "" if self.kept else "none"
        for name, control in made.items():
            control.style.description_width = "initial"
            control.observe(lambda _, name=name: self._changed(name), "value")
        return made

    def _changed(self, name: str) -> None:
        """A control was moved: those that depend on it follow, and all is computed and drawn anew."""
        if name == "labels":
            self._choose()
        names = [self.controls[key].value for key in ("loss", "beside")]
        losses = [self.losses[name] for name in names if name in self.losses]
        for knob in KNOBS:
            slider = self.controls[knob]  # of the losses that have it, neither learnt nor switched off
            mine = [loss for loss in losses if isinstance(x := getattr(loss, knob, None), float) and x]
            slider.layout.display = "" if mine else "none"
            if mine and name in ("labels", "loss"):
                slider.value = getattr(mine[0], knob)
            for loss in mine:
                setattr(loss, knob, float(f"{slider.value:.3g}"))
        n = self.controls["images"].value
        n = min(n, MOST_EXACT) if any("exact" in str(loss) for loss in losses) else n
        weight = self.controls["QARe"].value
        try:
            self._answer(names, [loss + weight * QARe() if weight else loss for loss in losses], n)
        except ValueError as error:  # of a loss that cannot be computed so
            self.said.value = html.escape(str(error))

    def _choose(self) -> None:
        """Losses that do not take this batch are left out; why stands where one points at the list."""
        few, left = self._part(24), {}
        for name, loss in self.losses.items():
            try:
                loss.assignment(**few)
            except ValueError as error:
                left[name] = f"{name} is left out: {error}"
        for key, more in (("loss", []), ("beside", ["nothing"])):
            dropdown, before = self.controls[key], self.controls[key].value
            dropdown.options = [*more, *(name for name in LOSSES if name not in left)]
            dropdown.value = before if before in dropdown.options else dropdown.options[0]
            dropdown.tooltip = "\n".join(left.values())

    def _part(self, n: int) -> dict[str, Any]:
        """What a loss is given: n of the images, evenly over those that are sorted by label."""
        self.index = self.classes.argsort(stable=True)[torch.linspace(0, len(self.names) - 1, n).long()]
        file = self.kept.get(self.controls["epoch"].value)
        z = embedded(load_run(file), self.images) if file else self.z
        part = {"z": z[:, self.index]} | ({} if self.keys is None else {"keys": self.keys[:, self.index]})
        return part | ({"labels": self.classes[self.index]} if self.controls["labels"].value else {})

    def _take(self, n: int) -> None:
        """Another batch, with what no slider changes, and where its points lie in space."""
        self.part = self._part(n)
        batch, V = checked(**self.part), len(self.z)
        self.batch, self.table, rows = batch, batch.table(), batch.rows()
        spread_out = torch.pdist(rows).square().mul(-2).exp().mean().log()
        self.about = {"alignment": float(self.table.mean(2 - 2 * self.table.near).mean())}
        self.about |= {"uniformity": float(spread_out), "effective rank": spread(self.part["z"])["rank"]}
        E = rows.shape[1]
        self.ways = torch.eye(E, 3) if E <= 3 else torch.linalg.eigh(rows.T.cov())[1][:, -3:].flip(1)
        self.flat = rows @ self.ways
        colour = COLOURS[self.classes[self.index].unique(return_inverse=True)[1] % len(COLOURS)]
        signs = np.repeat(np.resize(["circle", "square"], V), n)
        marker = {"color": np.tile(colour, V), "symbol": signs, "size": 3}
        x, y, z = self.flat.T.numpy()
        names = [self.names[i] for i in self.index] * V
        self.figures[-1].data[0].update(x=x, y=y, z=z, text=names, hoverinfo="text", marker=marker)

    def _measured(self, loss: SetLoss) -> tuple[Tensor, Tensor, dict[str, float]]:
        """What the first view gives to the last, the gradient, and the numbers."""
        z, t = self.part["z"].clone().requires_grad_(), self.table
        value = loss(**self.part | {"z": z})
        (gradient,) = torch.autograd.grad(value, z)
        shares, n = nn.functional.normalize(loss.assignment(**self.part), p=1, dim=1), z.shape[1]
        held = np.sort(shares[:n].numpy(), axis=1)[:, ::-1].cumsum(1)  # by the first, the first two, …
        needed = np.median((held < 0.9 * held[:, -1:]).sum(1) + 1)
        true = (shares.gather(1, t.positive) * t.true).sum(1).mean()
        numbers = {"loss": value.detach(), "share of true pairs": true, "candidates with 90 %": needed}
        numbers |= {"length of the gradient": gradient.norm(dim=-1).mean(), **self.about}
        return shares[:n, -n:], gradient, {name: float(x) for name, x in numbers.items()}

    def _answer(self, names: list[str], losses: list[SetLoss], n: int) -> None:
        asked = n, self.controls["labels"].value, self.controls["epoch"].value
        if asked != self.asked:
            self._take(n)
            self.asked = asked
        self.loss = losses[0]
        blocks, gradients, numbers = zip(*map(self._measured, losses))
        self.blocks, self.gradient = [*blocks, *(a - b for a, b in zip(blocks, blocks[1:]))], gradients[0]
        self.values = numbers[0] | ({"beside": numbers[1]} if numbers[1:] else {})
        table = pd.DataFrame(numbers, names[: len(losses)]).T
        few = f"{n} of {len(self.names)} images are seen, evenly over the classes. "
        said = self.note + few * (n < len(self.names))
        self.said.value = said + table.to_html(float_format="{:.3g}".format, border=0)
        self._draw([*names, "the first less the second"])

    def _draw(self, titles: list[str]) -> None:
        for k, (figure, box) in enumerate(zip(self.figures[:-1], self.boxes)):
            box.layout.display = "" if k < len(self.blocks) else "none"
            if k < len(self.blocks):
                cells = pooled(self.blocks[k])[0].numpy()
                y, x = len(self.blocks[k]) / len(cells) * np.indices(cells.shape, np.float32).reshape(2, -1)
                top = float(abs(cells).max()) or 1.0  # as lists of numbers, cells are sent as they are stored
                with figure.batch_update():
                    figure.data[0].update(x=x, y=y, z=cells.ravel(), zmin=-top if k == 2 else 0, zmax=top)
                    figure.layout.title.text = titles[k]
        way = -self.gradient.flatten(0, 1) @ self.ways
        reach = (self.flat.amax(0) - self.flat.amin(0)).max() / 4  # of the longest
        ends = self.flat + reach * way / way.norm(dim=1).max().clamp(min=1e-12)
        x, y, z = torch.stack([self.flat, ends, torch.nan * ends], 1).flatten(0, 1).T.numpy()
        self.figures[-1].data[1].update(x=x, y=y, z=z, hoverinfo="skip", line_color=GREY)

    def _hovered(self, trace: Any, points: Any, _: Any) -> None:
        """Pointing at a cell names its pair, at a point its image, and shows what was pointed at."""
        place, n = [figure.data[0] for figure in self.figures].index(trace), len(self.index)
        for at in points.point_inds[:1]:
            if place == len(self.figures) - 1:
                v, i = divmod(at, n)
                said = f"{self._face(v, i)} has a gradient of the length {self.gradient[v, i].norm():.3g}"
            else:
                i, j = divmod(int(pooled(self.blocks[place])[1].flatten()[at]), n)
                cosine = self.batch.anchors[0, i] @ self.batch.candidates[-1, j]
                share = f"share {self.blocks[place][i, j]:.3f}, cosine {cosine:.2f}"
                said = f"{self._face(0, i)} gives {self._face(-1, j)}: {share}"
            self.pointed.value = said

    def _face(self, v: int, i: int) -> str:
        """An image: its picture if there is one, and its name."""
        name, shown = html.escape(self.names[self.index[i]]), ""
        if self.images is not None:
            pixels = tiles(self.images[v % len(self.images), self.index[i]].unsqueeze(0))[0]
            shown = f'<img src="{address(pixels)}" alt="" width="64" style="image-rendering:pixelated"> '
        return shown + name

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        cells = pooled(self.blocks[0], CELLS // 2)[0]
        shades = (cells / cells.max().clamp(min=1e-12) * (len(RAMP) - 1)).long()
        still = address(RAMP[shades])
        img = f'<img src="{still}" alt="whom view 1 takes" width="380" style="image-rendering:pixelated">'
        more = {"text/html": img + self.said.value, "text/plain": repr(self.loss)}
        return {**self.widget._repr_mimebundle_(), **more}, {}
