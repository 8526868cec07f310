"""Small pictures of what a run is trained on: images, a frame of each clip, graphs as nodes and edges."""

from functools import partial
from typing import Any

import networkx
import numpy as np
import torch
from torch import Tensor

from setclr.data import ImageSet
from setclr_course.kit.palette import GREY
from setclr_course.kit.scene import Page
from setclr_course.kit.still import pictured
from setclr_course.kit.tiles import coloured, thumbnails
from setclr_course.run_page.pictures import COLOURS

NODES = 100  # of a graph that are drawn at most


def pictures_of(things: Any, chosen: Tensor, side: int) -> np.ndarray:
    """Pictures (n, side, side, 3) uint8 of these things (n,) of a set of images, graphs or videos."""
    if isinstance(things, ImageSet):
        return faces(things.images[chosen], side)
    if hasattr(things, "graphs"):
        return np.stack([drawn(things.graphs[i], side) for i in chosen.tolist()])
    return faces(things.cut(chosen, torch.full((len(chosen), 1), 0.5), frames=1)[0], side)


def pictures_of_views(groups: list[Any], side: int) -> np.ndarray:
    """Pictures (V, n, side, side, 3) uint8 of a batch's views, as a Source gives them."""
    if isinstance(groups[0], Tensor):
        return np.stack([faces(view, side) for group in groups for view in group.cpu()])
    ones = [group.part(i, i + 1).views for group in groups for i in range(group.n)]
    return np.stack([[drawn(view, side) for view in one] for one in ones]).swapaxes(0, 1)


def faces(x: Tensor, side: int) -> np.ndarray:
    """Pictures of images (n, C, H, W) or of the middle frames of clips (n, C, T, H, W). Numbers are uint8, or
    floating in [0, 1]. Flow, C = 2, is shown in colours."""
    x = x[:, :, x.shape[2] // 2] if x.ndim == 5 else x
    if x.shape[1] == 2:
        flow = (x.float() - 128) / 127 if x.dtype == torch.uint8 else x
        x = torch.from_numpy(coloured(flow.transpose(0, 1).numpy())).transpose(0, 1)
    return thumbnails(x if x.dtype == torch.uint8 else 255 * x.clamp(0, 1), side)


def drawn(graph: Any, side: int) -> np.ndarray:
    """A picture of a graph: nodes in the colours of their largest feature. Of large ones the first NODES."""
    n = min(len(graph.x), NODES)
    edges = [(a, b) for a, b in graph.edge_index.T.tolist() if a < b < n]
    whole = networkx.empty_graph(n)
    whole.add_edges_from(edges)
    apart = partial(networkx.spring_layout, seed=0)
    places = (networkx.kamada_kawai_layout if networkx.is_connected(whole) else apart)(whole)
    xy = np.array([places[i] for i in range(n)])
    colours = [COLOURS[k % len(COLOURS)] for k in graph.x[:n].argmax(1).tolist()]

    def draw(page: Page) -> str:
        plane = page.plane("graph", (-1.15, 1.15))
        starts, ends = xy[np.array(edges, int).reshape(-1, 2)].swapaxes(0, 1)
        plane.segments(starts, ends, GREY, 1.5)
        plane.dots(xy, colours, size=max(4, 40 / n**0.5))
        return ""

    pixels = pictured(draw, "graph", (1, 1)).pixels
    return thumbnails(torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None], side)[0]


def first_labels(things: Any) -> Tensor:
    """(N,) labels of a set, of videos those of the first kind; -1 where there are none."""
    return things.labels if isinstance(things.labels, Tensor) else things.first_labels
