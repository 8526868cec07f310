"""The panel of page 09: whom a patch of one camera takes for its own among those of the other."""

import numpy as np
import pytest
import torch
from test_explore_matching import seen_twice

from setclr_course import panels
from setclr_course.panels.assignments.who_is_it import BEST, POOL


def test_places_are_those_of_the_cosines():
    features, patches = seen_twice()
    panel = panels.who_is_it(features, patches)
    some = torch.linspace(0, patches.shape[1] - 1, POOL).long()
    for name, (a, b) in features.items():
        similarity = torch.nn.functional.cosine_similarity(a[some, None].double(), b[some], dim=-1).numpy()
        own = np.diag(similarity)
        right = (similarity.argmax(1) == np.arange(POOL)).mean()
        panel.controls["features"].value = name
        for query in (0, 17, 31):
            panel.controls["query"].value = query
            place = 1 + int((similarity[query] > own[query]).sum())
            assert f"patch {query} stands at place {place} of {POOL}" in panel.alt
            assert f"{right:.0%} have their partner" in panel.alt
            best = panel.scene["plots"][1]["marks"]
            said = next(mark["said"] for mark in best if mark["kind"] == "text")
            last = own[query] if place > BEST else np.sort(similarity[query])[-BEST]
            assert said[0].startswith(f"{similarity[query].max():.2f}") and said[-1].startswith(f"{last:.2f}")
            (partner,) = (word for word in said if "place" in word)
            assert partner == f"{own[query]:.2f}\nplace {place}"


def test_the_frame_is_put_on_a_patch_by_dragging_or_a_click():
    panel = panels.who_is_it()
    panel.on_event({"event": "", "handle": "query", "x": 3.4, "y": 0.6})
    assert panel.values["query"] == 11 and panel.handles["query"].point == (3, 1)
    (sets,) = (sets for said, *_, sets in panel.scene["links"] if said == "patch 30")
    panel.on_event({"event": "", "set": sets})
    assert panel.values["query"] == 30


def test_few_things_are_refused():
    features, patches = seen_twice(20)
    with pytest.raises(ValueError, match="patches must show 32 things or more, got 20"):
        panels.who_is_it(features, patches)
