"""The front end of a panel in the browser (panel.js): the picture, its handles, its links, the sentence."""

from pathlib import Path

import anywidget
import traitlets

FOLDER = Path(__file__).parent


class Front(anywidget.AnyWidget):
    """What kernel and browser tell each other. A change of `shown` is one message with one picture."""

    _esm = FOLDER / "panel.js"
    _css = FOLDER / "panel.css"

    size: traitlets.List = traitlets.List().tag(sync=True)
    """Width and height of the picture in pixels of the page."""
    handles: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """For each handle its label, and where it can be moved."""
    play = traitlets.Unicode().tag(sync=True)
    """The label of the control that a button plays; "" for no button."""
    shown: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """`picture` (PNG), the `event` that it answers ("" for none), `sentence`, `failed` (it is an error),
    `places` of the handles, `links`, `played`: how far the slider that plays has come, 0 to 1."""
    moved: traitlets.Dict = traitlets.Dict().tag(sync=True, echo_update=False)
    """The number of an `event` and what the reader did: a `handle` put to `x`, `y` (fractions of the picture
    from its upper left), or moved by so many steps to the `right` and `up`, or `play`."""
