"""One batch with a hub under the constraints U(1), U(a) and U(a, b), side by side (IOT-CL, figure 4)."""

from functools import lru_cache

import numpy as np

from setclr.losses import IOT
from setclr_course.kit.palette import BLACK, BLUE, LINES
from setclr_course.panels.couplings.fair_shares import sum_bars
from setclr_course.pixels.circle import as_drawn, draw_circles, on_circle
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, true_match_frames

ANGLES = ((345, 62, 132, 235), (5, 85, 108, 255))  # degrees; ■1, the first of view 2, is the hub
HOME, N = 0, len(ANGLES[0])  # columns of ●1, which the hub leaves alone, and of the hub
NAMES = [view + str(image) for view in "●■" for image in range(1, N + 1)]
FAMILY = {"total": "U(1)", "rows": "U(a)", "both": "U(a, b)"}
MOST = 2.5  # fair shares: where the bars end
BRIGHT = 0.6  # M P of the brightest cell
INSIDE = 0.5  # the radius at which the hub is drawn, so that it hides nobody


def constraint_family(**initial) -> Panel:
    """The couplings of two views of four images under three constraints, while one point gets in the way."""
    controls = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.1: ".1", 0.5: "paper .5", 2: "2"}),
        "hub": slider("angle of ■1", 95, 0, 360, 5, {5: "at home", 95: "between 2 and 3", 245: "amid 4"}),
        "rounds": slider("rounds K of U(a, b)", 8, 1, 16, 1, {1: "1", 2: "2", 4: "4", 8: "paper 8"}),
    }
    return Panel(build, controls, (9.4, 3.2), initial, 3.7)


@lru_cache(maxsize=2**12)
def seen(constraint: str, epsilon: float, hub: int, rounds: int) -> tuple[np.ndarray, float]:
    """M P (M, M), where a fair share is 1, and the loss."""
    z = on_circle((ANGLES[0], (hub, *ANGLES[1][1:])))
    A = IOT(constraint, epsilon, iterations=rounds).assignment(z).numpy()
    return A, -np.log([*A[:N, N:].diagonal(), *A[N:, :N].diagonal()]).mean()


def build(figure, compact: bool) -> Drawing:
    if compact:
        plane, *axes = figure.subplot_mosaic("ppp;123", height_ratios=[1.25, 1]).values()
    else:
        plane, *axes = figure.subplots(1, 4, width_ratios=[0.95, 1, 1, 1])
    hub = draw_plane(plane, compact)
    couplings = [draw_coupling(axis, name, compact) for axis, name in zip(axes, FAMILY.values())]

    def update(values: dict) -> str:
        hub.move(values["hub"])
        words = []
        for (constraint, name), coupling in zip(FAMILY.items(), couplings):
            rounds = values["rounds"] if constraint == "both" else 1
            A, loss = seen(constraint, values["epsilon"], values["hub"], rounds)
            coupling.move(A, loss)
            received = A.sum(0)
            words.append(
                f"{name}: loss {loss:.3f}, ■1 receives {received[N]:.3f} fair shares, {A[HOME, N]:.3f} of "
                f"them from its partner ●1, who receives {received[HOME]:.3f}"
            )
        rounds = f"{values['rounds']} round{'s' * (values['rounds'] != 1)}"
        given = f"ε = {values['epsilon']:.3g}, ■1 at {values['hub']}°, {rounds} for U(a, b). "
        return given + "; ".join(words) + "."

    return Drawing([artist for part in (hub, *couplings) for artist in part.artists], update)


def draw_plane(axis, compact: bool) -> Part:
    """The batch; ■1 with its spoke and its number is moved by its angle."""
    size, z = 8 if compact else 9, on_circle(ANGLES).numpy()
    draw_images(axis, z, size)
    axis.plot(*z[0, 0], "o", color=LINES[0], markersize=size, markeredgecolor="white")
    axis.text(*1.24 * z[0, 0], "1", fontsize=size, ha="center", va="center")
    if not compact:
        axis.set_xlabel(
            f"cells: M·P, dark 0,\nbright {BRIGHT} and more\nframes: true matches\nblue bars: ●1 and ■1",
            fontsize=8,
        )
    (spoke,) = axis.plot([], [], color=LINES[0], linewidth=1.5)
    (dot,) = axis.plot([], [], "s", color=LINES[0], markersize=size + 2, markeredgecolor=BLACK)
    number = axis.text(0, 0, "■1", fontsize=size, weight="bold", ha="center", va="center")

    def move(degrees: float) -> None:
        outward = on_circle(degrees).numpy()
        spoke.set_data(*np.stack([z[0, 0], INSIDE * outward]).T)
        dot.set_data(*INSIDE * outward[:, None])
        number.set_position(0.21 * outward)

    return Part([spoke, dot, number], move)


def draw_images(axis, z: np.ndarray, size: int) -> None:
    """All images of z (2, N, 2) but the first on two circles, view 1 outside."""
    bare(axis, (-1.35, 1.35))
    axis.set_title("● view 1   ■ view 2", fontsize=size, loc="center")
    draw_circles(axis)
    for i, (x, y) in enumerate(z[0, 1:], 1):
        ends = as_drawn(z)[:, i]
        axis.plot(*ends.T, color=LINES[i], linewidth=1.5, zorder=0)
        for end, marker in zip(ends, "os"):
            axis.plot(*end, marker, color=LINES[i], markersize=size, markeredgecolor="white")
        axis.text(1.24 * x, 1.24 * y, str(i + 1), fontsize=size, ha="center", va="center")


def draw_coupling(axis, name: str, compact: bool) -> Part:
    """One matrix with its sums; moved by M·P and the loss."""
    n, size = 2 * N, 7 if compact else 9
    mesh = cells(axis, n, n, BRIGHT)
    frames = axis.add_collection(true_match_frames(N, 0.8 if compact else 1.4))
    above, _, stairs = sum_bars(axis, n, 0.3, MOST)
    bar = above.stairs(np.ones(n), np.arange(n + 1) - 0.5, fill=True, color=BLUE)
    above.set_title(name, fontsize=size + 1, weight="bold", pad=2)
    loss = above.text(1, 1.05, "", fontsize=size, ha="right", va="bottom", transform=above.transAxes)
    below = {"fontsize": min(size, 8), "va": "top", "transform": axis.transAxes}
    note = axis.text(0, -0.08 if compact else -0.16, "", **below)
    if not compact:
        axis.set_xticks(range(n), NAMES, fontsize=7)
        axis.set_yticks(range(n), NAMES, fontsize=7)
    axis.tick_params(length=0, pad=2)

    def move(A: np.ndarray, value: float) -> None:
        received = A.sum(0)
        mesh.set_array(A)
        stairs.move(received, A.sum(1))
        bar.set_data(np.where(np.isin(range(n), (HOME, N)), received.clip(max=MOST), np.nan))
        loss.set_text(f"{'' if compact else 'loss '}{value:.2f}")
        note.set_text(f"■1 gets {received[N]:.2f}" + f", {A[HOME, N]:.2f} of it from ●1" * (not compact))

    return Part([mesh, frames, *stairs.artists[:2], bar, *stairs.artists[2:], loss, note], move)
