"""Videos: flow, files, views, encoders, training and records, by their laws and outside programs."""

import os
import re
import struct
import wave
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import av
import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.registration import optical_flow_tvl1
from sklearn.neighbors import KNeighborsClassifier
from torchvision.models.video import s3d

from setclr import video
from setclr.cli import main
from setclr.evaluation.videos import pointing, video_accuracies, video_features
from setclr.experiments import pretrain
from setclr.experiments.records import read_record
from setclr.recipes import RECIPES, VideoRecipe
from setclr.seeding import seeded
from setclr.video import files, flow
from setclr.views import View, apply, draw, parameters
from setclr_course.papers.moving import MOTIONS, camera_flow, drive, moving_patches
from setclr_course.papers.tables import video_results

SEEDS = st.integers(0, 2**31)


def test_tv_l1_is_scikit_images_with_the_columns_first():
    clip = torch.from_numpy(moving_patches("test").clips[70][:, :3])
    red, green, blue = (clip[i, :2].double().numpy() / 255 for i in range(3))
    gray = (0.2989 * red + 0.587 * green + 0.114 * blue).astype(np.float32)
    down, right = optical_flow_tvl1(gray[0], gray[1])
    assert np.allclose(video.tv_l1(clip)[:, 0].numpy(), np.stack([right, down]), atol=0.02)


@given(st.floats(-3.9, 3.9))
def test_bytes_hold_a_flow_up_to_half_a_step_and_clip_what_is_faster(pixels):
    x = torch.full((2, 1, 32, 32), pixels)
    assert (flow.to_pixels(flow.to_bytes(x)) - x).abs().max() <= 4 / 127 / 2 + 1e-5
    faster = torch.tensor([9.0, -9.0])[:, None, None, None].expand(2, 1, 32, 32)
    assert flow.to_bytes(faster)[:, 0, 0, 0].tolist() == [255, 1]


def clips(seed=0, n=3, channels=3, frames=4, side=32):
    return torch.randint(256, (n, channels, frames, side, side), generator=seeded(seed), dtype=torch.uint8)


@pytest.mark.parametrize("name", video.VIDEO)
def test_all_frames_of_a_clip_get_the_view_of_one_image(name):
    views = video.video_views(name, 24)
    x, draws = clips(), draw(views, 3, shifted())
    seen = video.clip_views(torch.stack([x, x]), views, draws)
    assert seen.shape == (2, 3, 3, 4, 24, 24)
    for t in range(4):
        assert torch.allclose(seen[:, :, :, t], apply(x[:, :, t].contiguous(), views, draws), atol=1e-5)


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(["pan left", "zoom in", "turn right"]), st.booleans(), st.floats(0.2, 1))
def test_the_view_of_a_flow_is_the_flow_of_the_view(seed, motion, mirrored, share):
    """Both from the camera: the camera of the crop is another one, which looks at a part."""
    low = {"pan left": 1.0, "zoom in": 1.05, "turn right": 0.05}[motion]
    camera = drive(motion, low, 32, 3)
    view = View(size=32, scale=(share, share), ratio=(1, 1), flip=float(mirrored))
    draws = draw([view], 1, seeded(seed))
    true = camera_flow(camera)
    stored = flow.to_bytes(torch.from_numpy(true).float().transpose(0, 1))[None]
    seen = video.clip_views(stored[None], [view], draws)[0, 0] * 4  # an eighth of 32 pixels
    top, left, height, _ = parameters([view], draws, 32, 32).box[0, 0].tolist()
    rows, columns = (first + (np.arange(32) + 0.5) * height / 32 - 0.5 for first in (top, left))
    y, x = np.meshgrid(rows, columns[::-1] if mirrored else columns, indexing="ij")
    corner = true[:, :, :1, :1]  # the flow is even over a frame
    down, right = true[:, :, 1:2, :1] - corner, true[:, :, :1, 1:2] - corner
    wanted = (corner + down * y + right * x) * 32 / height
    wanted[:, 0] *= -1 if mirrored else 1
    byte, tilt = 4 / 127 / 2, 0.1  # the flow changes by a tenth of a pixel from a pixel to the next
    # Inside, a mean under a triangle is the value at its middle; at the border it is one-sided.
    off = np.abs(seen.numpy() - wanted.transpose(1, 0, 2, 3)) * height / 32
    assert off.max() <= byte + tilt and off[..., 2:-2, 2:-2].max() <= byte + 1e-4


@pytest.mark.parametrize("channels", [2, 3])
def test_ten_crops_are_five_and_their_mirror_images(channels):
    x = clips(n=2, channels=channels)
    found = video.ten_crops(x)
    sign = torch.tensor([-1.0, 1] if channels == 2 else [1.0] * 3).view(-1, 1, 1, 1)
    assert found.shape == (10, *x.shape) and torch.equal(found[5:], found[:5].flip(-1) * sign)
    same = video.ten_crops(x, size=28)[4]
    middle = x[..., 2:30, 2:30]
    wanted = middle / 255 if channels == 3 else (middle.float() - 128) / 127 * (32 / 28)
    assert torch.allclose(same, wanted, atol=1e-5)


def test_clips_begin_anywhere_in_a_video_and_never_beyond():
    x = torch.arange(12, dtype=torch.uint8).view(1, 1, 12, 1, 1).expand(2, 3, 12, 8, 8).contiguous()
    places = torch.tensor([[0.0, 0.5], [0.999, 1.0]])
    cut = video.VideoSet(x, {}, {}).cut(torch.tensor([1, 0]), places, 4, 2)
    assert cut.shape == (2, 2, 3, 4, 8, 8)
    assert cut[:, :, 0, :, 0, 0].tolist() == [[[0, 2, 4, 6], [5, 7, 9, 11]], [[3, 5, 7, 9], [5, 7, 9, 11]]]


@pytest.mark.parametrize("name, shape, least", [("conv4-clips", (3, 20, 20), 3), ("s3d", (16, 32, 32), 5)])
def test_encoders_take_flow_and_short_clips_and_all_their_weights_learn(name, shape, least):
    encoder, features = video.video_encoder(name, 2)
    x = torch.rand(2, 2, *shape)
    encoder(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())
    assert encoder(x[:, :, :least]).shape == (2, features)


def test_s3d_is_torchvisions_up_to_its_pooling():
    """From 16 frames of 224 pixels come 2 × 7 × 7 features; torchvision's averages are those over all."""
    theirs, (ours, _) = s3d(weights=None).eval(), video.s3d()
    ours[0].load_state_dict(theirs.features.state_dict())
    x, last = torch.rand(1, 3, 16, 32, 32), torch.rand(1, 1024, 2, 7, 7)
    with torch.no_grad():
        assert torch.allclose(ours.eval()(x), ours[1:](theirs.features(x)), atol=1e-5)
        assert torch.allclose(ours[1:](last), theirs.avgpool(last).mean((2, 3, 4)), atol=1e-5)


# ----------------------------------------------------------------------------------------------- files


def write_video(path, frames, codec="libx264", pixels="yuv444p", times=None, **options):
    """Frames (F, H, W, 3) uint8, shown one after the other or at these times.

    The header stands first and says how many frames there are.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream(codec, rate=10, options={"crf": "0", **options})
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], pixels
        for time, pixels in zip(times or range(len(frames)), frames):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def stripes(frames, height=48, width=64, shift=0):
    """A grey picture that moves to the right by two pixels a frame."""
    x = np.arange(width)[None] - 2 * np.arange(frames)[:, None] + shift
    line = (128 + 100 * np.sin(x / 5)).astype(np.uint8)
    return np.broadcast_to(line[:, None, :, None], (frames, height, width, 3)).copy()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for split, count in (("train", 3), ("test", 2)):
        for label, name in enumerate(("run", "walk")):
            for i in range(count):
                write_video(root / split / name / f"{i}.mp4", stripes(12 + i, shift=9 * label + i))
    return root


def test_a_folder_of_videos_is_read_frame_by_frame(tree):
    found = video.load_videos(f"folder:{tree}", "train", size=48)
    assert len(found) == 6 and found.classes["class"] == ("run", "walk") and found.channels == 3
    assert found.labels["class"].tolist() == [0, 0, 0, 1, 1, 1]
    cut = found.cut(torch.tensor([5, 0]), torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 5, 2)
    assert cut.shape == (2, 2, 3, 5, 48, 48)
    last = torch.from_numpy(stripes(14, shift=11)[:, :, 8:56]).permute(3, 0, 1, 2)
    assert (cut[0, 0].int() - last[:, 0:10:2].int()).abs().max() <= 6  # its codec's rounding of colours
    assert (cut[1, 0].int() - last[:, 5:14:2].int()).abs().max() <= 6


@pytest.mark.parametrize("places, classes", [
    ("a b", ()), ("train/a train/b", ()), ("x/y/a z/b", ()), ("run/a walk/b", ("run", "walk")),
    ("train/run/a train/walk/b", ("run", "walk")),
])  # fmt: skip
def test_videos_need_no_classes_and_no_split(places, classes, tmp_path):
    for k, place in enumerate(places.split()):
        write_video(tmp_path / f"{place}.mp4", stripes(9, shift=9 * k))
    found = video.load_videos(f"folder:{tmp_path}", size=32)
    assert [path.stem for path in found.videos.paths] == ["a", "b"]
    assert found.classes == ({"class": classes} if classes else {})
    assert found.first_labels.tolist() == ([0, 1] if classes else [-1, -1])
    views = video.ClipViews(found, video.video_views("photo", 32))
    assert torch.equal(views.labels, found.first_labels)


def test_a_flat_folder_of_videos_is_trained_on_and_shown(tmp_path, capsys):
    for i in range(6):
        write_video(tmp_path / f"mine/{i}.mp4", stripes(12, shift=9 * i))
    words = ["--data", f"folder:{tmp_path / 'mine'}", "--epochs", "1", "--batch", "3", "--frames", "4"]
    main(["pretrain", "video-infonce", "--out", str(tmp_path / "run"), *words])
    capsys.readouterr()
    main(["evaluate", str(tmp_path / "run")])
    assert capsys.readouterr().out.split()[:3] == ["matching", "alignment", "uniformity"]
    assert "6 videos, without labels" in (tmp_path / "run/report.html").read_text()


@pytest.mark.parametrize("places, said", [
    ("run/a walk/b c", "c.mp4 is no folder, among class folders; move it"),
    ("train/run/a train/c", "c.mp4 is no folder, among class folders; move it"),
    ("test/run/a", "train is no folder"), ("train/x/y/a", "x.* has no videos|y .*cannot be read"),
])  # fmt: skip
def test_videos_lose_no_class_where_one_lies_elsewhere(places, said, tmp_path):
    for place in places.split():
        write_video(tmp_path / f"{place}.mp4", stripes(9))
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        video.load_videos(f"folder:{tmp_path}", size=32)


@pytest.mark.parametrize("name, options", [
    ("a.mp4", dict(g="10", bf="2")), ("a.mkv", dict(g="7")), ("a.avi", dict(codec="mpeg4", g="5")),
])  # fmt: skip
def test_clips_alone_are_decoded_as_in_the_whole_video(name, options, tmp_path, monkeypatch):
    path, seen, squared = tmp_path / name, [], files.squared
    write_video(path, stripes(30), pixels="yuv420p", **options)
    whole = files.decoded(path, 32)
    assert len(whole) == 30
    monkeypatch.setattr(files, "squared", lambda frame, size: seen.append(frame.pts) or squared(frame, size))
    videos = video.VideoFiles([path], 32)
    for place, start in ((0.0, 0), (0.5, 12), (1.0, 23)):
        seen.clear()
        found = videos.cut([0], torch.tensor([[place]]), 4, 2)[0, 0]
        assert torch.equal(found, whole[start : start + 7 : 2].transpose(0, 1))
        assert len(seen) == 4, "only these are resized"
    two = videos.cut([0], torch.tensor([[1.0, 0.0]]), 3)[:, 0].transpose(1, 2)
    assert torch.equal(two, torch.stack([whole[27:30], whole[:3]]))


def test_where_a_file_says_nothing_or_wrongly_when_frames_are_shown_all_are_decoded(tmp_path, monkeypatch):
    """As for AVI files with frames that refer to later ones."""
    path = tmp_path / "a.mp4"
    write_video(path, stripes(20))
    whole, (times, keys) = files.decoded(path, 32), files.shown_when(path)
    assert len(times) == 20 and keys
    more = [*times, *(times[-1] + k for k in range(1, 9))]
    # nothing, times that are no frame's, and more frames than there are
    for said, place, start in (([], 0.2, 3), ([time + 1 for time in times], 0.2, 3), (more, 1.0, 16)):
        monkeypatch.setattr(files, "shown_when", lambda path, said=said: (said, keys[: len(said)]))
        clip = video.VideoFiles([path], 32).cut([0], torch.tensor([[place]]), 4)[0, 0]
        assert torch.equal(clip, whole[start : start + 4].transpose(0, 1))


@pytest.mark.parametrize("turns, a, b", [(1, 0, 1), (2, -1, 0), (3, 0, -1)])
def test_a_video_is_shown_upright_as_its_file_says(turns, a, b, tmp_path):
    """By the matrix that a telephone writes into its header (ISO/IEC 14496-12, tkhd)."""
    path = tmp_path / "turned.mp4"
    write_video(path, stripes(5, height=64, width=64))
    plain = files.decoded(path, 32)
    matrix = np.array([a << 16, b << 16, 0, -b << 16, a << 16, 0, 0, 0, 1 << 30], ">i4").tobytes()
    whole = path.read_bytes()
    place = whole.index(b"tkhd") + 44
    path.write_bytes(whole[:place] + matrix + whole[place + 36 :])
    assert torch.equal(files.decoded(path, 32), plain.rot90(-turns, (-2, -1)))


def test_the_flow_of_files_is_computed_once(tree, tmp_path, monkeypatch):
    def cut(cache=tmp_path):
        found = video.load_videos(f"folder:{tree}", "test", "flow", cache, size=32)
        return found.cut(torch.tensor([0]), torch.zeros(1, 1), 4)

    first = cut()
    assert first.shape == (1, 1, 2, 4, 32, 32)
    right = flow.to_pixels(first)[0, 0, 0, :, 8:-8, 8:-8].median()
    assert abs(float(right) - 2 * 32 / 48) < 0.3
    monkeypatch.setattr(flow, "tv_l1", None)
    assert torch.equal(cut(), first)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="must be a folder that can be written"):
        cut(tmp_path / "file")


def test_a_flipped_bit_in_a_flow_file_gives_the_flow_or_words(tmp_path):
    """Of a flow that is not read at once: np.load reads what the header asks for, and no further."""
    x = torch.randint(256, (19, 2, 16, 16), dtype=torch.uint8)
    flow.computed_once(tmp_path, b"", lambda: x)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    start, fewer = whole.index(x.numpy().tobytes()), whole.index(b"(19, 2") + 2  # 11 instead of 19
    for place in (0, start - 30, fewer, start, start + x.numel() // 2, len(whole) - 4):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=rf"{path} is damaged \(.*remove it"):
            flow.computed_once(tmp_path, b"", lambda: x)


def copied(source, path, start=0, shift=0):
    """The packets of a video from that one on, shown so many frames earlier, not encoded again."""
    with av.open(str(source)) as whole, av.open(str(path), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream_from_template(whole.streams.video[0])
        for i, packet in enumerate(x for x in whole.demux(video=0) if x.dts is not None):
            ticks = int(Fraction(shift, 10) / packet.time_base)
            packet.pts, packet.dts, packet.stream = packet.pts - ticks, packet.dts - ticks, stream
            if i >= start:
                file.mux(packet)
    return path


def trimmed(folder):
    """As a telephone trims a video: an edit list hides the first five frames."""
    return copied(folder / "whole.mp4", folder / "trimmed.mp4", shift=5), range(5, 30)


def trimmed_at_the_end(folder):
    """The edit list shows the first ten frames; most others are not even read."""
    path = copied(folder / "whole.mp4", folder / "ten.mp4")
    whole = path.read_bytes()
    place = whole.index(b"elst") + 12
    (length,) = struct.unpack(">I", whole[place : place + 4])
    path.write_bytes(whole[:place] + struct.pack(">I", length // 3) + whole[place + 4 :])
    return path, range(10)


def dropped_frames(folder):
    """A camera writes an empty packet for each of three frames that it dropped."""
    path = folder / "dropped.avi"
    write_video(path, stripes(30), "mjpeg", "yuvj420p", [*range(15), *range(18, 33)])
    return path, range(30)


def between_key_frames(ending, codec):
    """The first two packets come before a key frame, as where a recording is cut anywhere."""

    def make(folder):
        source = folder / f"keyed.{ending}"
        write_video(source, stripes(30), codec, "yuv420p", g="10", sc_threshold="0")
        with av.open(str(source)) as file:
            key = [packet.is_keyframe for packet in file.demux(video=0)].index(True, 3)
        return copied(source, folder / f"between.{ending}", start=key - 2), range(key, 30)

    return make


BETWEEN = [("mp4", "libx264"), ("ts", "libx264"), ("webm", "libvpx-vp9"), ("mkv", "mpeg4")]
GAPS = [trimmed, trimmed_at_the_end, dropped_frames, *(between_key_frames(*how) for how in BETWEEN)]


@pytest.mark.parametrize("make", GAPS)
def test_trimmed_videos_and_those_with_gaps_are_read_wherever_a_clip_begins(make, tmp_path):
    write_video(tmp_path / "whole.mp4", stripes(30), g="10", bf="2")
    path, there = make(tmp_path)
    wanted = torch.from_numpy(stripes(30)[list(there), :, 8:56]).permute(0, 3, 1, 2).int()
    seen = files.decoded(path, 48)
    assert seen.shape == wanted.shape and (seen.int() - wanted).abs().float().mean() < 8
    videos = video.VideoFiles([path], 48)
    cut = videos.cut([0], torch.linspace(0, 1, len(there) - 3)[None], 4)[:, 0]
    assert torch.equal(cut.transpose(1, 2), seen.unfold(0, 4, 1).permute(0, 4, 1, 2, 3))


def test_a_video_that_is_too_short_is_named_when_the_views_are_made(tmp_path):
    for name in ("good", "short"):
        write_video(tmp_path / f"train/ant/{name}.mp4", stripes(6 if name == "short" else 30))
    own = video.load_videos(f"folder:{tmp_path}", size=32)
    with pytest.raises(ValueError, match="short.mp4 has 6 frames, and 8 of them, every 1. one, need 8"):
        video.ClipViews(own, video.video_views("photo", 32))
    good = own.subset(torch.tensor([True, False]))
    assert len(video.ClipViews(good, video.video_views("photo", 32))) == 1
    with pytest.raises(ValueError, match="good.mp4 has 30 frames, and 48 of them, every 1. one, need 48"):
        good.cut([0], torch.zeros(1, 1), 48)
    with pytest.raises(ValueError, match="paths must hold at least one video file"):
        good.videos[torch.tensor([False])]


def sound(path, whole):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(2000))


NO_VIDEOS = {  # how each is made of the bytes of a whole one, and what is said
    "sound": (sound, "only sound"), "empty": (lambda path, whole: path.touch(), ""),
    "text": (lambda path, whole: path.write_text("no video"), ""),
    "pipe": (lambda path, whole: os.mkfifo(path), "a pipe or"),
    "header": (lambda path, whole: path.write_bytes(whole[: whole.index(b"mdat") // 2]), ""),
    "middle": (lambda path, whole: path.write_bytes(whole[: len(whole) // 2]), ""),
    "end": (lambda path, whole: path.write_bytes(whole[:-12]), ""),  # in the last frame
    "unknown": (lambda path, whole: path.write_bytes(whole.replace(b"avc1", b"xyzw")), ""),
}  # fmt: skip


def test_what_is_no_video_or_cut_off_is_named_and_not_shortened_all_when_the_set_is_loaded(tmp_path):
    place = tmp_path / "train/ant"
    write_video(place / "good.mp4", stripes(40))
    whole = (place / "good.mp4").read_bytes()
    assert whole.index(b"moov") < whole.index(b"mdat")
    for name, (make, said) in NO_VIDEOS.items():
        make(place / f"{name}.mp4", whole)
        with pytest.raises(ValueError, match=rf"{name}\.mp4 cannot be read as a video .*{said}.*remove it"):
            files.decoded(place / f"{name}.mp4", 32)
    with pytest.raises(ValueError) as caught:
        video.load_videos(f"folder:{tmp_path}")
    named = re.findall(r"(\w+)\.mp4 cannot be read", str(caught.value))
    assert named == sorted(NO_VIDEOS) and re.search(r"/end\.mp4 [^;]*cut off", str(caught.value))


SCRIPTS = {
    "live.mp4": "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{0}\n",  # ffmpeg would wait for more
    "ended.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{0}\n#EXT-X-ENDLIST\n",
    "script.mp4": "ffconcat version 1.0\nfile '{0}'\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_playlist_or_script_is_no_video(name, tmp_path):
    """It shows other files of the machine, and reading one without an end would wait for ever."""
    write_video(tmp_path / "private.ts", stripes(12))
    (tmp_path / name).write_text(SCRIPTS[name].format(tmp_path / "private.ts"))
    with pytest.raises(ValueError, match=f"{name} cannot be read as a video .*(playlist|Invalid data)"):
        video.VideoFiles([tmp_path / name], 32)


@pytest.mark.parametrize("name", ["pipe:0", "concat:a|b.mp4", "http:a.mp4", "a%03d?#.mp4"])
def test_a_name_is_a_files_and_no_address(name, tmp_path, monkeypatch):
    write_video(tmp_path / "a.mp4", stripes(12))
    (tmp_path / "a.mp4").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert video.VideoFiles([name], 32).cut([0], torch.zeros(1, 1), 4).shape == (1, 1, 3, 4, 32, 32)


# ------------------------------------------------------------------------------------- training, records


RECIPE = VideoRecipe("InfoNCE(temperature=0.2)", epochs=2, batch=32, frames=4)


@cache
def few(modality="rgb"):
    """Two sets of every fifth clip for test; those for training would take long to film."""
    whole = video.load_videos("moving-patches", "test", modality)
    return [whole.subset(torch.arange(len(whole)) % 5 == k) for k in (0, 2)]


@cache
def first_weights(modality="rgb"):
    """The encoder of a run of no epochs."""
    return pretrain(replace(RECIPE, epochs=0, modality=modality), data=few(modality)[0]).encoder


def test_what_is_known_is_what_scikit_learns_neighbours_say():
    train, test = few()
    found = video_accuracies(first_weights(), train, test, 4)
    bank, queries = (video_features(first_weights(), x, 4).double() for x in (train, test))
    for thing in ("photograph", "motion"):
        theirs = KNeighborsClassifier(1, metric="cosine").fit(bank, train.labels[thing])
        right = 100 * theirs.score(queries, test.labels[thing])
        assert found[thing]["retrieval@1"] == pytest.approx(right, abs=100 / len(test) + 0.01)


def test_features_of_nothing_are_near_nothing():
    """First weights give a still clip's flow features of 0, and a tie with all would be luck."""
    true, encoder = few("camera flow"), first_weights("camera flow")
    still = true[1].labels["motion"] == MOTIONS.index("still")
    assert not video_features(encoder, true[1], 4)[still].any()
    moves = [(x.labels["motion"] != MOTIONS.index("still")).long() for x in true]
    alike = [video.VideoSet(x.tensor, {"moves": y}, {"moves": ("no", "yes")}) for x, y in zip(true, moves)]
    found = video_accuracies(encoder, *alike, 4)["moves"]["retrieval@1"]
    assert found == pytest.approx(100 * float((~still).float().mean()), abs=0.01)
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-7, -1e-7], [0.0, -0.1]])
    assert pointing(x).tolist() == [True, False, False, True], "rounding does not point"


def test_features_are_means_over_moments_and_crops():
    some, encoder, rows = few()[1], first_weights(), []
    one = video_features(encoder, some, 4, moments=2, crops=10, batch=5)
    with torch.no_grad():
        for place in (0.0, 1.0):
            clip = some.cut(torch.arange(len(some)), torch.full((len(some), 1), place), 4)[0]
            rows += [encoder(crop) for crop in video.ten_crops(clip)]
    assert torch.allclose(one, torch.stack(rows).mean(0), atol=1e-5)


def test_records_are_written_and_read(tmp_path, monkeypatch):
    load = "setclr.experiments.kinds.video.load_videos"
    monkeypatch.setattr(load, lambda name, split, *_: few()[split == "test"])
    monkeypatch.setitem(RECIPES, "moving-rgb-untrained", replace(RECIPE, epochs=0))
    main(["campaign", "moving-rgb-untrained@0", "--results", str(tmp_path), "--runs", str(tmp_path / "runs")])
    found = read_record(tmp_path / "moving-rgb-untrained-seed0.json")
    wanted = product(("photograph", "motion"), ("retrieval@1", "linear", "ten crops"))
    assert set(found.accuracy_percent["trained"]) == set(map(" ".join, wanted))
    table = video_results(tmp_path)
    assert list(table.index) == ["moving-rgb-untrained"] and table["loss"].iloc[0] == "none: first weights"


@pytest.mark.parametrize("call, said", [
    (lambda x, path: video.load_videos(f"folder:{path}", modality="camera flow"), "folder's videos is not"),
    (lambda x, path: video.load_videos(f"folder:{path}", "test"), "train/ant has no counterpart in .*test"),
    (lambda x, path: pretrain(replace(RECIPE, frames=13), data=x), "a video has 12 frames, and 13 of them"),
    (lambda x, path: video_features(torch.nn.Identity(), x, crops=5), "crops must be 1 or 10, got 5"),
    (lambda x, path: video.VideoSet(clips(n=2), {"motion": torch.tensor([0, 1])}, {"motion": ("still",)}),
     r"labels\['motion'\] must be indices of 1 classes, got 0 to 1"),
    (lambda x, path: video.clip_views(torch.zeros(1, 2, 3, 4, 8, 8), [View()], None), "clips must be"),
])  # fmt: skip
def test_wrong_arguments_are_named(tmp_path, call, said):
    for place in ("train/ant", "train/bee", "test/bee"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "0.mp4").touch()
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        call(few()[0], tmp_path)
