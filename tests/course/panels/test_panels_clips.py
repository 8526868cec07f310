"""The panels of page 16: what they compute is what the library computes."""

import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from sweep import drag

from setclr import video, views
from setclr.evaluation.neighbours import neighbours
from setclr.seeding import seeded
from setclr.video import moving
from setclr_course import panels
from setclr_course.panels.clips import clip_strips, moving_camera, nearest_clips, video_column
from setclr_course.search.statistics import paired


def test_the_camera_films_and_moves_as_the_library_says():
    panel = panels.moving_camera(motion="zoom in", frame=7, speed=2.0, right=100)
    now = panel.solve(panel.values)
    camera = moving.drive("zoom in", 1 + 2 / 16, 64)
    camera = camera._replace(centre=camera.centre + (256, 100))
    frames = moving.film(panel.picture, camera).clip(0, 255).round().astype(np.uint8)
    np.testing.assert_array_equal(now.frame, frames[6, 0])
    np.testing.assert_allclose(now.true, moving.camera_flow(camera)[6])
    np.testing.assert_allclose(now.found, video.tv_l1(torch.from_numpy(frames).transpose(0, 1))[:, 6])
    assert np.hypot(*now.true)[16, 0] == pytest.approx(2, abs=0.15)  # at the edge of a frame
    assert tuple(moving_camera.SEEN_AS) == moving.MOTIONS
    for wrong in (np.zeros((200, 200, 3)), np.zeros((127, 300))):
        with pytest.raises(ValueError, match="picture must be"):
            panels.moving_camera(wrong)


def test_only_pictures_that_are_seen_are_kept():
    panel = panels.moving_camera()
    front = panel.widget
    for x in (70, 80, 700):
        drag(panel, "camera", x, 100.4)
    assert len(panel.pictures) == len(front.pictures) == 2
    panel.close()


@pytest.mark.parametrize("shown", ["colours", "flow"])
def test_strips_are_the_librarys_views(shown):
    videos, flow = (video.load_videos("moving-patches", "test", kind) for kind in ("rgb", "camera flow"))
    panel = panels.clip_strips(videos, flow, shown=shown, video=2, draw=5)
    whole, first, second = panel.solve(panel.values)
    clips = (videos if shown == "colours" else flow).in_ram[2]
    photo = video.video_views("photo", 32, flip=0)
    draws = views.draw(photo, 8, seeded(16, 2, 5))
    made = video.clip_views(torch.stack([clips[:, 1:9], clips[:, 3:11]])[:, None], photo, draws[:1])[:, 0]
    for strip, view in zip((first, second), made.numpy()):
        last = view[:, 7] if shown == "colours" else clip_strips.coloured(view)[:, 7]
        np.testing.assert_allclose(strip[:, -32:] / 255, last.transpose(1, 2, 0).clip(0, 1), atol=0.003)
    own = panel.solve({**panel.values, "frames": list(clip_strips.KINDS)[1]})[1]
    assert (own[:, :32] == first[:, :32]).all() and (own[:, 32:64] != first[:, 32:64]).any()
    assert whole.shape == (32, 32 * clips.shape[1], 3)


def test_brackets_say_which_frames_they_share_and_flow_has_its_colours():
    panel = panels.clip_strips(shown="flow", **{"begin 1": 4, "begin 2": 0})
    assert "begin at frames 4 and 1 and share 5 of their 8 frames" in panel.alt
    flow = clip_strips.coloured(np.array([[[[0.0]], [[1.0]], [[-1.0]]], [[[0.0]]] * 3])).reshape(3, 3).T
    np.testing.assert_allclose(flow, [[1, 1, 1], [1, 0.25, 0.25], [0, 0.75, 0.75]])  # still, right, left


def test_nearest_clips_are_the_librarys_and_what_points_nowhere_has_none():
    x = torch.randn(30, 6, generator=shifted(3))
    x[4] = 0
    found = nearest_clips.map_of(x.numpy())
    expected = neighbours(x, torch.zeros(30, dtype=torch.long), x, 6)[1]
    for query in set(range(30)) - {4}:
        assert found.nearest[query] == [int(i) for i in expected[query] if i != query][:5]
    assert found.nearest[4] == [] and np.abs(found.places).max(0) == pytest.approx(1)
    panel = panels.nearest_clips(query=11)
    clips = [sets["query"] for said, _, _, sets in panel.scene["links"] if said.startswith("clip ")]
    assert clips == [11, *panel.solve(panel.values)]
    still = panel.seen({**panel.values, "query": 0, "features": "true flow"})
    assert "nothing is nearest" in still.sentence


def test_the_best_are_named_and_intervals_are_students():
    x = numpy_shifted(2).normal(50, 3, 5)
    expected = paired(x, np.zeros(5))
    half = (expected.high - expected.low) / 2
    assert video_column.half_width(x) == pytest.approx(half) and video_column.half_width([3.0]) == 0
    panel = panels.video_column()
    means = {name: np.mean(of["motion"]["retrieval@1"]) for name, of in panel.scores.items()}
    best = max(means, key=means.__getitem__)
    assert f"{best} is right about the motion most often, in {means[best]:.1f} per cent" in panel.alt
