"""All that a training needs to go on, as data, and back."""

from typing import TYPE_CHECKING

import torch

from setclr import views

if TYPE_CHECKING:
    from setclr.training.trainer import Trainer

PARTS = ("encoder", "head", "loss", "predictor", "optimiser")


def state_of(trainer: "Trainer") -> dict:
    """All that is needed to go on: plain data and tensors."""
    values = torch.stack(trainer.values).cpu() if trainer.values else torch.empty(0)
    random = {"cpu": torch.get_rng_state()}
    if trainer.device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(trainer.device)
    return {
        **trainer.about, "history": trainer.rows, "draws": views.DRAWS,
        "precision": trainer.precision.name, "compiled": trainer.compiled,
        "step": trainer.step, "values": values, "seconds": trainer.seconds, "images": len(trainer.images),
        **{name: getattr(trainer, name).state_dict() for name in PARTS},
        "scaler": trainer.precision.scaler.state_dict(),
        "keys": trainer.momentum_encoder.state() if trainer.momentum_encoder else None,
        "targets": trainer.targets.state() if trainer.targets else None, "random": random,
    }  # fmt: skip


def restore(trainer: "Trainer", state: dict, where: str) -> None:
    """Go on from a checkpoint. Raises ValueError if it lacks the optimiser, or was made on other data, with
    other draws, in another precision or of another trainer."""
    again = "resume=False starts again"
    if "optimiser" not in state:
        raise ValueError(f"{where}: was saved without its optimiser and cannot go on; {again}")
    if state["images"] != len(trainer.images):
        given = f"{state['images']} images, and there are {len(trainer.images)} now"
        raise ValueError(f"{where}: was trained on {given}; restore the data, or {again}")
    finished = len(state["history"]) >= trainer.epochs
    if not finished and state.get("draws", 1) != views.DRAWS:
        said = f"version {state.get('draws', 1)} of the random views, and this setclr has another"
        raise ValueError(f"{where}: was begun with {said}; finish it with the version before, or {again}")
    used, now = state.get("precision", "float32"), trainer.precision.name
    if used != now:
        raise ValueError(f"{where}: was trained in {used}, not {now}; take precision={used!r}, or {again}")
    if state.get("keys") is None and trainer.momentum_encoder:
        raise ValueError(f"{where}: was trained without a momentum encoder; {again}")
    for name in PARTS:
        getattr(trainer, name).load_state_dict(state.get(name, {}))
    for weight, kept in trainer.optimiser.state.items():
        for key, x in kept.items():
            if isinstance(x, torch.Tensor) and x.shape == weight.shape:  # fused steps go through memory
                kept[key] = torch.empty_like(weight, dtype=x.dtype).copy_(x)
    trainer.step, trainer.rows[:] = state["step"], state["history"]
    trainer.values = list(state.get("values", torch.empty(0)).to(trainer.device).unbind())
    trainer.seconds = state.get("seconds", 0.0)
    trainer.precision.scaler.load_state_dict(state.get("scaler") or trainer.precision.scaler.state_dict())
    if trainer.momentum_encoder:
        trainer.momentum_encoder.restore(state["keys"])
    if trainer.targets:
        trainer.targets.restore(state["targets"])
    trainer.random = state.get("random") or {"cpu": state["rng"]}
