"""What is given wrong to losses, inner functions and the pieces of a loop: a ValueError names it, what it got
and what to do."""

import inspect
import math
import pickle
import re
from functools import partial

import pytest
import torch
from torch import nn

from setclr import DistributedLoss, Queue, inner, losses, update_momentum
from setclr.inner.simplex import soft_maximum, sparse_maximum
from setclr.losses import LOSSES, GroCo, InfoNCE, LinearAssignment, QARe
from setclr.recipes import GraphRecipe, ImageRecipe, VideoRecipe
from setclr.settings import Setting, settings_of
from setclr.training import Batching, Keys, LRSchedule, Machine
from setclr.training.optimisers import LARS
from setclr.views import View
from setclr_course.papers.supervised import Supervised

nan, inf = math.nan, math.inf
NO_NUMBER = [nan, -inf, "0.5", None, True, [1.0]]
NO_POSITIVE_NUMBER = [0, -1.0, inf, torch.ones(2), *NO_NUMBER]
NO_NUMBER_FROM_ZERO = [-1e-9, inf, *NO_NUMBER]
NO_INTEGER_FROM_1 = [0, 1.5, 2.0, "1", True, nan, [1]]
NO_NAME = ["", "nonsense", 1, True]
NO_TENSOR = [None, [[1.0, 2.0]], "K"]
OF_OTHER_KINDS = {  # by the check of a setting, what it refuses whatever the bounds
    "boolean": [0, 1, "True", 1.0],
    "choice": NO_NAME,
    "integer": [1.5, 2.0, "1", True, nan, [1]],
    "setting": [nan, -inf, "0.5", True, [1.0], torch.ones(2)],
    "_as_given": [nan, inf, "0.5", True, [1.0]],
    "_text": [3, ["InfoNCE()"]],
    "_numbers": [0.5, (0.5,), (0.5, 0.6, 1, 0, 1)],
    "_learnt": [*NO_NUMBER, inf, torch.ones(2)],
    "_temperature": [*NO_POSITIVE_NUMBER, torch.tensor(0.1), nn.Parameter(torch.tensor(0.1))],
}


def wrong_for(setting: Setting) -> list:
    """What a setting must refuse: values of other kinds, None, and those just outside its bounds."""
    steps, check = {"above": 0, "least": -1, "most": 1}, setting.check.__name__
    bounds = {name: bound for name, bound in setting.bounds.items() if isinstance(bound, int | float)}
    outside = [bound + steps[name] for name, bound in bounds.items() if name in steps]
    endless = [inf] * (check == "setting" and "infinite" not in bounds)
    return [*OF_OTHER_KINDS[check], *outside, *endless, *([] if setting.or_none else [None])]


K, x = torch.eye(3) + 0.5, torch.randn(4, 3)
NO_MATRIX = [*NO_TENSOR, torch.ones(3), torch.ones(2, 3), torch.ones(3, 3, dtype=torch.int64), K * nan]
NO_ROWS = [*NO_TENSOR, torch.tensor(1.0), torch.ones(2, 0), torch.arange(3), x.half()]
OF_NUMBERS_AND_NAMES = {  # what is wrong for these arguments of inner functions
    **dict.fromkeys(["bandwidth", "ridge", "epsilon", "tolerance", "beta"], NO_POSITIVE_NUMBER),
    **dict.fromkeys(["kind", "solver", "mining"], [*NO_NAME, None]),
    "C": [x for x in NO_POSITIVE_NUMBER if x is not inf],
    "offset": [0.5, inf, *NO_NUMBER],
    "temperature": NO_NUMBER_FROM_ZERO,
    "iterations": [*NO_INTEGER_FROM_1, 10**9],
    "rounds": [*NO_INTEGER_FROM_1, 10**9, None],
    "top": [*NO_INTEGER_FROM_1, None, 4],
}
WRONG_IN_AN_INNER_FUNCTION = {  # right arguments, and which tensors are wrong
    "kernel": (
        dict(x=x, y=x),
        dict(x=[*NO_TENSOR, torch.ones(3), x.long(), x * nan],
             y=[*NO_TENSOR, torch.ones(3), torch.ones(4, 2), x.double(), x / 0]),
    ),
    "svm_dual": (
        dict(K=K, positive=0, solver="inv"),
        dict(K=[*NO_MATRIX, K.triu(), torch.ones(1, 1)],
             positive=[-1, 3, 0.5, None, "0", torch.ones(1), torch.zeros(1, 1, dtype=torch.int64)],
             own=[[[0]], *map(torch.tensor, ([0], [[1.0]], [[1]], [[0, 1, 2]], [[0, 3]], [[0, 0]]))]),
    ),
    "sinkhorn": (
        dict(cost=x, epsilon=0.5, iterations=2),
        dict(cost=[*NO_TENSOR, torch.ones(2, 0), x.long(), x * nan, x - inf,
                   x.index_fill(0, torch.tensor([1]), inf), x.index_fill(1, torch.tensor([2]), inf)],
             a=[[0.25] * 4, torch.ones(3), torch.zeros(4), torch.ones(4) * nan, torch.ones(4)],
             b=[[0.25] * 3, torch.ones(4), -torch.ones(3), torch.ones(3) * inf, torch.ones(3)]),
    ),
    "sorting_network": (dict(x=x), dict(x=[*NO_ROWS, x * nan, x / 0])),
    "top_probability": (dict(x=x, top=1), dict(x=[*NO_ROWS, x * nan, x / 0])),
    "linear_assignment": (
        dict(cost=K),
        dict(cost=[*NO_TENSOR, torch.ones(3), torch.ones(3, 2), torch.ones(0, 0), K.long(), K.bfloat16(),
                   K * nan, -K / 0, K.abs() / 0, torch.tensor([[0, inf, inf], [0, inf, inf], [0, 0, 0]])]),
    ),
    "quadratic_assignment": (
        dict(S=K, S_A=K, S_B=K),
        dict(S=[*NO_MATRIX, torch.eye(9), torch.eye(2)], S_A=[*NO_MATRIX, torch.eye(2), K.double()],
             S_B=[*NO_MATRIX, torch.eye(4)]),
    ),
    "spectral_bounds": (
        dict(F=K, D=K),
        dict(F=[*NO_MATRIX, K.triu(), torch.eye(2)], D=[*NO_MATRIX, K.triu(), torch.eye(4)]),
    ),
    "sparsemax": (dict(x=x), dict(x=[*NO_ROWS, x * nan, x - inf, x + inf])),
}  # fmt: skip


def named(name, value):
    """A message that begins with the name, alone or with the one it does not fit, and shows what it got."""
    shown = "" if isinstance(value, torch.Tensor) else rf"({re.escape(repr(value))}|{type(value).__name__})"
    alone = rf"(\w+ and )?{name}\b( and \w+)? must .*{shown}"
    enough = rf"\w+ must have the shape and dtype of {name}\b"
    return rf"(?s)^({alone}|{enough})"


RECIPES = (ImageRecipe, GraphRecipe, VideoRecipe)
OF_LOOPS = (View, Batching, Keys, LRSchedule, Machine, *RECIPES)
DECLARED = {k: k.settings for k in LOSSES} | {k: settings_of(k) for k in OF_LOOPS}


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, names in DECLARED.items() for name in names])
def test_every_setting_when_it_is_given_and_when_it_is_changed(kind, name):
    needed = {"loss": "InfoNCE()"} if kind in RECIPES else {}
    drawn, one = torch.get_rng_state(), kind(**needed)
    before = repr(one)
    for value in wrong_for(DECLARED[kind][name]):
        with pytest.raises(ValueError, match=named(name, value)):
            kind(**needed | {name: value})
        if kind in LOSSES:
            with pytest.raises(ValueError, match=named(name, value)):
                setattr(one, name, value)
    assert repr(one) == before and torch.equal(torch.get_rng_state(), drawn)


@pytest.mark.parametrize(
    "function, name", [(f, n) for f in inner.__all__ for n in inspect.signature(getattr(inner, f)).parameters]
)
def test_every_argument_of_every_inner_function(function, name):
    right, wrong = WRONG_IN_AN_INNER_FUNCTION[function]
    getattr(inner, function)(**right)
    for value in (OF_NUMBERS_AND_NAMES | wrong)[name]:
        with pytest.raises(ValueError, match=named(name, value)):
            getattr(inner, function)(**{**right, name: value})
    if isinstance(right.get(name), torch.Tensor):
        with pytest.raises(ValueError, match=f"^{name} must be a dense tensor, got torch.sparse_coo"):
            getattr(inner, function)(**{**right, name: right[name].to_sparse()})


def with_row(value):
    z = torch.randn(2, 3, 4)
    z[1, 2] = value
    return z


z, y, at = torch.randn(2, 3, 4), torch.tensor([0, 0, 1]), torch.tensor([0])
WRONG_IN_A_CALL = [  # arguments beside z, or z, and the message
    (dict(z=[[1.0]]), "z must be a floating tensor .* got list"),
    (dict(z=z[0]), r"z must be .*torch.stack.* got shape \(3, 4\)"),
    (dict(z=z[:1]), r"V >= 2 \(with keys or labels V >= 1\).* got \(1, 3, 4\)"),
    (dict(z=z[:, :1]), r"N >= 2.* got \(2, 1, 4\).*drop_last=True"),
    (dict(z=z[..., :0]), r"E >= 1.* got \(2, 3, 0\)"),
    (dict(z=with_row(nan)), r"z\[1, 2\] must be finite .* NaN or inf"),
    (dict(z=with_row(0.0)), r"z\[1, 2\] must be .* only zeros"),
    (dict(z=1e-38 * torch.ones(2, 2, 3)), r"z\[0, 0\] must be .* too short for a gradient"),
    (dict(z=z[0], other=y), r"z2 must be a second view .* got torch.int64 \(3,\).*labels=y"),
    (dict(z=z[0], keys=z[1]), r"z must be a floating tensor \(V, N, E\)"),  # not a second view
    (dict(keys=torch.ones(2, 4, 4)), r"keys must fit z of shape \(2, 3, 4\) .* got \(2, 4, 4\).*key_labels"),
    (dict(keys=z[:1]), "keys must hold two views or more beside 2 views in z, got 1"),
    (dict(memory=z), r"memory must be a floating tensor .* got shape \(2, 3, 4\)"),
    (dict(labels=[0, 1, 2]), "labels must be a tensor of N = 3 integers .* got list"),
    (dict(key_labels=y, keys=z), "key_labels must come with labels"),
    (dict(keys=z, labels=y, key_labels=y[:2]), r"key_labels must be .* N = 3 integers .* got .* \(2,\)"),
    (dict(positives=torch.ones(6, 6)), "takes a bool mask, got torch.float32; SupCon takes weights"),
    (dict(positives=torch.ones(6, 6).long()), "got torch.int64.*use positives.bool"),
    (dict(positives=(at,)), "two or four tensors of indices"),
    (dict(positives=(at, at + 6)), "indices from 0 to 5, got"),
    (dict(positives=torch.ones(6, 6).bool(), labels=y), "labels must be None where positives"),
    (dict(weight=torch.ones(2)), r"weight must be \(3,\), .* got \(2,\)"),
    *((dict(weight=torch.tensor(w)), "weight must be >= 0 and its largest entry 1e-9 to 1e9, got")
      for w in ([0.0, 0, 0], [1.0, -1, 1], [1.0, nan, 1], [1e-40] * 3, [1.0, inf, 1])),
    (dict(reduction="sum"), "reduction must be one of 'mean', 'none', got 'sum'"),
    *(({name: right.to_sparse()}, f"^{name} must be a dense tensor") for name, right in
      dict(z=z, keys=z, memory=z[0], weight=torch.ones(3), labels=torch.arange(3)).items()),
]  # fmt: skip


@pytest.mark.parametrize("given, message", WRONG_IN_A_CALL)
def test_every_argument_of_a_call(given, message):
    calls = [InfoNCE()] if {"weight", "reduction"} & set(given) else [InfoNCE(), InfoNCE().assignment]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(**{"z": z, **given})


@pytest.mark.parametrize("kind", LOSSES)
def test_every_loss_looks_at_what_it_takes_and_at_its_arguments_names(kind):
    for call in (kind(), kind().assignment) if kind().has_assignment else (kind(),):
        with pytest.raises(ValueError, match=r"z\[1, 2\] must be finite"):
            call(with_row(nan))
    for name, wrong in (("keys", with_row(nan)), ("memory", with_row(nan)[1]), ("labels", y.float())):
        if name in kind.takes:
            with pytest.raises(ValueError, match=rf"{name}(\[.*\])? must be"):
                kind()(z, **{name: wrong})
    names = ".*".join(map(repr, inspect.signature(kind).parameters))
    with pytest.raises(ValueError, match=f"{kind.__name__}'s argument must be one of {names}, got 'taw'"):
        kind(taw=1)


def soft(weights, **settings):
    losses.SupCon(**settings)(torch.randn(2, 3, 4), positives=weights)


MESSAGES = {
    "temperature must be 1e-9 to 1e9 in size, got 1e-20": lambda: InfoNCE(1e-20),
    "hardness must be 0, or 1e-9 to 1e9 in size, got": lambda: losses.HCL(hardness=1e-320),
    "weight must be at most 1e9 in size, got 1000000000000": lambda: 1e6 * (1e6 * QARe()),
    "weight must be a finite number, got nan": lambda: nan * InfoNCE(),
    "positive_views must be": lambda: setattr(pickle.loads(pickle.dumps(InfoNCE())), "positive_views", 1),
    "weight must be a number for learnable.0.2. . QARe.*, whose weight is learnt": lambda: (
        losses.learnable(0.5) * (losses.learnable(0.2) * QARe())
    ),
    "solver must be 'inv', 'pgd' or 'steps' for kernel='tanh'": lambda: losses.MMCL("tanh", solver="exact"),
    "solver must be 'inv', 'pgd' or 'steps' for K, got 'exact': .*pos": lambda: inner.svm_dual(K - 2),
    "C must be finite for K with solver 'pgd'": lambda: inner.svm_dual(K - 2, solver="pgd", C=inf),
    "z must hold at most 8 images for Lin.*, got 9": lambda: LinearAssignment(0, 1)(torch.ones(2, 9, 5)),
    "at most 8 elements, got 9 .9! = 362,880.: the": lambda: inner.linear_assignment(torch.ones(9, 9), 0.1),
    r"also must be torch.float32 of shape .*k\) .* got .*\(3,\)": lambda: sparse_maximum(x, x[0]),
    "x must hold a finite maximum in every row, got inf": lambda: soft_maximum(x + inf, 1.0),
    "z and keys must hold two views each": lambda: InfoNCE(candidates="other view")(z, z[[0, 1, 1]]),
    "keys must have the 2 views of z .* got 3": lambda: GroCo(pool="view")(z, z[[0, 1, 1]]),
    "memory must be given for InfoNCE.*holds all": lambda: InfoNCE(candidates="memory")(z),
    "labels and positives must be": lambda: losses.IOT()(z, memory=z[0], labels=y),
    "labels are named: loss": lambda: InfoNCE()(z[0], y),
    r"positives must be a mask or weights \(6, 6\) .* got \(6, 5\)": lambda: soft(torch.ones(6, 5)),
    "positives must be weights >= 0 .* the smallest weight -1": lambda: soft(1 - 2 * torch.eye(6).flip(0)),
    "positives must be weights .* rows of sum 0 or more": lambda: soft(torch.eye(6)),
    "average must be None with weights": lambda: soft(torch.ones(6, 6), average="inside"),
    "bias must be a number, where it starts, got learn": lambda: losses.SigLIP(bias=losses.learnable(0.5)),
    "labels must be 2 integers, one for each key": lambda: Queue(5, 3).add(torch.ones(2, 3), y),
    "size must be an integer >= 1, got 0": lambda: Queue(0, 3),
    r"keys must be \(n, 3\) for this queue, got \(2, 4\)": lambda: Queue(5, 3).add(torch.randn(2, 4)),
    "ema must be a copy of model, got": lambda: update_momentum(nn.Linear(2, 2), nn.Linear(2, 3), 0.9),
    "m must be >= 0 and <= 1, got 1.5": lambda: update_momentum(nn.Linear(2, 2), nn.Linear(2, 2), 1.5),
    "loss must be a loss on embeddings": lambda: DistributedLoss(nn.MSELoss()),
    **{f"{name} must be .*got {x}": partial(LARS, [nn.Parameter(torch.zeros(2))], **{"lr": 1.0} | {name: x})
       for name, x in (("lr", -1), ("momentum", 2), ("weight_decay", nan), ("trust", 0))},
}  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_say_what_to_do(message):
    with pytest.raises(ValueError, match=message):
        MESSAGES[message]()


def test_supervised_refuses_outputs_and_labels_in_words():
    labels, ones = torch.tensor([0, 1, 2]), torch.ones(1, 3, 5)
    with pytest.raises(ValueError, match="z must be finite, got NaN or inf"):
        Supervised()(ones * nan, labels)
    for wrong in (None, "x", labels.float(), labels > 0, labels[:2], labels.to("meta")):
        with pytest.raises(ValueError, match="labels must be a tensor of 3 integers on cpu, got"):
            Supervised()(ones, wrong)
    for wrong, said in ((labels + 3, "got 3 to 5"), (labels - 1, "got -1 to 1")):
        with pytest.raises(ValueError, match=said):
            Supervised()(ones, wrong)
    for outputs, wrong in ((ones.to_sparse(), labels), (ones, labels.to_sparse())):
        with pytest.raises(ValueError, match=r"^(z|labels) must be a dense tensor, got torch.sparse_coo"):
            Supervised()(outputs, wrong)
