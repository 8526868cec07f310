"""An encoder's weights: into a run from files that many programs write, and out of it with what they are."""

import os
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

import setclr
from setclr.data.downloads import downloading
from setclr.data.writing import replacing
from setclr.extras import extra
from setclr.models import NORMALISED
from setclr.training import checkpoint

INSIDE = ("state_dict", "model", "model_state_dict", "encoder")  # where files keep what is a state dict
MOCO = "vit-small16-moco"


def initialise(encoder: nn.Module, where: str) -> None:
    """Give the encoder the weights of a run, from its folder, or those in a file.

    `where` is also a file of `export`; a state dict as torchvision, timm, MoCo, Lightning or safetensors
    write it; or "timm:NAME" or "torchvision:NAME", whose pretrained weights are downloaded. A prefix of all
    names, such as "module.encoder_q.", is taken away. A warning names what the encoder has no place for,
    such as a classifier. No code in a file is run.

    Raises FileNotFoundError if there is nothing there; ValueError if a file is something else, or a weight is
    missing or of another shape, with its name; ConnectionError if weights cannot be downloaded.
    """
    path, state = found(where)
    own = encoder.state_dict()
    prefixes = {given.removesuffix(name) for name in own for given in state if given.endswith(name)}

    def fits(prefix: str) -> tuple[int, bool]:
        same = (getattr(state.get(prefix + name), "shape", None) == x.shape for name, x in own.items())
        return sum(same), "encoder_q" in prefix  # a file of MoCo has two encoders

    best = max(sorted(prefixes), key=fits, default="")
    remedy = "give the folder of a run of this encoder, or a file with its weights"
    learnt, fitting = {name for name, _ in encoder.named_parameters()}, {}
    for name, x in own.items():
        given = state.pop(best + name, None)
        alike = getattr(given, "shape", None) == x.shape
        if not alike and (name in learnt or "running" in name):  # others are counts, or computed
            got = f"no {name}" if given is None else f"{name} of shape {tuple(given.shape)}"
            wanted = f"the encoder's {name} of shape {tuple(x.shape)}"
            raise ValueError(f"init: {path} must have {wanted}, got {got}; {remedy}")
        fitting[name] = given if alike else x
    checkpoint.load({"encoder": encoder}, {"encoder": fitting}, f"init: {path}", remedy)
    if state:
        said = f"{len(state)} entries are not the encoder's: {', '.join(map(str, state))}"
        warnings.warn(f"init: {path}: {said:.200}", stacklevel=2)


def found(where: str) -> tuple[str | Path, dict[str, Any]]:
    """The place of weights, and these by name. Raises as `initialise` does."""
    zoo, _, name = where.partition(":")
    if name and zoo in ("timm", "torchvision"):
        with extra("encoders"), downloading(f"init: the weights of {where} are not there,", "give a file"):
            if zoo == "timm":
                import timm

                return where, timm.create_model(name, pretrained=True).state_dict()
            from torchvision.models import get_model

            return where, get_model(name, weights="DEFAULT").state_dict()
    path = Path(os.path.expanduser(where))
    if path.suffix == ".safetensors" and path.is_file():
        with extra("encoders"):
            from safetensors.torch import load_file
        try:
            return path, load_file(path)
        except Exception as error:
            raise ValueError(f"init: {path} is no safetensors file ({error}); give another") from error
    path, state = checkpoint.loaded(path)
    if set(state) >= checkpoint.LEARNT:
        return path, dict((state.get("best") or state)["encoder"])
    while inside := next((state[key] for key in INSIDE if isinstance(state.get(key), dict)), None):
        state = inside
    return path, dict(state)


def export(run: Any, path: str | Path) -> str:
    """Write the encoder's weights to a file for torch.load, with what they are; returns the lines of Python
    that load them and give features of `x`.

    The file holds a dict: "state_dict", on the CPU, with the names of torchvision or timm where the encoder
    is one of theirs; "encoder", the lines that make one; "side" of the images in pixels, if it is known;
    "normalised"; and "setclr", the version. Images go in as floats in [0, 1], as in training.

    Raises OSError if the file cannot be written; an older file then stays.
    """
    side, how = getattr(run.recipe, "side", None), getattr(run.recipe, "normalised", "none")
    state = {key: x.detach().cpu().contiguous() for key, x in run.encoder.state_dict().items()}
    if getattr(run.recipe, "encoder", "") == MOCO:  # its positions are computed, timm's are stored
        from setclr.models.vit import positions

        grid = (side or 224) // 16
        state["pos_embed"] = torch.cat([torch.zeros(1, 384), positions(grid, grid)])[None]
    made = elsewhere(run, side)
    about = {"encoder": made, "side": side, "normalised": how, "setclr": setclr.__version__}
    with replacing(Path(path)) as file:
        torch.save({"state_dict": state, **about}, file)
    lines = ["import torch", made, f"saved = torch.load({str(path)!r}, weights_only=True)"]
    lines += ['model.load_state_dict(saved["state_dict"])', "model.eval()"]
    if how == "image":
        lines.append("x = torch.nn.functional.instance_norm(x)")
    elif colours := NORMALISED[how]:
        mean, deviation = (f"torch.tensor({list(values)}).view(3, 1, 1)" for values in colours)
        lines.append(f"x = (x - {mean}) / {deviation}")
    return "\n".join([*lines, "features = model(x)" + f"  # images of {side} px, in [0, 1]" * bool(side)])


def elsewhere(run: Any, side: int | None) -> str:
    """The lines of Python that make the run's encoder, in torchvision, timm or plain torch."""
    recipe, name, channels = run.recipe, getattr(run.recipe, "encoder", ""), f"in_chans={run.channels}"
    kind, _, large = name.partition("-")
    if run.own or recipe is None:
        return f"model = ...  # your own {type(run.encoder).__name__}"
    if recipe.kind == "graph":
        sizes = f"{run.channels}, {recipe.width}, {recipe.layers}"
        return f"import setclr.graphs\nmodel = setclr.graphs.GIN({sizes})"
    if name.startswith("timm:"):
        any_side = ", dynamic_img_size=True" * getattr(run.encoder, "dynamic_img_size", False)
        return f'import timm\nmodel = timm.create_model("{name[5:]}", num_classes=0, {channels}{any_side})'
    if name == MOCO:
        more = f"num_classes=0, {channels}, num_heads=12, img_size={side or 224}"
        return f'import timm\nmodel = timm.create_model("vit_small_patch16_224", {more})'
    if kind in ("resnet18", "resnet50"):
        lines = f"import torchvision\nmodel = torchvision.models.{kind}()\nmodel.fc = torch.nn.Identity()\n"
        stem = "7, 2, padding=3" if large else "3, padding=1"
        lines += f"model.conv1 = torch.nn.Conv2d({run.channels}, 64, {stem}, bias=False)"
        return lines if large else f"{lines}\nmodel.maxpool = torch.nn.Identity()"
    make = "video.video_encoder" if recipe.kind == "video" else "models.encoder"
    return f'import setclr.{make.split(".")[0]}\nmodel = setclr.{make}("{name}", {run.channels})[0]'
