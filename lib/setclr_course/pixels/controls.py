"""The controls of a panel: ipywidgets with the labels, marks and widths that all panels share."""

import html
from collections.abc import Iterable
from math import floor, isclose, log10
from typing import Any

import ipywidgets as widgets

from setclr.checks import choice, number

LABEL, WIDTH = "12em", "35em"
BEFORE_TRACK, AFTER_TRACK = "calc(12em + 14px)", "82px"  # what JupyterLab leaves to either side of a track


def log_slider(
    label: str,
    value: float,
    low: float,
    high: float,
    step: float = 0.05,
    marks: dict[float, str] | None = None,
) -> widgets.FloatLogSlider:
    """A slider for a temperature-like quantity, `low` to `high` in steps of `step` decades."""
    slider = widgets.FloatLogSlider(
        value=value, min=log10(low), max=log10(high), step=step, description=label, readout_format=".3g"
    )
    return _dress(
        slider,
        {(log10(at) - log10(low)) / (log10(high) - log10(low)): text for at, text in (marks or {}).items()},
    )


def slider(
    label: str, value: float, low: float, high: float, step: float, marks: dict[float, str] | None = None
) -> widgets.ValueWidget:
    """A slider for a quantity on a linear scale; whole numbers where all four are."""
    whole = all(isinstance(x, int) for x in (value, low, high, step))
    kind = widgets.IntSlider if whole else widgets.FloatSlider
    made = kind(
        value=value, min=low, max=high, step=step, description=label, readout_format="d" if whole else ".3g"
    )
    return _dress(made, {(at - low) / (high - low): text for at, text in (marks or {}).items()})


def options(label: str, names: Iterable[str], value: str | None = None) -> widgets.ToggleButtons:
    """A choice between a few names, all of them visible."""
    names = list(names)
    return widgets.ToggleButtons(
        options=names,
        value=value or names[0],
        description=label,
        style={"description_width": LABEL, "button_width": "auto"},
    )


def _dress(made: widgets.ValueWidget, marks: dict[float, str]) -> widgets.ValueWidget:
    made.style.description_width = LABEL
    made.layout.width = WIDTH
    made.marks = marks
    return made


def within(name: str, control: widgets.ValueWidget, value: Any) -> Any:
    """The value if the control can take it; ValueError where ipywidgets would move it to the nearest end."""
    if not hasattr(control, "min"):
        return choice(name, value, control.options)
    low, high = control.min, control.max
    if isinstance(control, widgets.FloatLogSlider):
        low, high = control.base**low * (1 - 1e-9), control.base**high * (1 + 1e-9)
    number(name, value, least=low, most=high, hint="the slider ends there")
    return value


def nearest_stop(control: widgets.ValueWidget, value: Any, steps: float = 0) -> Any:
    """What the control can be set to nearest to the value, or so many of its steps further on."""
    if not hasattr(control, "min"):
        at = control.options.index(value) + round(steps)
        return control.options[min(max(at, 0), len(control.options) - 1)]
    logarithmic = isinstance(control, widgets.FloatLogSlider)
    place = log10(max(value, 1e-300)) if logarithmic else value
    stop = _stop(control, place + steps * control.step)
    if isinstance(control, widgets.IntSlider):
        return round(stop)
    return 10**stop if logarithmic else stop


def _stop(control: widgets.ValueWidget, place: float) -> float:
    """The slider's stop nearest to the place, to the last bit as the browser's slider (noUiSlider) has it,
    which reckons in per cent of its track. Another value it would send back, maybe after a newer one."""
    low, high = control.min, control.max
    percent, step = ((x * 100) / (high - low) for x in (place - low, control.step))
    if percent < 100:
        percent = floor(percent / step + 0.5) * step
    return high if percent >= 100 else (max(percent, 0) * (high - low)) / 100 + low


def same_stop(one: Any, other: Any) -> bool:
    """Whether two values of a control differ by no more than the browser's arithmetic may change them."""
    return isinstance(one, float) and isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def to_first_slider(controls: dict[str, widgets.ValueWidget]) -> int:
    """How many controls there are up to the first slider; without any, one."""
    sliders = [place for place, control in enumerate(controls.values()) if hasattr(control, "min")]
    return 1 + (sliders or [0])[0]


def rows_of_controls(controls: dict[str, widgets.ValueWidget], in_sight: int) -> widgets.VBox:
    """The first `in_sight` controls, the others folded under "more knobs"."""
    boxes = [_with_marks(control) for control in controls.values()]
    rows = [_wrapping(boxes[:in_sight])] if in_sight else []
    if boxes[in_sight:]:
        more = widgets.Accordion([_wrapping(boxes[in_sight:])], titles=["more knobs"], selected_index=None)
        rows.append(more)
    return widgets.VBox(rows)


def _wrapping(boxes: list[widgets.Widget]) -> widgets.Box:
    return widgets.Box(boxes, layout=widgets.Layout(flex_flow="row wrap"))


def _with_marks(control: widgets.ValueWidget) -> widgets.VBox:
    """A control with its marks as words under its track."""
    words = "".join(
        f'<span style="position:absolute; left:{100 * at:.1f}%; transform:translateX(-50%); '
        f'white-space:nowrap">▴ {html.escape(text)}</span>'
        for at, text in getattr(control, "marks", {}).items()
    )
    below = widgets.HTML(
        f'<div style="margin:0 {AFTER_TRACK} 0 {BEFORE_TRACK}; opacity:.75; line-height:1">'
        f'<div style="position:relative; height:1.1em; font-size:80%">{words}</div></div>',
        layout=widgets.Layout(width=WIDTH, margin="-6px 0 0 2px"),
    )
    return widgets.VBox([control, below] if words else [control])
