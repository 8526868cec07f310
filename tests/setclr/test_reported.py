"""What people reported of other projects, tried here: the right value, or a sentence that says what to do.

Labels, second derivatives, sums and settings of losses are tried in the files about losses.
"""

import copy
import errno
import random

import numpy as np
import pytest
import torch
from conftest import shifted
from small_runs import FEW, killed_at, same
from torch import nn

from setclr import models, views
from setclr.cli import ended, main
from setclr.data import ImageSet
from setclr.data.writing import replacing
from setclr.evaluation import features, knn, linear_probe, retrieval_at_1
from setclr.evaluation.svm import svm_accuracy, svm_held_out
from setclr.experiments.kinds.image import check_classes
from setclr.losses import InfoNCE, LinearAssignment, learnable
from setclr.training import ImageViews, Machine, Trainer
from setclr.training.checkpoint import CHECKPOINT, read
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache

CPU = torch.device("cpu")


def net(channels: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, 8, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def then(act) -> nn.Module:
    """What a user does to features."""
    made = nn.Identity()
    made.forward = act
    return made


def around(act) -> nn.Sequential:
    return net().append(then(act))


def trainer(encoder, width=8, compiled: bool | str = False, epochs=1, source=None, **machine) -> Trainer:
    """Of two steps an epoch, with the same head each time."""
    torch.manual_seed(0)
    source = source or ImageViews(FEW, views.preset("simclr"))
    more = dict(epochs=epochs, batch=35, device=Machine("cpu", "float32", compiled=compiled, **machine))
    return Trainer(source, encoder, models.head(width, 16, 8), InfoNCE(0.2), **more)


# Chunks and randomness

RANDOM = {
    "none": nn.Identity(), "dropout": nn.Dropout(0.5), "numpy": then(lambda x: x * np.random.rand()),
    "python": then(lambda x: x + random.random() * x.roll(1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("chunk", [4, 3])
def test_an_encoder_that_draws_draws_the_same_for_the_gradient_of_a_chunk(name, chunk):
    """The oracle is one graph through the same chunks, with the generators in the same states."""
    x = torch.rand(2, 8, 3, 8, 8, generator=shifted(1))
    first = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Tanh(), RANDOM[name]).train()
    its_head, loss, found = nn.Linear(16, 8), InfoNCE(0.2), []
    for whole in (True, False):
        encoder = copy.deepcopy(first)
        torch.manual_seed(3)
        np.random.seed(4)
        random.seed(5)
        if whole:
            parts = [encoder(part.flatten(0, 1)).unflatten(0, (2, -1)) for part in x.split(chunk, 1)]
            value = loss(its_head(torch.cat(parts, 1)))
            value.backward()
        else:
            value = GradCache(encoder, its_head, Precision("float32", CPU), chunk).backward([x], loss)
        after = torch.rand(1).item(), np.random.rand(), random.random()
        found.append((value.item(), torch.cat([p.grad.flatten() for p in encoder.parameters()]), after))
    (value, right, after), (got, gradient, its) = found
    assert value == pytest.approx(got, rel=1e-5) and after == its
    assert (gradient - right).norm() < 1e-5 * right.norm()


@pytest.mark.parametrize("name", ["dropout", "numpy", "python"])
@pytest.mark.parametrize("chunk", [None, 18])
def test_a_run_whose_encoder_draws_resumes_to_the_bit(name, chunk, tmp_path):
    first = net().append(RANDOM[name])
    whole, killed, again = (trainer(copy.deepcopy(first), epochs=3, chunk=chunk) for _ in range(3))
    before = np.random.get_state()[1].copy(), random.getstate()
    whole.fit()
    assert (before[0] == np.random.get_state()[1]).all() and before[1] == random.getstate()
    killed_at(3, lambda: killed.fit(tmp_path))
    np.random.rand(7), random.random()  # what others draw meanwhile does not matter
    again.fit(tmp_path)
    assert same(again, whole)


# Buffers that are infinite on purpose

BUFFERS = {
    "causal mask": torch.full((4, 4), -torch.inf).triu(1), "best so far": torch.tensor(torch.inf),
    "unset prototypes": torch.full((2, 2), torch.nan),
}  # fmt: skip


@pytest.mark.parametrize("name", BUFFERS)
def test_what_was_infinite_from_the_start_may_stay_so(tmp_path, name):
    for _ in range(2):  # the second goes on from what the first wrote
        encoder = net()
        encoder.register_buffer("kept", BUFFERS[name].clone())
        assert len(trainer(encoder).fit(tmp_path)) == 1
    kept = read(tmp_path / CHECKPOINT)["encoder"]["kept"]
    torch.testing.assert_close(kept, BUFFERS[name], equal_nan=True)


# Encoders of any kind


REFUSED = [  # what an encoder does to its features, and the message
    (lambda x: (x, x), r"encoder must give .*features \(N, D\) for N = \d+ inputs, got a tuple; nn.Flatten"),
    (lambda x: x[:, None].expand(-1, 4, -1), r"got torch.float32 \(\d+, 4, 8\); nn.Flatten\(\)"),
    (lambda x: x[::2], r"for N = \d+ inputs, got torch.float32 \(\d+, 8\); nn"),
    (lambda x: x.long(), r"encoder must give one floating tensor .*got torch.int64 \("),
    (lambda x: x.detach(), "encoder must give features with a gradient, got some without; do not"),
]


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("act, message", REFUSED)
def test_features_of_another_form_are_refused_in_one_sentence(act, message, chunk):
    with pytest.raises(ValueError, match=message):
        trainer(around(act), chunk=chunk).fit()
    if "gradient" not in message:
        with pytest.raises(ValueError, match="encoder must give one floating tensor of features"):
            features(around(act), FEW.images)


def test_everything_works_where_the_default_is_float64():
    torch.set_default_dtype(torch.float64)
    try:
        one = trainer(net())
        assert len(one.fit()) == 1 and one.encoder[0].weight.dtype == torch.float64
        found = features(one.encoder, FEW.images)
        assert found.dtype == torch.float32
        assert knn(found, FEW.labels, found, k=1).shape == linear_probe(found, FEW.labels, found, 1).shape
    finally:
        torch.set_default_dtype(torch.float32)


# Labels that are missing, and sets of one class

X = torch.randn(40, 5, generator=shifted(0))
ONE, SOME = torch.zeros(40, dtype=torch.long), torch.arange(40) % 4
MEASURES = {
    "knn": lambda y: knn(X, y, X, k=3), "linear_probe": lambda y: linear_probe(X, y, X, epochs=1),
    "retrieval_at_1": lambda y: retrieval_at_1(X, y), "svm": lambda y: svm_accuracy(X, y, folds=2),
    "svm_held_out": lambda y: svm_held_out(X, y, X, y),
    "evaluate": lambda y: check_classes(*[ImageSet(torch.zeros(40, 3, 8, 8).byte(), y, tuple("abcd"))] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURES)
def test_no_measure_takes_one_class_or_missing_labels(name):
    MEASURES[name](SOME)
    with pytest.raises(ValueError, match="must be of at least 2 classes, got 0 alone"):
        MEASURES[name](ONE)
    with pytest.raises(ValueError, match="must be >= 0, got 10 of 40 without a label .-1.; leave these out"):
        MEASURES[name](torch.where(SOME == 0, -1, SOME))


# Tensors that have no values, or hardly any, and derivatives


@pytest.mark.parametrize("z, message", [
    (torch.zeros(2, 4, 3, device="meta"), "z must have values, got a tensor on the meta device"),
    (torch.nested.nested_tensor([X[:4], X[4:8]]), "z must be a floating tensor .* got a nested tensor"),
    (3e-6 * X.view(2, 20, 5).half(), r"z\[0, 0\] .* too short for a gradient in torch.float16"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_embeddings_that_no_loss_can_read_are_refused(z, message):
    with pytest.raises(ValueError, match=message):
        InfoNCE(0.1)(z)


def test_a_learnt_temperature_goes_through_torch_func():
    z, loss = X.view(2, 20, 5).double(), InfoNCE(learnable(0.1)).double()
    leaf = z.clone().requires_grad_()
    loss(leaf).backward()
    torch.testing.assert_close(torch.func.grad(loss)(z), leaf.grad)


def test_an_assignment_that_reads_values_says_so_within_vmap():
    with pytest.raises(ValueError, match="cost must have values to read, got a tensor within vmap"):
        torch.func.vmap(LinearAssignment())(X.view(2, 2, 10, 5))


# Files


@pytest.mark.parametrize("words", [
    ["data", "folder:"], ["pretrain", "photo-infonce", "--out", ""], ["pretrain", "photo-infonce", "--out="],
    ["pretrain", "photo-infonce", "--data", "folder:", "--out", "run"], ["export", ""],
])  # fmt: skip
def test_an_empty_path_is_refused_and_nothing_is_written(words, tmp_path, monkeypatch):
    """As of a variable of the shell that is not set; it would be the present folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="a value must be given .*got nothing; is a variable"):
        main(words)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole_or_not_at_all_and_a_full_disk_names_it(tmp_path):
    path = tmp_path / "deep" / "file"
    with replacing(path) as file:
        file.write(b"first")
    with pytest.raises(OSError) as caught, replacing(path) as file:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(path) in str(ended(caught.value, []))
    assert path.read_bytes() == b"first" and [p.name for p in path.parent.iterdir()] == ["file"]
    with pytest.raises(OSError, match="is a folder; name a file in it"), replacing(tmp_path):
        pass
