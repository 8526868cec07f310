"""The table for users of other libraries in site/text/library.md: each row against its program or formula."""

import re
from pathlib import Path

import pytest
import torch
from pytorch_metric_learning.losses import CrossBatchMemory, NTXentLoss, SupConLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner, MultiSimilarityMiner
from pytorch_metric_learning.reducers import MeanReducer
from torch.nn.functional import cross_entropy, normalize

import setclr

TEXT = (Path(__file__).parents[3] / "site/text/library.md").read_text()
TABLE = TEXT.split("## Coming from another library")[1].split("##")[0]
ROWS = dict(re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", TABLE, re.MULTILINE))
N, E, Q = 6, 5, 9
FIRST = torch.zeros(N, dtype=torch.int64)


def some():
    """The names that the table uses: unit vectors, labels of two images each, a queue, a miner."""
    generator = torch.Generator().manual_seed(0)
    z1, z2, q, k, x, queue, r = (
        normalize(torch.randn(n, E, generator=generator, dtype=torch.float64), dim=1)
        for n in (N, N, N, N, N, Q, Q)
    )
    y, yr = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 3])
    miner = MultiSimilarityMiner(epsilon=2.0)  # every pair
    return dict(z1=z1, z2=z2, q=q, k=k, x=x, y=y, r=r, yr=yr, queue=queue, miner=miner,
                features=torch.stack([z1, z2], dim=1))  # fmt: skip


def nt_xent(at, temperature):
    """Cross-entropy of each of the 2N points over all others, its partner the right one."""
    z = torch.cat([at["z1"], at["z2"]])
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    return cross_entropy(logits, (torch.arange(2 * N) + N) % (2 * N))


def moco(at):
    near = (at["q"] * at["k"]).sum(1, keepdim=True)
    return cross_entropy(torch.cat([near, at["q"] @ at["queue"].T], dim=1) / 0.2, FIRST)


def decoupled(at):
    """Both directions: the partner's similarity against the sum over all other images of both views."""
    found = []
    for a, b in ((at["z1"], at["z2"]), (at["z2"], at["z1"])):
        others = torch.cat([a @ a.T, a @ b.T], dim=1) / 0.1
        others[:, :N].fill_diagonal_(-torch.inf)
        others[:, N:].fill_diagonal_(-torch.inf)
        found.append((others.logsumexp(1) - (a * b).sum(1) / 0.1).mean())
    return sum(found) / 2


def clip(at):
    logits = at["z1"] @ at["z2"].T / 0.07
    return (cross_entropy(logits, torch.arange(N)) + cross_entropy(logits.T, torch.arange(N))) / 2


def cross_batch(at):
    """It takes the batch into its memory before it compares."""
    memory = CrossBatchMemory(SupConLoss(0.1), E, memory_size=N + Q)
    memory.embedding_memory = memory.embedding_memory.double()
    memory(at["r"], at["yr"])
    return memory(at["x"], at["y"])


def sup_contrast(at):
    """The mean log-probability of an anchor's class, written out."""
    z, y = at["features"].transpose(0, 1).flatten(0, 1), at["y"].repeat(2)
    values = []
    for a in range(2 * N):
        rest = torch.arange(2 * N) != a
        log_p = z @ z[a] / 0.07 - (z[rest] @ z[a] / 0.07).logsumexp(0)
        values.append(-log_p[rest & (y == y[a])].mean())
    return torch.stack(values).mean()


WANTED = {
    "NTXentLoss(0.5)(z1, z2)": lambda at: nt_xent(at, 0.5),
    "NTXentLoss(0.5, gather_distributed=True)(z1, z2)": lambda at: nt_xent(at, 0.5),
    "NTXentLoss(0.2, memory_bank_size=(Q, E))(q, k)": moco,
    "DCLLoss(0.1)(z1, z2)": decoupled,
    "NTXentLoss(0.5)(x, y)": lambda at: NTXentLoss(0.5)(at["x"], at["y"]),
    "SupConLoss(0.1)(x, y)": lambda at: SupConLoss(0.1)(at["x"], at["y"]),
    "SupConLoss(0.1)(x, y, ref_emb=r, ref_labels=yr)": lambda at: SupConLoss(0.1)(
        at["x"], at["y"], ref_emb=at["r"], ref_labels=at["yr"]
    ),
    "SupConLoss(0.1)(x, y, miner(x, y))": lambda at: SupConLoss(0.1)(
        at["x"], at["y"], at["miner"](at["x"], at["y"])
    ),
    "CrossBatchMemory(SupConLoss(0.1), E, Q)(x, y)": cross_batch,
    "TripletMarginLoss(0.5)(x, y, BatchHardMiner()(x, y))": lambda at: TripletMarginLoss(
        0.5, reducer=MeanReducer()
    )(at["x"], at["y"], BatchHardMiner()(at["x"], at["y"])),
    "simclr_loss_func(torch.cat([z1, z2]), indexes, 0.2)": lambda at: nt_xent(at, 0.2),
    "moco_loss_func(q, k, queue.T, 0.2)": moco,
    "mocov3_loss_func(q, k, 0.2)": lambda at: (
        2 * 0.2 * cross_entropy(at["q"] @ at["k"].T / 0.2, torch.arange(N))
    ),
    "ClipLoss()(z1, z2, 1 / 0.07)": clip,
    "nn.Parameter(torch.tensor(1 / 0.07).log())": clip,
    "SupConLoss(0.07, base_temperature=0.07)(features, y)": sup_contrast,
}


def test_every_row_of_the_table_is_tested():
    assert set(ROWS) == set(WANTED) and len(ROWS) == TABLE.count("\n| `")


@pytest.mark.parametrize("theirs", WANTED)
def test_what_one_writes_here_gives_the_same_number(theirs):
    at = some()
    ours = eval(ROWS[theirs], {name: getattr(setclr, name) for name in setclr.__all__} | at)
    torch.testing.assert_close(ours.double(), WANTED[theirs](at), rtol=1e-6, atol=0)
