"""`ImageRecipe`, the settings of a training run on images."""

from dataclasses import dataclass

from setclr import losses
from setclr.data_sets import known
from setclr.models import ACTIVATIONS, INITIAL, NORMALISED, check_encoder
from setclr.recipes.recipe import Recipe
from setclr.settings import flag, one_of, text, whole
from setclr.views import PRESETS


@dataclass(frozen=True)
class ImageRecipe(Recipe):
    """Settings of a pretraining run on images. Raises ValueError, naming the field, where a value is
    invalid."""

    kind, things, shown = "image", "images", ("linear", "knn")

    data: str = text("photo-patches")
    """Name of a data set (`python -m setclr data` lists them), folder:PATH, or pairs:PATH."""
    size: int | None = whole(None, 8, 4096, "None leaves the images as they are")
    """Side in pixels to which a folder's images are resized and cropped; None: they have one size
    already. For pairs it is the height; they are half as wide."""
    images: int | None = whole(None, 2, 10**9, "None takes all")
    """Train on this many images of the set, spread evenly over the classes; None: on all."""
    views: str = one_of("simclr", PRESETS)
    """Named augmentation, a key of setclr.views.PRESETS."""
    full_views: int | None = whole(None, 1, 4, "None takes as many as `views` has")
    """Number of full views of an image, 1 to 4, those of `views` in turn; None: as many as `views` has.
    Losses need two or more, baselines such as "Supervised()" one."""
    local_views: int = whole(0, 0, 64)
    """Number of small crops of an image beside its full views (multi-crop)."""
    view_size: int | None = whole(None, 8, 4096, "None takes the images' side")
    """Side of a full view in pixels; None: that of the images. With a folder and no `size`, the files may
    have any sizes, and crops are read from them during training."""
    local_size: int | None = whole(None, 8, 4096, "None takes 3/7 of a full view's side")
    """Side of a small crop; None: 3/7 of a full view's."""
    encoder: str = text("conv4")
    """Name of an encoder, a key of setclr.models.ENCODERS, or timm:NAME for any model of timm."""
    initial: str = one_of("torch", INITIAL)
    """Initial weights of the encoder's convolutions: "he", "xavier", "torch", the encoder's own, or
    "zero-residual", the same with scales of 0 where a residual block ends."""
    normalised: str = one_of("none", NORMALISED)
    """Normalise colours before the encoder, by the mean and deviation of this data set or of each "image"
    alone; "none" leaves them."""
    layers: int = whole(2, 1, 16)
    """Linear layers of the projection head."""
    hidden: int = whole(256, 1, 2**14)
    """Width of the projection head's hidden layers."""
    activation: str = one_of("leaky_relu", ACTIVATIONS)
    """Activation between the head's layers: "leaky_relu" or "relu", each after a batch norm."""
    head_norm: bool = flag(True)
    """A batch norm after each of the head's hidden layers."""
    embedding: int = whole(64, 1, 2**14)
    """E: dimensions of the embeddings that the loss sees."""
    predictor: int = whole(0, 0, 16)
    """Linear layers between head and loss, on the side of the first encoder alone (MoCo v3)."""

    @property
    def side(self) -> int | None:
        """The side in pixels of full views; None where the images' own is not known, as of a folder's."""
        return self.view_size or self.size or known(self.data).side

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoder(self.encoder)

    def _check_loss(self) -> None:
        """Raises ValueError where the loss needs more or fewer views."""
        full = self.full_views or len(PRESETS[self.views])
        baseline = not isinstance(self.parsed_loss, losses.SetLoss)
        if baseline and (full > 1 or self.local_views):
            wanted = f"full_views must be 1 with {self.loss}, which contrasts no views"
            raise ValueError(f"{wanted}, got {full} and {self.local_views} local ones; set full_views=1")
        if not baseline and full < 2:
            raise ValueError(f"full_views must be 2 to 4 with {self.loss}, which contrasts views, got {full}")
