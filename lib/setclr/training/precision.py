"""In which precision encoder and head compute. Weights, embeddings and losses are float32 in all of them."""

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from setclr.checks import choice
from setclr.training.distributed import from_first

NAMES = ("auto", "float32", "bf16", "fp16")
DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """float32, or autocast to bf16 or fp16, the latter with a scaled loss: its gradients would underflow.

    "auto" is bf16 where the device has it in hardware, otherwise float32; the first process decides for all.
    `name` is what was decided. Raises ValueError for another name.
    """

    def __init__(self, name: str, device: torch.device):
        choice("precision", name, NAMES)
        if name == "auto":
            name = from_first(lambda: "bf16" if has_bf16(device) else "float32")
        self.name, self.device = name, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager:
        return torch.autocast(self.device.type, DTYPES[self.name], enabled=self.name != "float32")

    def backward(self, value: Tensor) -> None:
        self.scaler.scale(value).backward()

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """A step of the optimiser; with fp16 none where a gradient overflowed."""
        self.scaler.step(optimiser)
        self.scaler.update()


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 in hardware: GPUs from 2020 on, CPUs with AMX or AVX512-BF16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
