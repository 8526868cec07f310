"""The duals of many small support-vector machines over one pool of points, and their solvers.

Every machine separates one positive z⁺ from the negatives Y of the pool. Its dual (MMCL, proposition 1) is

    min over 0 ≤ α ≤ C of g(α) = ½ αᵀΔα − 2·1ᵀα,   Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ,

with k⁺⁺ = k(z⁺, z⁺), k_Y = k(Y, z⁺) and the ridge ρ. The machines share the Gram matrix K of the pool and
differ in few of its rows, so no solver forms the whole Δ of a machine.
Sources: Shah et al. 2022 (MMCL); Beck and Teboulle 2009, O'Donoghue and Candès 2015 (acceleration, restart);
Portugal, Júdice and Vicente 1994, Kim and Park 2011 (block pivoting).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

BORDER = 4  # rows of ρI around a matrix: at a side that is a power of two cholesky takes twice as long
CHECK = 5  # rounds between two checks of the residual
GUESSES = 40  # the most guesses of θ in `nearest`; three are usual
BLOCK = 2**17  # numbers in a block of work: 0.5 MB in float32, which fits into a CPU's cache
GUESS = 5  # gradient steps before the first linear system
PATIENCE = 3  # rounds that may change all wrong α at once without lowering their number
LARGE = 80  # systems of S unknowns with S³ > LARGE · P² cost more than some hundred gradient steps
STEPS, HELPS = 300, 6  # gradient steps for a better guess; they double each time, up to six times
SLACK, EXACT = 8, 100  # in units of `rounding`: a gradient, and a residual, that count as 0


class SVMs(NamedTuple):
    """A support-vector machines over a pool of P points; machine a has the positive `positive[a]`.

    Its negatives are all points except `own[a]`, which include the positive. The variables are α (A, P), 0 at
    `own`.
    """

    K: Tensor  # (P, P): the kernel of the pool
    positive: Tensor  # (A,)
    own: Tensor  # (A, r)
    C: float  # upper bound, may be inf
    ridge: float  # ρ

    def only(self, which: Tensor | slice) -> "SVMs":
        return self._replace(positive=self.positive[which], own=self.own[which])

    def centred(self) -> "SVMs":
        """The same machines with a centred K: K − u1ᵀ − 1uᵀ gives the same Δ for every u.

        With a wide kernel all entries of K are nearly equal, and the differences in Δ would lose digits.
        Centring saves them.
        """
        K = self.K - self.K.mean()
        u = K.mean(1)
        return self._replace(K=K.sub_(u.unsqueeze(1)).sub_(u))

    def gradient(self, alpha: Tensor) -> Tensor:
        """Gradient Δα − 2 of every machine, (A, P), 0 at `own`: a matrix product and rank-two terms."""
        k, plus = self.K[self.positive], self.positive.unsqueeze(1)
        mass, found = alpha.sum(1, keepdim=True), alpha @ self.K
        constant = k.gather(1, plus) * mass - found.gather(1, plus) - 2
        found.add_(alpha, alpha=self.ridge).addcmul_(mass, k, value=-1).add_(constant)
        return found.scatter_(1, self.own, 0)

    def clip(self, alpha: Tensor) -> Tensor:
        return alpha.clamp(0, self.C).scatter_(1, self.own, 0)

    def residual(self, alpha: Tensor) -> Tensor:
        """KKT residual (A,) of α in units of the gradient; it is 0 only at the optimum.

        It is the largest absolute entry of (α − clip(α − t∇g)) / t with t = min(1, C).
        """
        t = min(1.0, self.C)
        return (alpha - self.clip(alpha - t * self.gradient(alpha))).abs().amax(1) / t

    def rounding(self, alpha: Tensor) -> Tensor:
        """Rounding error of the gradient, (A, 1), up to a factor: ε (2 + max k(x, x) Σα)."""
        largest = self.K.diagonal().abs().max()
        return torch.finfo(alpha.dtype).eps * (2 + largest * alpha.abs().sum(1, keepdim=True))


def clipped_inverse(machines: SVMs, definite: bool = True) -> Tensor:
    """MMCL_INV, clip(2 Δ⁻¹1): least squares without the bounds, then clipped to them (MMCL, proposition 1).

    One factorisation serves all machines. Let A = K + ρI and B = A⁻¹. Leaving out the rows R = own of A
    changes the inverse by rank r. Δ differs from A_YY by another rank 2. With q₁ = A_YY⁻¹1 and q₂ = A_YY⁻¹k_Y

        Δ⁻¹1 = ((1 − w) q₁ + (1ᵀq₁) q₂) / ((1 − w)² + (1ᵀq₁)(k⁺⁺ − k_Yᵀq₂)),   w = k_Yᵀq₁.

    Returns α (A, P). It is NaN if the factorisation fails; on the CPU `solve` then raises ValueError. If
    `definite`, K is positive definite and Cholesky's factorisation is used.

    Cost: O(P³ + A P r) time, O(P² + A P) space.
    """
    K, positive, own, _, ridge = machines
    A = torch.nn.functional.pad(K, (0, BORDER, 0, BORDER))
    A.diagonal().add_(ridge)
    B = inverse(A, definite)[:-BORDER, :-BORDER].mT  # symmetric; this way round its rows are contiguous
    sums = B.sum(1)
    B_RR = B[own.unsqueeze(2), own.unsqueeze(1)]
    schur = inverse(B_RR, definite)  # (A, r, r): A_RR − A_RY A_YY⁻¹ A_YR
    plus = (own == positive.unsqueeze(1)).to(K.dtype)  # e⁺: 1 at the positive's place in R, else 0
    c1 = torch.einsum("ars,as->ar", schur, sums[own] - B_RR.sum(2)) + 1  # q₁ = B1 − c₁ᵀB_R
    c2 = torch.einsum("ars,as->ar", schur, plus)  # q₂ = −c₂ᵀB_R

    lead = 1 + ((c1 - 1) * plus).sum(1)  # 1 − w
    mass = sums.sum() - (c1 * sums[own]).sum(1)  # 1ᵀq₁
    share = 2 / (lead.square() + mass * ((plus * c2).sum(1) - ridge))
    alpha = torch.outer(share * lead, sums)
    by_row = (share * lead).unsqueeze(1) * c1 + (share * mass).unsqueeze(1) * c2
    for place, weight in zip(own.T, by_row.T):
        alpha.addcmul_(weight.unsqueeze(1), B.index_select(0, place), value=-1)
    return machines.clip(alpha)


def inverse(A: Tensor, definite: bool) -> Tensor:
    """Inverse of A (..., n, n), by Cholesky's factorisation if `definite`; NaN diagonal if that fails."""
    found, info = (torch.linalg.cholesky_ex if definite else torch.linalg.inv_ex)(A)
    failed = (info != 0).unsqueeze(-1)
    if definite:
        found.diagonal(dim1=-2, dim2=-1).masked_fill_(failed, 1)  # now every factor has an inverse
        # cholesky_inverse is three times faster, but stalls a GPU: it waits for the error code
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
        found = torch.cholesky_inverse(found) if A.is_cpu else torch.cholesky_solve(eye, found)
    found.diagonal(dim1=-2, dim2=-1).masked_fill_(failed, torch.nan)
    return found


def projected_gradient(
    machines: SVMs, tolerance: float = 1e-3, rounds: int = 1000, start: Tensor | None = None
) -> Tensor:
    """MMCL_PGD: accelerated projected gradient descent (MMCL, proposition 1), from 0 or a `start` (A, P).

    In the direction in which all α grow at once, g has some hundred times the curvature of other directions.
    A plain step would have to be that much shorter. So the step uses the metric λI + aaᵀ, which is at least Δ
    for

        a = √γ 1 − k_Y / √γ,   γ ≥ k⁺⁺,   λ ≥ ρ + the largest eigenvalue of K_YY.

    `nearest` computes the projected step in this metric. λ starts at ρ plus the mean |diagonal entry| of K
    and grows when a move meets more curvature. Momentum restarts when it points uphill. The rounds end when
    no residual is above `tolerance`. For an indefinite Δ (tanh) they lead to a stationary point.

    Returns α (A, P). Cost: O(A P²) time a round, one matrix product; O(A P) space. The machines should be
    `centred`, or rounding hides small residuals. On a CPU they are solved in blocks.
    """
    A, P = len(machines.positive), len(machines.K)
    size = max(1, BLOCK // P) if machines.K.is_cpu else A
    blocks = [slice(first, first + size) for first in range(0, A, size)]
    starts = [None if start is None else start[block] for block in blocks]
    found = [descend(machines.only(block), tolerance, rounds, x) for block, x in zip(blocks, starts)]
    return torch.cat(found)


def descend(machines: SVMs, tolerance: float, rounds: int, start: Tensor | None) -> Tensor:
    """α (A, P) by `projected_gradient`, for all machines at once instead of in blocks."""
    K, own, tiny = machines.K, machines.own, torch.finfo(machines.K.dtype).tiny
    k, size = K[machines.positive], K.diagonal().abs().mean() + tiny
    root = k.gather(1, machines.positive.unsqueeze(1)).clamp(min=0.01 * size).sqrt()  # √γ
    a = (root - k / root).scatter_(1, own, 0)
    if start is None:
        alpha, gradient = torch.zeros_like(a), torch.full_like(a, -2).scatter_(1, own, 0)
        theta = 2 / root  # at this θ every negative with k > 0 gets α > 0
    else:
        alpha, gradient, theta = start, machines.gradient(start), dot(a, start)
    ahead, t = alpha, torch.ones_like(root)
    curvature = (machines.ridge + size) * t
    for done in range(1, rounds + 1):
        target = ahead - torch.addcmul(gradient, a, dot(a, ahead), value=-1).div_(curvature)
        step, theta = nearest(target, a, theta, curvature, machines.C, 1 / done**2)  # their sum is finite
        change = step - alpha
        uphill = dot(ahead - step, change) > 0
        t_next = (1 + (1 + 4 * t * t).sqrt()) / 2
        momentum, t = torch.where(uphill, 0, (t - 1) / t_next), torch.where(uphill, 1, t_next)
        alpha = step
        if done == rounds or (done % CHECK == 0 and arrived(machines, alpha, tolerance)):
            break
        move = torch.addcmul(alpha, momentum, change).sub_(ahead)
        ahead, before = ahead + move, gradient
        gradient = machines.gradient(ahead)
        bend = dot(move, gradient - before) - dot(a, move).square()
        bend /= dot(move, move).clamp(min=tiny)
        curvature = torch.where(bend > curvature, 1.1 * bend, curvature)
    return alpha


def authors_steps(machines: SVMs, rounds: int = 1000) -> Tensor:
    """MMCL_PGD as in the authors' program: Nesterov's momentum and steps of 1e-3 (MMCL, proposition 1).

    α starts at max(0, x) with x standard normal. The rounds end when the mean of |change| / (α + 1e-7) over
    all machines is under 1 %. With a wide kernel this happens after a step or two, and α is still the random
    start. Every call draws the same x, so that processes agree; the images differ from batch to batch.

    Returns α (A, P). Cost: O(A P²) time a round. For more than some 1,000 negatives the step is too long.
    """
    drawn = torch.Generator().manual_seed(0)
    alpha = machines.clip(torch.randn(machines.own.shape[0], len(machines.K), generator=drawn).to(machines.K))
    ahead, t = alpha, torch.rand((), generator=drawn).item()
    negatives = alpha.numel() - machines.own.numel()
    for _ in range(rounds):
        step = machines.clip(ahead - 1e-3 * machines.gradient(ahead))
        t_next = (math.sqrt(t**4 + 4 * t * t) - t * t) / 2
        ahead, t = step + t * (1 - t) / (t * t + t_next) * (step - alpha), t_next
        change, alpha = ((step - alpha).abs() / (alpha + 1e-7)).sum() / negatives, step
        if bool(change < 0.01):
            break
    return alpha


def arrived(machines: SVMs, alpha: Tensor, tolerance: float) -> bool:
    """Whether all residuals are at most the tolerance; a residual of NaN counts as small."""
    return not bool((machines.residual(alpha) > tolerance).any())


def nearest(
    target: Tensor, a: Tensor, theta: Tensor, curvature: Tensor, C: float, near: float
) -> tuple[Tensor, Tensor]:
    """x (A, P) that minimises λ/2 ‖x − target‖² + ½ (aᵀx)² over 0 ≤ x ≤ C, and θ = aᵀx (A, 1).

    λ is `curvature`. x = clip(target − θ a / λ), so θ is the root of aᵀx − θ. This function falls by at least
    1 when θ grows by 1, so its value bounds the distance to the root. Newton's method starts at `theta`. It
    makes one more step after the relative error is at most `near`. Every fourth guess is the middle of the
    interval that holds the root, because Newton's guesses alone could cycle.
    """
    low, high = torch.full_like(theta, -torch.inf), torch.full_like(theta, torch.inf)
    along = a / curvature
    squares = a * along
    for guess in range(1, GUESSES + 1):
        inside = torch.addcmul(target, along, theta, value=-1)
        x = inside.clamp(0, C)
        off = dot(a, x) - theta
        far = off.abs() > near * theta.abs()  # false for NaN
        low, high = low.maximum(theta + off.clamp(max=0)), high.minimum(theta + off.clamp(min=0))
        newton = theta + off / (1 + dot(x.eq_(inside), squares))
        theta = newton.clamp(low, high) if guess % 4 else (low + high) / 2
        if not bool(far.any()):
            break
    return torch.addcmul(target, along, theta, value=-1).clamp_(0, C), theta


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product of each row of x with the same row of y, (A, 1)."""
    return torch.linalg.vecdot(x, y).unsqueeze(1)


def block_pivoting(machines: SVMs, rounds: int = 1000) -> tuple[Tensor, Tensor]:
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
            some = machines.only(again)
            alpha = projected_gradient(some, near_0, steps, descended[again])
            solved[again] = descended[again] = alpha
            free[stuck], at_C[stuck] = (alpha > 0) & (alpha < C), alpha >= C
            fewest[stuck], patience[stuck] = P + 1, PATIENCE
            helped[stuck] += 1
            count[stuck] = (some.residual(alpha) > EXACT * some.rounding(alpha).squeeze(1)).to(count.dtype)
        state = (left, free, at_C, fewest, patience, helped)
        left, free, at_C, fewest, patience, helped = (x[count > 0] for x in state)
    return solved, left


def violations(machines: SVMs, alpha: Tensor, free: Tensor, at_C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Masks (A, P) of the wrong α: all, the free ones above C, those at a bound that should be free."""
    gradient, slack = machines.gradient(alpha), SLACK * machines.rounding(alpha)
    size = SLACK * torch.finfo(alpha.dtype).eps * alpha.abs().amax(1, keepdim=True)
    below, above = free & (alpha < -size), free & (alpha > machines.C + size)
    freed = (at_C & (gradient > slack)) | (~(at_C | free) & (gradient < -slack))
    return below | above | freed, above, freed


def free_solution(machines: SVMs, free: Tensor, at_C: Tensor) -> Tensor:
    """α (A, P) with gradient 0 at the mask `free` (A, P), C at the mask `at_C` and 0 elsewhere.

    SVMs are sorted by the number of their unknowns and solved in blocks of similar size, padded to the
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
