"""The panel of page 09: whom a patch of one camera takes for its own among those of the other."""

import numpy as np
import pytest
import torch

from setclr_course import panels
from setclr_course.panels.assignments.things import drawn_example
from setclr_course.panels.assignments.who_is_it import POOL, cosine


def test_places_are_those_of_the_cosines():
    features, patches = drawn_example()
    panel = panels.who_is_it(features, patches)
    some = torch.linspace(0, patches.shape[1] - 1, POOL).long()
    for name, (a, b) in features.items():
        similarity = cosine(a[some], b[some])
        own = np.diag(similarity)
        right = (similarity.argmax(1) == np.arange(POOL)).mean()
        panel.controls["features"].value = name
        for query in (0, 17, 31):
            panel.controls["query"].value = query
            place = 1 + int((similarity[query] > own[query]).sum())
            assert f"patch {query} stands at place {place} of {POOL}" in panel.alt
            assert f"{right:.0%} have their partner" in panel.alt


def test_few_things_are_refused():
    features, patches = drawn_example(20)
    with pytest.raises(ValueError, match="patches must show 32 things or more, got 20"):
        panels.who_is_it(features, patches)
