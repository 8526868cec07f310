"""What is given wrong to a recipe: a ValueError names the field, what it got, and what to do."""

import math
import re
from dataclasses import fields

import pytest

from setclr.recipes import GraphRecipe, ImageRecipe, VideoRecipe

NO_TEXT = [None, 3, ["InfoNCE()"]]
NO_NAME = ["", "nonsense", 1, None]
NO_BOOLEAN = [0, 1, None, "yes"]
NO_POSITIVE_NUMBER = [0, -1.0, math.nan, math.inf, "0.1", None, True]
NO_NUMBER_FROM_ZERO = [-1, math.nan, math.inf, "0.1", None, True]
NO_SHARE = [*NO_NUMBER_FROM_ZERO, 1.5]
NO_INTEGER_FROM_0 = [-1, 1.5, "1", True, math.nan, 2**64]
NO_INTEGER_FROM_1 = [0, *NO_INTEGER_FROM_0]
NO_INTEGER_FROM_2 = [1, *NO_INTEGER_FROM_1]
NO_SIDE = [4, 2**31, *NO_INTEGER_FROM_1]
WRONG = {
    **dict.fromkeys(["loss", "data", "encoder", "init", "loss_schedule"], NO_TEXT),
    **dict.fromkeys(["optimiser", "schedule", "key_schedule", "precision", "views", "initial", "normalised",
                     "activation", "modality", "first", "second"], NO_NAME),
    **dict.fromkeys(["labels", "last_norm", "drop_last"], NO_BOOLEAN),
    **dict.fromkeys(["images_per_class", "layers", "hidden", "embedding", "frames", "stride", "width"],
                    NO_INTEGER_FROM_1),
    **dict.fromkeys(["epochs", "seed", "queue", "local_views", "predictor"], NO_INTEGER_FROM_0),
    **dict.fromkeys(["batch", "chunk", "images"], NO_INTEGER_FROM_2),
    **dict.fromkeys(["size", "view_size", "local_size"], NO_SIDE),
    "lr_batch": NO_INTEGER_FROM_1, "full_views": [*NO_INTEGER_FROM_1, 5], "lr": NO_POSITIVE_NUMBER,
    "weight_decay": NO_NUMBER_FROM_ZERO, "warmup": NO_NUMBER_FROM_ZERO, "momentum": NO_SHARE,
    "flip": NO_SHARE, "ratio": NO_SHARE, "key_momentum": [x for x in NO_SHARE if x is not None],
}  # fmt: skip
KINDS = (ImageRecipe, GraphRecipe, VideoRecipe)


@pytest.mark.parametrize("kind, name", [(kind, field.name) for kind in KINDS for field in fields(kind)])
def test_every_field_of_every_recipe(kind, name):
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=rf"(?s)^{name} must .*got {re.escape(repr(value))}"):
            kind(**{"loss": "InfoNCE()"} | {name: value})


@pytest.mark.parametrize("change, message", [
    ({"loss": "Rotation(4)"}, "Rotation"),
    ({"loss": "Supervised() + QARe()"}, "losses are added"),
    ({"encoder": "resnet34"}, "encoder must be one of .*did you mean 'resnet32'.*timm:NAME takes any"),
    ({"encoder": "timm:resnet81"}, r"did you mean 'timm:resnet18' .*; timm.list_models\(\) lists them"),
    ({"batch": 16, "images_per_class": 3}, "batch must be a multiple of images_per_class=3, got 16"),
    ({"layers": 64, "hidden": 2**16}, r"at most 1e\+09 weights, got layers=64, hidden=65536 .*make one"),
    ({"queue": 10**7, "key_momentum": 0.9, "embedding": 2**16},
     r"queue must hold at most 1e\+09 numbers, got queue=10000000 and embedding=65536.*make one"),
    ({"queue": 40}, "queue must be 0 without a momentum encoder, got 40; key_momentum=0.999"),
    ({"predictor": 2}, "predictor must be 0 without a momentum"),
    ({"loss": "GroCo()", "key_momentum": 0.9, "queue": 40},
     r"queue must not be set with GroCo\(\); Triplet, InfoNCE,.* take memory"),
    ({"loss": "SparseCLR()", "key_momentum": 0.9}, "key_momentum must not be set with SparseCLR.*GroCo"),
    ({"loss": "SupCon()"}, "labels must be True for SupCon.*without labels take InfoNCE"),
    ({"loss": "InfoNCE() + SupCon()"}, "labels must be True for .*; without labels take InfoNCE"),
    ({"loss": "QARe()", "labels": True}, "labels must be False for QARe.*takes no labels"),
    ({"loss": "Supervised()", "full_views": 2}, r"full_views must be 1 with Supervised\(\).* got 2"),
    ({"loss": "Supervised()", "full_views": 1, "local_views": 2}, "got 1 and 2 local ones"),
    ({"loss": "Supervised()", "full_views": 1, "key_momentum": 0.9}, "key_momentum must not be set with"),
    ({"full_views": 1}, "full_views must be 2 to 4 with InfoNCE"),
    ({"loss_schedule": "beta: 3"}, "must be one of .*'temperature'.*got 'beta'"),
    ({"loss": "MMCL()", "loss_schedule": "bandwith: 3"},
     "must be one of .*did you mean 'bandwidth'.*MMCL.* has no others"),
    ({"loss": "MMCL()", "loss_schedule": "bandwidth: 3, 0 from 8"},
     "at epoch 8: bandwidth must be > 0, got 0"),
    ({"loss": "InfoNCE(temperature=learnable(0.2))", "loss_schedule": "temperature: 0.5, 0.1 from 1"},
     "loss_schedule names 'temperature', which .* learns; give it a num"),
    ({"kind": VideoRecipe, "encoder": "conv4"}, "conv4-clips"),
    ({"kind": VideoRecipe, "encoder": "s3d", "frames": 4, "size": 64}, "frames must be .*s3d halves them"),
    ({"kind": VideoRecipe, "encoder": "s3d", "frames": 16, "size": 24}, "size must be"),
    ({"kind": VideoRecipe, "loss": "Rotation()"}, "loss must contrast views"),
    ({"kind": VideoRecipe, "loss": "MMCL()", "key_momentum": 0.9}, "key_momentum must not be set with MMCL"),
    ({"kind": GraphRecipe, "loss": "Supervised()"}, "loss must contrast views"),
    ({"kind": GraphRecipe, "data": "mutog"}, "did you mean 'mutag'"),
])  # fmt: skip
def test_fields_that_do_not_fit_together(change, message):
    given = {"kind": ImageRecipe, "loss": "InfoNCE()"} | change
    kind = given.pop("kind")
    with pytest.raises(ValueError, match=message):
        kind(**given)
