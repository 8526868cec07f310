"""Five numbers, the positive first, that walk downhill on InfoNCE or on GroCo (GroCo, figure 4).

A walk is 200 steps of a few dozen sums each: plain numbers are five times as quick there as arrays.
"""

from functools import lru_cache
from math import atan, exp, pi

import numpy as np

STEPS, RATE = 200, 0.3
DRAWN = np.array([*range(40), *range(40, STEPS + 1, 5)])  # the steps through which a way is drawn
NETWORK = [(left, left + 1) for layer in range(5) for left in range(layer % 2, 4, 2)]


def info_nce_push(s: list[float], temperature: float) -> list[float]:
    """Minus the slope of InfoNCE by s (5): (truth − share) / τ."""
    top = max(s)
    powers = [exp((x - top) / temperature) for x in s]
    whole = sum(powers) * temperature
    return [1 / temperature - powers[0] / whole, *(-power / whole for power in powers[1:])]


def groco_push(s: list[float], beta: float) -> list[float]:
    """Minus the slope of GroCo by s (5): once through the network for each factor of the chain rule."""
    order = [*sorted(range(1, 5), key=lambda k: s[k]), 0]  # the negatives sorted, then the positive
    x, swaps = [s[k] for k in order], []  # left, right, by how much the left is larger, how likely a swap
    for left, right in NETWORK:
        over = x[left] - x[right]
        q = atan(beta * over) / pi + 0.5
        x[left] -= q * over
        x[right] += q * over
        swaps.append((left, right, over, q))
    p, gaps = [0.0, 0.0, 0.0, 0.0, 1.0], []  # how likely each place is sorted to the top
    for left, right, _, q in reversed(swaps):
        gap = p[right] - p[left]
        p[left] += q * gap
        p[right] -= q * gap
        gaps.append(gap)
    rise = [*(-0.2 / (1 - chance) for chance in p[:4]), 0.2 / p[4]]  # minus the slope of the loss by p
    slopes = []  # and by every q
    for (left, right, _, q), gap in zip(swaps, reversed(gaps)):
        more = rise[left] - rise[right]
        rise[left] -= q * more
        rise[right] += q * more
        slopes.append(more * gap)
    push = [0.0] * 5
    for (left, right, over, q), slope in zip(reversed(swaps), reversed(slopes)):
        more = push[right] - push[left]
        steep = beta / (pi * (1 + (beta * over) ** 2))
        both = q * more + (slope + over * more) * steep
        push[left] += both
        push[right] -= both
    return [push[order.index(k)] for k in range(5)]


PUSHES = {"InfoNCE": info_nce_push, "GroCo": groco_push}


@lru_cache(maxsize=256)
def walk(loss: str, knob: float, starts: tuple[float, ...]) -> np.ndarray:
    """Gradient descent on the loss from these starts: (STEPS + 1, 5)."""
    places = [list(starts)]
    for _ in range(STEPS):
        push = PUSHES[loss](places[-1], knob)
        places.append([x + RATE * by for x, by in zip(places[-1], push)])
    return np.array(places)
