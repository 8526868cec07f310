"""Three solvers for the duals of many small support-vector machines over one pool of points.

Every machine separates one positive z⁺ from the negatives Y of the pool. Its dual (MMCL, proposition 1) is

    min over 0 ≤ α ≤ C of g(α) = ½ αᵀΔα − 2·1ᵀα,   Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ,

with k⁺⁺ = k(z⁺, z⁺), k_Y = k(Y, z⁺) and the ridge ρ. The machines share the Gram matrix K of the pool and
differ in few rows of it, so none of the solvers ever forms a Δ of a whole machine.
Sources: Shah et al. 2022 (MMCL); Portugal, Júdice and Vicente 1994, Kim and Park 2011 (block pivoting); Beck
and Teboulle 2009, O'Donoghue and Candès 2015 (accelerated gradients with restart).
"""

from typing import NamedTuple

import torch
from torch import Tensor

POWER = 8  # rounds of power iteration, for a first guess of the curvature
NEAREST = 48  # negatives that block pivoting begins with
PATIENCE = 3  # rounds in which all change at once without fewer being wrong
LARGE = 80  # systems of S unknowns with S³ > LARGE · P² cost more than some hundred gradient steps
STEPS, HELPS = 300, 6  # gradient steps for a better guess; they double each time, up to six times
EXACT = 100  # roundings of 1 + Σα: a residual below that is rounding
BLOCK = 2**24  # numbers in the systems that are solved at once: 64 MB in float32


class Machines(NamedTuple):
    """A machines over a pool of P points, machine a with the positive `positive[a]`.

    Its negatives are all points but `own[a]`, the positive among them. Variables are α (A, P), 0 at `own`.
    """

    K: Tensor  # (P, P): the kernel of the pool
    positive: Tensor  # (A,)
    own: Tensor  # (A, r)
    C: float  # upper bound, may be inf
    ridge: float  # ρ

    def only(self, which: Tensor) -> "Machines":
        return self._replace(positive=self.positive[which], own=self.own[which])

    def negatives(self) -> Tensor:
        """(A, P) bool."""
        mask = torch.ones(len(self.own), len(self.K), dtype=torch.bool, device=self.K.device)
        return mask.scatter(1, self.own, False)

    def product(self, alpha: Tensor) -> Tensor:
        """Δα of every machine, (A, P), meaningful at its negatives: a matrix product and rank-two terms."""
        mass = alpha.sum(1, keepdim=True)
        k = self.K[self.positive]
        Ka = alpha @ self.K
        own = k.gather(1, self.positive.unsqueeze(1)) * mass - Ka.gather(1, self.positive.unsqueeze(1))
        return Ka.add_(alpha, alpha=self.ridge).sub_(mass * k).add_(own)

    def clip(self, alpha: Tensor) -> Tensor:
        return alpha.clamp(0, self.C).scatter(1, self.own, 0)

    def residual(self, alpha: Tensor, product: Tensor) -> Tensor:
        """How far α is from optimal, (A,), in units of the gradient ∇g = Δα − 2.

        It is the largest coordinate of (α − clip(α − t∇g)) / t with t = min(1, C), 0 only at the optimum.
        """
        t = min(1.0, self.C)
        return (alpha - self.clip(alpha - t * (product - 2))).abs().amax(1) / t


class Solved(NamedTuple):
    """What an iterative solver returns."""

    alpha: Tensor  # (A, P)
    residual: Tensor  # (A,): see `Machines.residual`


def clipped_inverse(machines: Machines, definite: bool = True) -> Tensor:
    """MMCL_INV, clip(2 Δ⁻¹1): least squares without the bounds, then cut to them (MMCL, proposition 1).

    One factorisation serves all machines. With A = K + ρI and B = A⁻¹, leaving out the rows R = own of A
    changes its inverse by rank r, and from A_YY to Δ it is another rank 2; q₁ = A_YY⁻¹1 and q₂ = A_YY⁻¹k_Y
    then give

        Δ⁻¹1 = ((1 − w) q₁ + (1ᵀq₁) q₂) / ((1 − w)² + (1ᵀq₁)(k⁺⁺ − k_Yᵀq₂)),   w = k_Yᵀq₁.

    Returns α (A, P); NaN where the factorisation fails, which `solve` refuses on the CPU. If K is positive
    `definite` it is Cholesky's.

    Cost: O(P³ + A P r) time, O(P² + A P r) memory.
    """
    K, positive, own, _, ridge = machines
    B = inverse(K + ridge * torch.eye(len(K), dtype=K.dtype, device=K.device), definite)
    B_R = B[own]  # (A, r, P)
    B_RR = B_R.gather(2, own.unsqueeze(1).expand(-1, own.shape[1], -1))
    schur = inverse(B_RR, definite)  # (A, r, r): A_RR − A_RY A_YY⁻¹ A_YR
    plus = (own == positive.unsqueeze(1)).to(K.dtype)  # e⁺: where in R the positive stands

    B1 = B.sum(1) - B_R.sum(1)  # (A, P): B times the ones off R
    c = torch.einsum("ars,as->ar", schur, B1.gather(1, own))
    q1 = B1 - torch.einsum("ar,arp->ap", c, B_R)
    q2 = -torch.einsum("ars,as,arp->ap", schur, plus, B_R)
    q1, q2 = q1.scatter(1, own, 0), q2.scatter(1, own, 0)

    w = -(c * plus).sum(1, keepdim=True)
    rest = torch.einsum("ar,ars,as->a", plus, schur, plus).unsqueeze(1) - ridge  # k⁺⁺ − k_Yᵀq₂
    mass = q1.sum(1, keepdim=True)
    solution = ((1 - w) * q1 + mass * q2) / ((1 - w).square() + mass * rest)
    return machines.clip(2 * solution)


def inverse(A: Tensor, definite: bool) -> Tensor:
    """A⁻¹ (..., n, n), NaN where there is none."""
    if not definite:
        found, info = torch.linalg.inv_ex(A)
        return found.masked_fill((info != 0)[..., None, None], torch.nan)
    factor, info = torch.linalg.cholesky_ex(A)
    failed = (info != 0)[..., None, None]
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
    factor = torch.where(failed, eye, factor)
    # cholesky_inverse is three times faster, but waits for a GPU to say whether it went well
    found = torch.cholesky_inverse(factor) if A.is_cpu else torch.cholesky_solve(eye, factor)
    return found.masked_fill(failed, torch.nan)


def projected_gradient(
    machines: Machines, tolerance: float = 1e-3, rounds: int = 1000, start: Tensor | None = None
) -> Solved:
    """MMCL_PGD: projected gradient descent, accelerated, with a step that fits (MMCL, proposition 1), from 0
    or from a `start` (A, P).

    The step is 1/λ with λ the largest curvature met so far, at first that of power iteration; a step that
    meets a larger one is taken back. Momentum restarts where it points uphill. Stops when every machine's
    residual is at most `tolerance` (checked every ten rounds). Where Δ is indefinite (tanh) it finds a
    stationary point.

    Cost: one matrix product, O(A P²), a round; O(A P) memory.
    """
    negative = machines.negatives()
    direction = negative.to(machines.K.dtype)
    for _ in range(POWER):
        direction = direction / direction.norm(dim=1, keepdim=True)
        direction = torch.where(negative, machines.product(direction), 0)
    curvature = direction.norm(dim=1, keepdim=True)

    alpha = last = torch.zeros_like(direction) if start is None else start
    product = last_product = machines.product(alpha)
    t = torch.ones_like(curvature)
    for done in range(1, rounds + 1):
        t_next = (1 + (1 + 4 * t * t).sqrt()) / 2
        momentum = (t - 1) / t_next
        ahead = alpha + momentum * (alpha - last)
        ahead_product = product + momentum * (product - last_product)
        step = machines.clip(ahead - (ahead_product - 2) / curvature)
        step_product = machines.product(step)

        move = step - ahead
        bend = (move * torch.where(negative, step_product - ahead_product, 0)).sum(1, keepdim=True)
        length = move.square().sum(1, keepdim=True)
        too_long = bend > 1.001 * curvature * length
        uphill = (move * (step - alpha)).sum(1, keepdim=True) < 0
        curvature = torch.where(too_long, 1.1 * bend / length, curvature)
        t = torch.where(too_long | uphill, 1, t_next)
        last, last_product = alpha, product
        alpha, product = torch.where(too_long, alpha, step), torch.where(too_long, product, step_product)
        if done % 10 == 0 or done == rounds:
            residual = machines.residual(alpha, product)
            if not bool((residual > tolerance).any()):  # true of NaN too
                break
    return Solved(alpha, residual)


def block_pivoting(machines: Machines, rounds: int = 1000) -> Solved:
    """The exact optimum (MMCL, proposition 1): guess which α stand at 0, at C and between; mend the guess.

    For a guess the free α solve a linear system. A free α beyond a bound is moved to it; an α at a bound
    whose gradient points inside becomes free. All of them change at once while their number falls. Support
    is usually sparse, so the systems are small and five to ten rounds are enough. A machine whose number does
    not fall for three rounds, or whose system is large, goes through `projected_gradient`, which solves it or
    gives a better guess, with twice as many steps each time. If that does not help, only the last wrong α
    changes: slow, but finite, since Δ is positive definite.

    Cost: O(A (P² + S³)) time a round for S support vectors; O(A P) memory.
    """
    K, C, negative = machines.K, machines.C, machines.negatives()
    P, eps = len(K), torch.finfo(K.dtype).eps
    free, at_C = nearest(machines, negative), torch.zeros_like(negative)
    solved = torch.zeros_like(free, dtype=K.dtype)
    left = torch.arange(len(free), device=K.device)  # the machines that are not done
    fewest, patience = torch.full_like(left, P + 1), torch.full_like(left, PATIENCE)
    descended, helped = torch.zeros_like(solved), torch.zeros_like(left)
    place, done = torch.arange(P, device=K.device), 0
    while len(left) and done < rounds:
        done += 1
        here = machines.only(left)
        alpha = free_solution(here, free, at_C)
        solved[left] = here.clip(alpha)
        wrong, above, freed = violations(alpha, here.product(alpha) - 2, free, at_C, negative[left], C)
        count = wrong.sum(1)
        fewer = count < fewest
        fewest, patience = torch.where(fewer, count, fewest), torch.where(fewer, PATIENCE, patience - 1)
        last = torch.where(wrong, place, -1).amax(1, keepdim=True)
        change = wrong & ((patience > 0).unsqueeze(1) | (place == last))
        free, at_C = (free & ~change) | (freed & change), (at_C & ~change) | (above & change)

        large = free.sum(1).double() ** 3 > LARGE * P**2
        stuck = (count > 0) & ((large & (helped == 0)) | ((patience <= 0) & (helped < HELPS)))
        if bool(stuck.any()):
            again, steps = left[stuck], STEPS * 2 ** int(helped[stuck].max())
            near_0 = EXACT * eps * (1 + alpha[stuck].abs().sum(1).amin().item())
            alpha, residual = projected_gradient(machines.only(again), near_0, steps, descended[again])
            solved[again] = descended[again] = alpha
            free[stuck], at_C[stuck] = (alpha > 0) & (alpha < C), alpha >= C
            fewest[stuck], patience[stuck] = P + 1, PATIENCE
            helped[stuck] += 1
            count[stuck] = (residual > EXACT * eps * (1 + alpha.sum(1))).to(count.dtype)
        state = (left, free, at_C, fewest, patience, helped)
        left, free, at_C, fewest, patience, helped = (x[count > 0] for x in state)
    return Solved(solved, machines.residual(solved, machines.product(solved)))


def nearest(machines: Machines, negative: Tensor) -> Tensor:
    """The first guess of who is free, (A, P) bool: each positive's nearest negatives."""
    similarity = machines.K[machines.positive].masked_fill(~negative, -torch.inf)
    most = min(NEAREST, len(machines.K) - machines.own.shape[1])
    return torch.zeros_like(negative).scatter(1, similarity.topk(most, dim=1).indices, True)


def violations(
    alpha: Tensor, gradient: Tensor, free: Tensor, at_C: Tensor, negative: Tensor, C: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Where a guess is wrong, (A, P) bool: in all, free ones above C, bound ones that should be free."""
    eps = 30 * torch.finfo(alpha.dtype).eps
    size, mass = alpha.abs().amax(1, keepdim=True), alpha.abs().sum(1, keepdim=True)
    below, above = free & (alpha < -eps * size), free & (alpha > C + eps * size)
    slack = eps * (1 + mass)
    inward = torch.where(at_C, gradient > slack, gradient < -slack)
    freed = inward & negative & ~free
    return below | above | freed, above, freed


def free_solution(machines: Machines, free: Tensor, at_C: Tensor) -> Tensor:
    """α (A, P) with gradient 0 at the free places (A, P) bool, C where `at_C` and 0 elsewhere.

    The systems of a block of machines are padded to the largest: a padded place stands for the positive
    itself, whose row and column of Δ are 0 but for the ridge.
    """
    K, positive, _, C, ridge = machines
    alpha, right = torch.zeros_like(K[positive]), torch.full_like(K[positive], 2)
    if bool(at_C.any()):
        alpha.masked_fill_(at_C, C)
        right -= machines.product(alpha)
    size = free.sum(1)
    width = int(size.max())
    row, column = free.nonzero(as_tuple=True)
    index = positive.unsqueeze(1).repeat(1, width)
    index[row, torch.arange(len(row), device=K.device) - (size.cumsum(0) - size)[row]] = column
    right.scatter_(1, positive.unsqueeze(1), 0)
    for block in torch.arange(len(index), device=K.device).split(max(1, BLOCK // max(1, width) ** 2)):
        at, plus = index[block], positive[block]
        k = K[plus.unsqueeze(1), at]
        system = K[at.unsqueeze(2), at.unsqueeze(1)]
        system -= k.unsqueeze(2)
        system -= (k - K[plus, plus].unsqueeze(1)).unsqueeze(1)
        system.diagonal(dim1=1, dim2=2).add_(ridge)
        factor, failed = torch.linalg.cholesky_ex(system)
        solution = torch.cholesky_solve(right[block].gather(1, at).unsqueeze(2), factor).squeeze(2)
        solution = solution.masked_fill((failed != 0).unsqueeze(1), torch.nan)
        alpha[block] = alpha[block].scatter(1, at, solution)
    return alpha
