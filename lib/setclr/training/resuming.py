"""All that a training needs to go on, as data, and back."""

from typing import TYPE_CHECKING

import torch

from setclr import views
from setclr.training.checkpoint import REMEDY
from setclr.training.contents import refuse_other_weights
from setclr.training.optimisers import refuse_other_optimiser

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
    values, position = state.get("values", torch.empty(0)), divmod(state["step"], trainer.steps)
    if (len(state["history"]), len(values)) != position:
        said = f"has {len(state['history'])} epochs and {len(values)} steps, and should have {position}"
        raise ValueError(f"{where}: was trained in other batches, or is damaged: it {said}; {again}")
    refuse_other_parts(trainer, state, where)
    for name in PARTS:
        getattr(trainer, name).load_state_dict(state.get(name, {}))
    for weight, kept in trainer.optimiser.state.items():
        for key, x in kept.items():
            if isinstance(x, torch.Tensor) and x.shape == weight.shape:  # fused steps go through memory
                kept[key] = torch.empty_like(weight, dtype=x.dtype).copy_(x)
    trainer.step, trainer.rows[:] = state["step"], state["history"]
    trainer.values = list(values.to(trainer.device).unbind())
    trainer.seconds = state.get("seconds", 0.0)
    trainer.precision.scaler.load_state_dict(state.get("scaler") or trainer.precision.scaler.state_dict())
    if trainer.momentum_encoder:
        trainer.momentum_encoder.restore(state["keys"])
    if trainer.targets and len(values):
        trainer.targets.restore(state.get("targets"))
    trainer.random = state.get("random") or {"cpu": state["rng"]}


def refuse_other_parts(trainer: "Trainer", state: dict, where: str) -> None:
    """Raises ValueError where a part of the state does not fit the trainer's: names, shapes or kinds."""
    complaint = f"{where}: its {{}} is not the trainer's"
    for name in ("encoder", "head", "loss", "predictor"):
        refuse_other_weights(getattr(trainer, name), state.get(name, {}), complaint.format(name))
    refuse_other_optimiser(trainer.optimiser, state["optimiser"], complaint.format("optimiser"))
    scaler = trainer.precision.scaler.state_dict()
    if set(state.get("scaler") or scaler) != set(scaler):
        raise ValueError(f"{complaint.format('scaler')}; {REMEDY}")
    if encoder := trainer.momentum_encoder:
        refuse_other_weights(encoder.model, state["keys"]["model"], complaint.format("momentum encoder"))
        mine, kept = encoder.queue, state["keys"].get("queue")
        if (mine is None) != (kept is None) or (mine is not None and mine.shape != kept.shape):
            raise ValueError(f"{complaint.format('queue')}; {REMEDY}")
    if trainer.targets and trainer.targets.clustered and len(state.get("values", ())):
        x, count = state.get("targets"), trainer.targets.count
        x = torch.empty(0) if x is None else x
        fits = x.dtype == torch.int64 and x.shape == trainer.images.labels.shape
        if not fits or x.min() < 0 or x.max() >= count:
            raise ValueError(f"{where}: targets must be clusters 0 to {count - 1}, one an image; {REMEDY}")
    for device, kept in (state.get("random") or {"cpu": state["rng"]}).items():
        try:
            if device in ("cpu", trainer.device.type):
                torch.Generator(device).set_state(kept)
        except RuntimeError as error:
            raise ValueError(f"{where}: random is no state of a generator ({error}); {REMEDY}") from error
