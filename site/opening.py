"""Pictures of plotly on a page: closed, with their numbers, until a reader opens one (opened.js)."""

import html
import json
from collections.abc import Mapping

PLOTLY = "application/vnd.plotly.v1+json"


def closed(figure: Mapping) -> str:
    """The picture as an element that opens; its title says what it shows."""
    told = json.dumps({name: figure[name] for name in ("data", "layout", "frames") if name in figure})
    said = html.escape(figure["layout"]["title"]["text"])
    safe = told.replace("</", "<\\/")
    return (
        f'<details class="setclr-plotly"><summary>Open: {said}</summary><div></div>'
        f'<script type="application/json">{safe}</script></details>'
    )


def with_closed(data: dict) -> dict:
    """What a cell shows, where that is a picture of plotly."""
    return {"text/html": closed(data[PLOTLY]), "text/plain": ""} if PLOTLY in data else data
