"""The exact optimum of the duals of many small support-vector machines, by block pivoting.

Sources: Shah et al. 2022 (MMCL); Portugal, Júdice and Vicente 1994, Kim and Park 2011 (block pivoting).
"""

import torch
from torch import Tensor

from setclr.inner.descent import BLOCK, projected_gradient
from setclr.inner.dual import Machines

GUESS = 5  # gradient steps before the first linear system
PATIENCE = 3  # rounds that may change all wrong α at once without lowering their number
LARGE = 80  # systems of S unknowns with S³ > LARGE · P² cost more than some hundred gradient steps
STEPS, HELPS = 300, 6  # gradient steps for a better guess; they double each time, up to six times
SLACK, EXACT = 8, 100  # in units of `rounding`: a gradient, and a residual, that count as 0


def block_pivoting(machines: Machines, rounds: int = 1000) -> tuple[Tensor, Tensor]:
    """The exact optimum (MMCL, proposition 1): guess which α are 0, C or between, then correct the guess.

    An α between the bounds is called free. The first guess comes from a few gradient steps. Given a guess,
    the free α solve a linear system. A free α beyond a bound is wrong and moves to the bound. An α at a bound
    is wrong if its gradient points inside, and becomes free. All wrong α change at once while their number
    falls. The first guess is good and support is usually sparse, so two to ten rounds with small systems are
    enough. If the wrong α of a machine do not become fewer for three rounds, or its system is large, more
    gradient steps solve it or give a better guess, with twice as many steps each time. If that does not help,
    only the last wrong α changes in a round: slow, but finite, since Δ is positive definite.

    Returns α (A, P) and the indices of machines not solved after `rounds`. Cost: O(A (P² + S³)) time a round
    for S support vectors; O(A P) space.
    """
    P, C = len(machines.K), machines.C
    solved = descended = projected_gradient(machines, 0.0, GUESS)
    at_C = solved >= C
    free = ~(at_C | (solved <= 0))  # NaN counts as free, so the result is NaN
    solved, left = solved.clone(), torch.arange(len(solved), device=solved.device)  # left: not solved
    fewest, patience = torch.full_like(left, P + 1), torch.full_like(left, PATIENCE)
    helped, place = torch.zeros_like(left), torch.arange(P, device=left.device)
    while len(left) and rounds > 0:
        rounds -= 1
        here = machines.only(left)
        alpha = free_solution(here, free, at_C)
        solved[left] = here.clip(alpha)
        wrong, above, freed = violations(here, alpha, free, at_C)
        count = wrong.sum(1)
        fewer = count < fewest
        fewest, patience = torch.where(fewer, count, fewest), torch.where(fewer, PATIENCE, patience - 1)
        slow = patience <= 0
        if bool(slow.any()):
            last = torch.where(wrong, place, -1).amax(1, keepdim=True)
            wrong &= ~slow.unsqueeze(1) | (place == last)
        free, at_C = (free & ~wrong) | (freed & wrong), (at_C & ~wrong) | (above & wrong)

        large = free.sum(1).double() ** 3 > LARGE * P**2
        stuck = (count > 0) & ((large & (helped == 0)) | (slow & (helped < HELPS)))
        if bool(stuck.any()):
            again, steps = left[stuck], STEPS * 2 ** int(helped[stuck].max())
            near_0 = EXACT * here.rounding(alpha)[stuck].amin().item()
            alpha = projected_gradient(machines.only(again), near_0, steps, descended[again])
            solved[again] = descended[again] = alpha
            free[stuck], at_C[stuck] = (alpha > 0) & (alpha < C), alpha >= C
            fewest[stuck], patience[stuck] = P + 1, PATIENCE
            helped[stuck] += 1
            count[stuck] = inexact(machines.only(again), alpha).to(count.dtype)
        state = (left, free, at_C, fewest, patience, helped)
        left, free, at_C, fewest, patience, helped = (x[count > 0] for x in state)
    return solved, left


def inexact(machines: Machines, alpha: Tensor) -> Tensor:
    """Which machines have a residual above the rounding error, (A,) bool."""
    return machines.residual(alpha) > EXACT * machines.rounding(alpha).squeeze(1)


def violations(
    machines: Machines, alpha: Tensor, free: Tensor, at_C: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Masks (A, P) of the wrong α: all, the free ones above C, those at a bound that should be free."""
    gradient, slack = machines.gradient(alpha), SLACK * machines.rounding(alpha)
    size = SLACK * torch.finfo(alpha.dtype).eps * alpha.abs().amax(1, keepdim=True)
    below, above = free & (alpha < -size), free & (alpha > machines.C + size)
    freed = (at_C & (gradient > slack)) | (~(at_C | free) & (gradient < -slack))
    return below | above | freed, above, freed


def free_solution(machines: Machines, free: Tensor, at_C: Tensor) -> Tensor:
    """α (A, P) with gradient 0 at the mask `free` (A, P), C at the mask `at_C` and 0 elsewhere.

    Machines are sorted by the number of their unknowns and solved in blocks of similar size, padded to the
    largest. A padded entry is the index of the positive, whose row and column of Δ are 0 but for the ridge.
    """
    K, P = machines.K.flatten(), len(machines.K)
    short = torch.int32 if len(K) < 2**31 else torch.int64  # index dtype: int32 halves `pairs`
    size, order = free.sum(1).sort(descending=True)
    alpha = torch.zeros_like(free, dtype=K.dtype)
    positive = machines.positive[order].unsqueeze(1)
    row, column = free[order].nonzero(as_tuple=True)
    index, widths = positive.repeat(1, int(size[0])), size.tolist()
    index[row, torch.arange(len(row), device=row.device) - (size.cumsum(0) - size)[row]] = column
    if bool(at_C.any()):
        alpha.masked_fill_(at_C, machines.C)
        found = -machines.gradient(alpha)[order].gather(1, index)
    else:
        found = 2 * (index != positive).to(K.dtype)
    first = 0
    while first < len(order) and widths[first]:
        width = widths[first]
        block = slice(first, first + max(1, BLOCK // width**2))
        at, plus = index[block, :width], positive[block]
        pairs = (P * at.to(short)).unsqueeze(2) + at.to(short).unsqueeze(1)
        system = K.index_select(0, pairs.flatten()).view(*at.shape, width)
        k = K[P * plus + at]
        system -= k.unsqueeze(2)
        system -= (k - K[P * plus + plus]).unsqueeze(1)
        system.diagonal(dim1=1, dim2=2).add_(machines.ridge)
        factor, failed = torch.linalg.cholesky_ex(system)
        solution = torch.cholesky_solve(found[block, :width].unsqueeze(2), factor).squeeze(2)
        found[block, :width] = solution.masked_fill_((failed != 0).unsqueeze(1), torch.nan)
        first = block.stop
    alpha[order] = alpha[order].scatter(1, index, found)
    return alpha
