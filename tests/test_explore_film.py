"""The film of page 10: who is near on the map, in what neighbours are alike, what is dragged."""

import numpy as np
import torch
from conftest import shifted

from setclr.data import ImageSet
from setclr_course import panels
from setclr_course.panels.trained.film import NEIGHBOURS, Film
from setclr_course.panels.trained.likeness import likeness, looks


def patches(n: int = 60, seed: int = 0) -> ImageSet:
    images = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=shifted(seed))
    return ImageSet(images, torch.arange(n) % 3, tuple("abc"))


def film_of(frames: int = 3) -> Film:
    """A film without a training: places and neighbours are drawn."""
    film, generator = Film(patches(), patches(60, 1)), shifted(2)
    for _ in range(frames):
        film.positions.append((2 * torch.rand(60, 2, generator=generator) - 1).numpy())
        film.neighbours.append(torch.randint(0, 60, (60, NEIGHBOURS), generator=generator).numpy())
        film.accuracy.append(0.25 * len(film))
    return film


def test_a_patch_is_most_alike_to_itself_and_as_alike_as_any_to_all():
    images = patches().images
    itself, everybody = torch.arange(60)[:, None], torch.arange(60).expand(60, 60)
    for same, none in likeness(images, images, [itself, everybody]).values():
        assert same == 1 and abs(none) < 1e-5


def test_a_look_tells_tint_brightness_and_pattern_apart():
    """A pattern of stripes, a pixel wide or four, under two casts and two brightnesses."""
    stripes = torch.stack([(torch.arange(32) // width % 2).expand(3, 32, 32) for width in (1, 4)]) * 100.0
    cast = torch.tensor([1.0, 0.5, 0.25])[:, None, None]
    seen = looks(torch.cat([stripes, stripes * cast, stripes + 50]).byte())
    fine, coarse = seen["pattern"][:2, 0]
    torch.testing.assert_close(
        seen["pattern"][:, 0], torch.stack([fine, coarse]).repeat(3), rtol=0.02, atol=0
    )
    assert fine > 3 * coarse
    torch.testing.assert_close(seen["tint"][[0, 1]], seen["tint"][[4, 5]])
    assert (seen["tint"][0] - seen["tint"][2]).norm() > 0.3
    assert seen["brightness"][4] > seen["brightness"][0]


def test_the_frame_goes_to_the_patch_that_it_is_dragged_to():
    film = film_of()
    panel = panels.training_film({"InfoNCE": film, "GroCo": film_of()}, patch=5)
    for epoch in (0, 2):
        panel.controls["epoch"].value = epoch
        x, y = panel.handles["patch"].place({**panel.values, "patch": 40})
        panel.on_event({"event": "", "handle": "patch", "x": x, "y": y})
        assert panel.values["patch"] == 40
        label = int(film.shown.labels[40])
        own = (film.neighbours[epoch][40] % 3 == label).sum()
        assert f"epoch {epoch}: {film.accuracy[epoch]:.0%} of the test patches" in panel.alt
        assert f"Patch 40 ({'abc'[label]}) has {own} of {NEIGHBOURS} neighbours" in panel.alt


def test_pointing_at_a_patch_lights_up_its_photograph():
    panel = panels.training_film({"InfoNCE": film_of()})
    links = {link["text"]: link["over"] for link in panel.front.shown["links"]}
    kinds = [kind for marks in links.values() for kind, *_ in marks]
    assert set(links) == set("abc") and (kinds.count("dot"), kinds.count("box")) == (60, NEIGHBOURS)
    places = np.array([mark[1:] for marks in links.values() for mark in marks if mark[0] == "dot"])
    assert np.abs(places - panel.front.shown["places"]["patch"]).sum(1).min() < 1e-4
