"""A panel that shows a plotly figure, to be turned or pointed at; its matplotlib twin is kept as the PNG."""

import html
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from setclr_course.pixels.panel import Drawing, Panel


class PlottedPanel(Panel):
    """A `Panel` whose live picture is a plotly figure; where no kernel runs, the matplotlib one is shown.

    Args:
        scene: plotly traces without data.
        layout: of the plotly figure, beside margins, height and a white ground.
        traces: traces(values) gives the data of each trace of the scene, in order: a dict of what changes.
        pointed: pointed(number) gives what controls become when the reader points at that point of the
            scene's first trace.
        beside: beside(values) gives a PNG that stands beside the plotly figure.
    """

    def __init__(
        self,
        build: Callable[..., Drawing],
        controls: dict[str, widgets.ValueWidget],
        scene: list[Any],
        layout: dict[str, Any],
        traces: Callable[[dict], list[dict]],
        size: tuple[float, float] = (9, 4.4),
        initial: dict | None = None,
        pointed: Callable[[int], dict] | None = None,
        beside: Callable[[dict], bytes] | None = None,
        **how: Any,
    ):
        self._traces, self._pointed, self._beside = traces, pointed, beside
        usual = {
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "height": round(96 * size[1]),
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "showlegend": False,
            "uirevision": "the reader's view stays",
        }
        self.plot = go.FigureWidget(scene, layout=usual | layout)
        self.said = widgets.HTML()
        self.picture = widgets.Image(layout=widgets.Layout(align_self="flex-start"))
        super().__init__(build, controls, size, initial, **how)
        both = widgets.Box([self.plot, self.picture], layout=widgets.Layout(flex_flow="row wrap"))
        shown = both if beside else self.plot
        self.widget.children = (shown, self.said, *self.widget.children[1:])
        if pointed:
            self.plot.data[0].on_hover(lambda trace, points, _: self.on_pointed(points.point_inds))

    def update(self, event: str = "") -> None:
        super().update(event)
        with self.plot.batch_update():
            for trace, data in zip(self.plot.data, self._traces(self.values)):
                trace.update(data)
        if self._beside:
            self.picture.value = self._beside(self.values)
        self.said.value = f'<p class="setclr-sentence" aria-live="polite">{html.escape(self.alt)}</p>'

    def on_pointed(self, numbers: list[int]) -> None:
        """The reader points at these points of the first trace; draw once, if that changes anything."""
        moves = self._pointed(numbers[0]) if numbers and self._pointed else {}
        if any(self.values[name] != value for name, value in moves.items()):
            with self._one_picture(""):
                for name, value in moves.items():
                    self.controls[name].value = value
