"""The table for users of other libraries in site/text/library.md: each row against its program or formula."""

import re
from pathlib import Path

import pytest
import torch
from every_loss import of_one_image
from pytorch_metric_learning import losses, miners
from pytorch_metric_learning.reducers import MeanReducer
from torch.nn.functional import cross_entropy, logsigmoid, normalize

import setclr

TEXT = (Path(__file__).parents[3] / "site/text/library.md").read_text()
TABLE = TEXT.split("## Coming from another library")[1].split("##")[0]
ROWS = dict(re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", TABLE, re.MULTILINE))
N, E, Q = 6, 5, 9


def some():
    """The names that the table uses: unit vectors, labels of two images each, a queue, all pairs."""
    generator, sizes = torch.Generator().manual_seed(0), dict.fromkeys(["z1", "z2", "q", "k", "x"], N)
    at = {
        name: normalize(torch.randn(n, E, generator=generator, dtype=torch.float64), dim=1)
        for name, n in (sizes | {"queue": Q, "r": Q}).items()
    }
    at |= {"y": torch.tensor([0, 1, 2, 0, 1, 2]), "yr": torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 3])}
    both = torch.stack([at["z1"], at["z2"]], dim=1)
    return at | {"miner": miners.MultiSimilarityMiner(epsilon=2.0), "features": both}


def nt_xent(temperature):
    """Each of two views of an image is the other's positive."""
    return lambda z1, z2, **_: losses.NTXentLoss(temperature)(torch.cat([z1, z2]), torch.arange(N).repeat(2))


def moco(q, k, queue, **_):
    near = (q * k).sum(1, keepdim=True)
    return cross_entropy(torch.cat([near, q @ queue.T], dim=1) / 0.2, torch.zeros(N, dtype=torch.int64))


def decoupled(z1, z2, **_):
    """The partner's similarity against the sum over all other images of both views."""
    z = torch.cat([z1, z2])
    s = z @ z.T / 0.1
    return (s.masked_fill(of_one_image(2, N), -torch.inf).logsumexp(1) - s.diagonal(N).repeat(2)).mean()


def clip(z1, z2, **_):
    logits = z1 @ z2.T / 0.07
    return (cross_entropy(logits, torch.arange(N)) + cross_entropy(logits.T, torch.arange(N))) / 2


def siglip(z1, z2, **_):
    pairs = (2 * torch.eye(N) - 1) * (10 * z1 @ z2.T - 10)
    return -logsigmoid(pairs).sum() / N


def cross_batch(x, y, r, yr, **_):
    """It takes the batch into its memory before it compares."""
    memory = losses.CrossBatchMemory(losses.SupConLoss(0.1), E, memory_size=N + Q)
    memory.embedding_memory = memory.embedding_memory.double()
    memory(r, yr)
    return memory(x, y)


def triplets(x, y, **_):
    return losses.TripletMarginLoss(0.5, reducer=MeanReducer())(x, y, miners.BatchHardMiner()(x, y))


AS_THEY_STAND = ["NTXentLoss(0.5)(x, y)", "SupConLoss(0.1)(x, y)", "SupConLoss(0.1)(x, y, miner(x, y))",
                 "SupConLoss(0.1)(x, y, ref_emb=r, ref_labels=yr)"]  # fmt: skip
WANTED = {row: lambda row=row, **at: eval(row, vars(losses) | at) for row in AS_THEY_STAND} | {
    "NTXentLoss(0.5)(z1, z2)": nt_xent(0.5),
    "NTXentLoss(0.5, gather_distributed=True)(z1, z2)": nt_xent(0.5),
    "NTXentLoss(0.2, memory_bank_size=(Q, E))(q, k)": moco,
    "DCLLoss(0.1)(z1, z2)": decoupled,
    "CrossBatchMemory(SupConLoss(0.1), E, Q)(x, y)": cross_batch,
    "TripletMarginLoss(0.5)(x, y, BatchHardMiner()(x, y))": triplets,
    "simclr_loss_func(torch.cat([z1, z2]), indexes, 0.2)": nt_xent(0.2),
    "moco_loss_func(q, k, queue.T, 0.2)": moco,
    "mocov3_loss_func(q, k, 0.2)": lambda q, k, **_: 0.4 * cross_entropy(q @ k.T / 0.2, torch.arange(N)),
    "ClipLoss()(z1, z2, 1 / 0.07)": clip,
    "nn.Parameter(torch.tensor(1 / 0.07).log())": clip,
    "SigLipLoss()(z1, z2, torch.tensor(10.0), torch.tensor(-10.0))": siglip,
    "SupConLoss(0.07, base_temperature=0.07)(features, y)": lambda features, y, **_: losses.SupConLoss(0.07)(
        features.flatten(0, 1), y.repeat_interleave(2)),
}  # fmt: skip


def test_every_row_of_the_table_is_tested():
    assert set(ROWS) == set(WANTED) and len(ROWS) == TABLE.count("\n| `")


@pytest.mark.parametrize("theirs", WANTED)
def test_what_one_writes_here_gives_the_same_number(theirs):
    at = some()
    ours = eval(ROWS[theirs], {name: getattr(setclr, name) for name in setclr.__all__} | at)
    torch.testing.assert_close(ours.double(), WANTED[theirs](**at), rtol=1e-6, atol=0)
