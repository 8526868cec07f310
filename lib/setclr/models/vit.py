"""Encoders built on timm: MoCo v3's ViT-Small, and any timm model by name."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from setclr.extras import extra

with extra("encoders"):
    import timm
    from timm.layers import PatchEmbed, build_sincos2d_pos_embed
    from timm.models.vision_transformer import VisionTransformer


class MoCoViT(VisionTransformer):
    """ViT-Small/16 of MoCo v3: 384 wide, 12 blocks, 12 heads, as in facebookresearch/moco-v3, vits.py.

    The position embedding is fixed: sines and cosines of row and column, computed for the grid of the
    input. The projection of the patches is fixed too during pretraining (`stop_grad_conv1` in that
    program); fine-tuning trains it. The state dict has timm's names.
    """

    cls_token: nn.Parameter

    def __init__(self, channels: int) -> None:
        size: dict[str, Any] = dict(embed_dim=384, num_heads=12, in_chans=channels, num_classes=0)
        super().__init__(**size, weight_init="moco", pos_embed="none", dynamic_img_size=True)
        del self.pos_embed  # it is None; timm's ViT stores its 14 x 14 positions under this name
        self.register_buffer("pos_embed", torch.cat([torch.zeros(1, 384), positions(14, 14)])[None])
        projection = self.patch_embed.proj.requires_grad_(False)
        nn.init.xavier_uniform_(projection.weight.data.flatten(1))
        nn.init.zeros_(projection.bias)
        self.register_forward_pre_hook(refuse_other_sides)

    def _pos_embed(self, x: Tensor) -> Tensor:
        """Patches (N, H, W, 384) → tokens (N, 1 + H·W, 384), the class token first."""
        x = x.flatten(1, 2) + positions(x.shape[1], x.shape[2], x.device)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)


def positions(rows: int, columns: int, device: torch.device | None = None) -> Tensor:
    """The sine-cosine position embedding of a grid, row after row: (rows · columns, 384).

    ω_k = 10000^(−k / 96): sin, cos of ω_k·row, then of ω_k·column (facebookresearch/moco-v3, vits.py).
    """
    return build_sincos2d_pos_embed([rows, columns], 384, interleave_sin_cos=True, device=device)


def timm_encoder(name: str, channels: int = 3) -> tuple[nn.Module, int]:
    """timm's model of that name without its classifier, with fresh weights, and its number of features.

    If timm allows it (dynamic_img_size), vision transformers take images of any sides that their patches
    fill, and interpolate their learned position embedding. Other sides raise a ValueError. On a GPU the
    gradient of this interpolation differs from call to call, so a resumed run does not repeat an
    uninterrupted one.
    """
    settings: dict[str, Any] = dict(pretrained=False, num_classes=0, in_chans=channels)
    try:
        model: Any = timm.create_model(name, **settings, dynamic_img_size=True)
    except TypeError:  # raised by timm if the model has no such argument
        model = timm.create_model(name, **settings)
    if isinstance(getattr(model, "patch_embed", None), PatchEmbed):
        model.register_forward_pre_hook(refuse_other_sides)
    return model, model.head_hidden_size


def refuse_other_sides(model: nn.Module, inputs: tuple[Tensor]) -> None:
    """Raises ValueError unless the model's patches fill the sides of the images (N, C, H, W)."""
    embed, sides = cast(PatchEmbed, model.patch_embed), tuple(inputs[0].shape[2:])
    only = embed.img_size if embed.strict_img_size else None
    if only not in (None, sides) or any(side % patch for side, patch in zip(sides, embed.patch_size)):
        wanted = f"sides {only or f'that are multiples of {embed.patch_size}'} px"
        raise ValueError(f"images must have {wanted}, got {sides}; set size, view_size and local_size to fit")
