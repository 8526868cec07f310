"""Hills that cameras film: clips for trying the panels out."""

import numpy as np

FILMED = {"pan left": 1.2, "pan down": 1.2, "zoom in": 1.05, "turn right": 0.06, "still": 0.0}


def hills(side: int = 192) -> np.ndarray:
    """A picture (side, side) that is never flat."""
    y, x = np.mgrid[:side, :side] / side
    waves = np.sin(40 * x + 9 * y) + np.sin(13 * x * y + 31 * y) + np.sin(23 * (x - y) ** 2 + 7 * x)
    return (128 + 40 * waves).astype(np.float32)


def filmed_hills():
    """Two `VideoSet`: five clips of them, each with a tint and another motion; and their flow."""
    import torch

    from setclr.video import VideoSet, camera_flow, drive, film, to_bytes

    picture, clips, flows = hills(), [], []
    for i, (motion, speed) in enumerate(FILMED.items()):
        camera = drive(motion, speed, 48)
        camera = camera._replace(centre=camera.centre + 70 + 10 * i)
        tint = np.roll((1.0, 0.8, 0.6), -i).reshape(1, 3, 1, 1)
        clips.append((film(picture, camera) * tint).clip(0, 255).astype(np.uint8).transpose(1, 0, 2, 3))
        flows.append(to_bytes(torch.from_numpy(camera_flow(camera)).transpose(0, 1)))
    return VideoSet(torch.from_numpy(np.stack(clips)), {}, {}), VideoSet(torch.stack(flows), {}, {})
