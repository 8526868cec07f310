"""A panel whose picture can be turned by hand: plotly where a kernel runs, its matplotlib twin as the PNG."""

import html
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from setclr.explore.kit.panel import Drawing, Panel

CAMERA = {"eye": {"x": 1.0, "y": 0.8, "z": 0.6}}  # nearer than plotly's own


class TurningPanel(Panel):
    """A `Panel` that shows a plotly figure in three dimensions and keeps the matplotlib picture for the page.

    Args:
        traces: traces(values) gives the data of each trace of the plotly figure, in order: a dict of what
            changes. Called with the starting values it decides how many there are.
        scene: plotly traces without data, one for each.
    """

    def __init__(
        self,
        build: Callable[..., Drawing],
        controls: dict[str, widgets.ValueWidget],
        scene: list[Any],
        traces: Callable[[dict], list[dict]],
        size: tuple[float, float] = (9, 4.4),
        initial: dict | None = None,
        **how: Any,
    ):
        self._traces = traces
        axis = {"visible": False, "range": [-1.1, 1.1]}
        self.turned = go.FigureWidget(
            scene,
            layout={
                "scene": {
                    "xaxis": axis,
                    "yaxis": axis,
                    "zaxis": axis,
                    "aspectmode": "cube",
                    "camera": CAMERA,
                },
                "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
                "height": round(96 * size[1]),
                "showlegend": False,
                "uirevision": "the reader's view stays",
            },
        )
        self._said = widgets.HTML()
        super().__init__(build, controls, size, initial, **how)
        self.widget.children = (self.turned, self._said, *self.widget.children[1:])

    def update(self, event: str = "") -> None:
        super().update(event)
        with self.turned.batch_update():
            for trace, data in zip(self.turned.data, self._traces(self.values)):
                trace.update(data)
        self._said.value = f'<p class="setclr-sentence" aria-live="polite">{html.escape(self.alt)}</p>'
