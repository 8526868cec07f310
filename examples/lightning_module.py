"""A SetCLR loss in a LightningModule; on many devices `gather` brings the batch together.

python examples/lightning_module.py
"""

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from setclr.losses import GroCo
from setclr.training.distributed import gather


class Contrastive(lightning.LightningModule):
    """An encoder, a head that ends in the batch norm which GroCo needs, and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16, affine=False))
        self.loss = GroCo(beta=1.0, negatives=10)
        self.values: list[float] = []

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        (images,) = batch
        views = images + 0.3 * torch.randn(2, *images.shape, device=images.device)  # (V, n, D)
        z = self.head(self.encoder(views.flatten(0, 1))).unflatten(0, views.shape[:2])
        value = self.loss(gather(z))  # the identity on one device
        self.values.append(value.item())
        self.log("loss", value)
        return value

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


if __name__ == "__main__":
    lightning.seed_everything(0)
    model = Contrastive()
    loader = DataLoader(TensorDataset(torch.randn(512, 20)), batch_size=64, shuffle=True, drop_last=True)
    trainer = lightning.Trainer(
        max_epochs=6, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, loader)
    first, last = sum(model.values[:5]) / 5, sum(model.values[-5:]) / 5
    assert last < first, (first, last)
    print(f"loss {first:.4f} -> {last:.4f}")
