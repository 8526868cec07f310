"""Tests of whether two ways of training differ: t-tests of runs paired by seed, corrected for many tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setclr.checks import integer, number


class Paired(NamedTuple):
    """The result of a test of the differences a − b of paired runs."""

    difference: float  # mean of the differences
    low: float  # confidence interval of the mean
    high: float
    p: float  # two-sided p-value of the hypothesis that the mean is 0


def paired(a: Sequence[float], b: Sequence[float], level: float = 0.95, questions: int = 1) -> Paired:
    """Student's t-test for pairs, and the confidence interval of the mean difference.

    a and b (n,) are results of the same n seeds. Each of m `questions` gets an interval of level 1 − (1 −
    level)/m (Bonferroni): all m intervals together then cover the truth with probability ≥ level. Where
    all differences are equal, the interval is that point, and p is 0, or 1 if they are 0.

    Raises ValueError where a and b are not n ≥ 2 finite numbers each, level is not between 0 and 1, or
    questions is not an integer ≥ 1.
    """
    x, y = (np.asarray(values, dtype=float) for values in (a, b))
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or not np.isfinite(x - y).all():
        got = f"shapes {x.shape} and {y.shape}, {np.isfinite(x).sum()} and {np.isfinite(y).sum()} finite"
        raise ValueError(f"a and b must be n >= 2 finite numbers each, a pair a seed, got {got}")
    number("level", level, above=0, most=1 - 1e-9)
    integer("questions", questions, least=1)
    from scipy import stats  # takes a second

    mean = (x - y).mean()
    if np.ptp(x - y) == 0:
        return Paired(mean, mean, mean, float(mean == 0))
    test = stats.ttest_rel(x, y)
    low, high = test.confidence_interval(1 - (1 - level) / questions)
    return Paired(mean, low, high, test.pvalue)


def holm(p: Sequence[float]) -> np.ndarray:
    """The p-values (m,) of a family of tests, adjusted after Holm (1979), in the order given.

    Take all differences with an adjusted p ≤ α as real: the probability that one or more of them is
    chance is then ≤ α, however the tests depend on one another. Raises ValueError where a value is not
    within 0 and 1.
    """
    values = np.asarray(p, dtype=float)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p must be numbers from 0 to 1, got {p!r}; leave out tests that gave none")
    order = values.argsort(kind="stable")
    steps = (len(values) - np.arange(len(values))) * values[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(steps).clip(max=1)
    return adjusted
