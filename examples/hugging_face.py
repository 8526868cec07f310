"""A SetCLR loss in Hugging Face's Trainer, by `compute_loss`; a small ViT from a config, nothing downloaded.

python examples/hugging_face.py
"""

import tempfile

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTModel

from setclr.losses import InfoNCE
from setclr.training.distributed import gather


class TwoViews(Dataset):
    """Random images under two casts: item i is {"views": (2, 3, 16, 16)}, drawn anew at each call."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        casts = 1 + 0.2 * torch.randn(2, 3, 1, 1)
        return {"views": casts * self.images[i] + 0.2 * torch.randn(2, 3, 16, 16)}


class Embedder(nn.Module):
    """A ViT and a projection: images (n, 3, 16, 16) to embeddings (n, 16)."""

    def __init__(self) -> None:
        super().__init__()
        config = ViTConfig(
            image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=64, hidden_dropout_prob=0.0,
        )  # fmt: skip
        self.encoder = ViTModel(config, add_pooling_layer=False)
        self.head = nn.Linear(32, 16)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(pixel_values=images).last_hidden_state[:, 0])


class ContrastiveTrainer(Trainer):
    """The one method to change: views (n, V, …) of a collated batch become z (V, n, E)."""

    loss = InfoNCE(temperature=0.2)

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False, **_: object
    ) -> Tensor | tuple[Tensor, Tensor]:
        views = inputs["views"].transpose(0, 1)
        z = model(views.flatten(0, 1)).unflatten(0, views.shape[:2])
        value = self.loss(gather(z))  # the identity on one device
        return (value, z) if return_outputs else value


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=40, per_device_train_batch_size=32, learning_rate=3e-3,
            dataloader_drop_last=True, remove_unused_columns=False, logging_steps=5, save_strategy="no",
            report_to="none", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        trainer = ContrastiveTrainer(
            model=Embedder(), args=arguments, train_dataset=TwoViews(torch.randn(256, 3, 16, 16))
        )
        trainer.train()
    values = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    first, last = float(values[0]), float(values[-1])
    assert last < first, (first, last)
    print(f"loss {first:.3f} -> {last:.3f}")
