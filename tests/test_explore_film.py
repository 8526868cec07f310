"""The film of page 10: who is near on the map, in what neighbours are alike, what is dragged."""

import numpy as np
import pytest
import torch
from conftest import shifted

from setclr import pretrain
from setclr.data import ImageSet
from setclr.recipes import ImageRecipe
from setclr_course import panels
from setclr_course.kit.palette import GREEN
from setclr_course.kit.tiles import tiles
from setclr_course.panels.trained.film import NEIGHBOURS, Film
from setclr_course.panels.trained.likeness import likeness, looks


def patches(n: int = 60, seed: int = 0) -> ImageSet:
    images = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=shifted(seed))
    return ImageSet(images, torch.arange(n) % 3, tuple("abc"))


def film_of(frames: int = 3, seed: int = 0) -> Film:
    """A film without a training: places and neighbours are drawn."""
    film, generator = Film(patches(60, seed), patches(60, seed + 1)), shifted(2)
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


def test_a_film_is_recorded_kept_and_cut_where_its_run_goes_on(tmp_path):
    few = patches()
    recipe = ImageRecipe("InfoNCE()", views="photo", epochs=3, batch=20)
    film = Film(few, few, tmp_path / "film.npz")
    run = pretrain(recipe, tmp_path, on_epoch=film, data=few)
    assert len(film) == 4 and list(run.history.knn) == film.accuracy[1:]

    again = Film(few, few, tmp_path / "film.npz")
    assert len(again) == 4
    np.testing.assert_array_equal(again.positions, film.positions)
    run.rows = run.rows[:2]
    again(run)
    assert len(again) == 3
    with pytest.raises(ValueError, match="film must hold the 2 frames before this epoch, got 0"):
        Film(few, few)(run)
    panel = panels.training_film({"InfoNCE": film})
    assert panel.knobs["epoch"].high == 3 and panel.row("loss", ["InfoNCE"]).alt
    with pytest.raises(ValueError, match="films must have two frames or more, got 0"):
        panels.training_film({"InfoNCE": Film(few, few)})


def test_the_frame_goes_to_the_patch_that_it_is_dragged_to():
    film = film_of()
    panel = panels.training_film({"InfoNCE": film, "GroCo": film_of()}, patch=5)
    for epoch in (0, 2):
        panel.controls["epoch"].value = epoch
        x, y = film.positions[epoch][40]
        panel.on_event({"event": "", "handle": "patch", "x": float(x), "y": float(y)})
        assert panel.values["patch"] == 40
        label = int(film.shown.labels[40])
        own = (film.neighbours[epoch][40] % 3 == label).sum()
        assert f"epoch {epoch}: {film.accuracy[epoch]:.0%} of the test patches" in panel.alt
        assert f"Patch 40 ({'abc'[label]}) has {own} of {NEIGHBOURS} neighbours" in panel.alt


def test_a_click_on_a_patch_looks_at_it_and_its_photograph_lights_up():
    film = film_of()
    panel = panels.training_film({"InfoNCE": film}, patch=5)
    plots, clicks = panel.scene["plots"], []
    names = np.array(list("abc"))[film.shown.labels]
    near = np.array(list("abc"))[film.train.labels[film.neighbours[0][5]]]
    for said, [(plot, _, piece)], lit, sets in panel.scene["links"]:
        lights = {plots[at]["name"]: numbers for at, _, *numbers in lit}
        assert lights["map"] == np.flatnonzero(names == said).tolist()
        assert lights.get("strip", []) == np.flatnonzero(near == said).tolist()
        assert said == (names[piece] if plots[plot]["name"] == "map" else near[piece])
        clicks += [(piece, sets["patch"])] if sets else []
    assert clicks == [(k, k) for k in range(59, -1, -1)]  # what lies above is found first


def test_the_strip_shows_the_nearest_training_patches_and_frames_those_of_the_same_photograph():
    films = {"InfoNCE": film_of(), "GroCo": film_of(seed=5)}
    panel = panels.training_film(films, patch=7, epoch=1)
    for loss in ("InfoNCE", "GroCo", "InfoNCE"):  # pictures that were on the screen before are shown again
        panel.controls["loss"].value, film = loss, films[loss]
        strip = panel.scene["plots"][1]
        (mine, near), found = strip["marks"], film.neighbours[1][7]
        faces = [panel.pictures[face] for face in mine["faces"] + near["faces"]]
        shown = [*tiles(film.shown.images)[[7]], *tiles(film.train.images)[found]]
        np.testing.assert_array_equal(faces, shown)
        same = film.train.labels[found] == film.shown.labels[7]
        assert near["frame"] == [GREEN if one else "" for one in same]
        assert set(panel.scene["plots"][0]["marks"][0]["faces"]) <= set(panel.widget.pictures)
    curves = {plot["name"]: plot["marks"] for plot in panel.scene["plots"]}
    assert curves["accuracy"][0]["y"] == [0.25, 0.5, 0.75]
    for k, shares in enumerate(panel.shots["InfoNCE"].alike.values()):
        np.testing.assert_allclose(curves["alike"][k]["y"], shares, atol=1e-5)
        assert curves["alike"][3]["y"][k] == pytest.approx(shares[1], abs=1e-5)
