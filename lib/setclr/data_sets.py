"""Every set of images that has a name, and all that the library must know of it.

To add one, add an entry to DATA_SETS. `setclr.data.load`, the command line, the encoders' normalisations and
the evaluations follow from it.
"""

from dataclasses import dataclass

from setclr.extras import RECIPES, loaded

SPLITS = ("train", "test")
Colours = tuple[tuple[float, float, float], tuple[float, float, float]]  # mean and deviation of each channel


@dataclass(frozen=True)
class DataSet:
    """What the library must know of a data set. No field but `read` is needed."""

    read: str
    """MODULE:FUNCTION of setclr.data, or a full name of another package's. The function gets `of`, the folder
    of the set, the split, and what it `takes`, and returns an ImageSet. The folder is root/NAME, or PATH."""
    of: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    """Those of `size` and `stream` that `load` takes for it. What takes both is read from image files."""
    side: int | None = None
    """Side of the images in pixels, to which image files are resized; None: it is not known."""
    colours: Colours | None = None
    """By which an encoder can normalise, with normalised=NAME."""
    pretraining: str = "train"
    """The split to train on without labels."""
    validation: str = ""
    """MODULE:FUNCTION that says which training images are for validation, (N,) bool; "": a fifth, drawn."""
    mirror: str = ""
    """Of pairs, two images of each thing: whether they are mirrored "together" or "apart"."""

    @property
    def in_files(self) -> bool:
        """Whether its images are files that can stay on disk."""
        return "stream" in self.takes


FOLDER = "folder:"
FILES = ("size", "stream")
DATA_SETS = {
    # 7,200 + 1,800 grey patches of 18 photographs, (3, 32, 32), under random casts and contrasts. The class
    # is the photograph. Made in a few seconds, without a download, and saved in root/photo-patches.
    "photo-patches": DataSet("patches:photo_set", side=32, validation="patches:photo_validation"),
    # mnist (1, 28, 28), cifar10, cifar100 and svhn (3, 32, 32), stl10 (3, 96, 96): downloaded by torchvision
    # into root/NAME, and verified. "unlabelled" are the 5,000 training images of stl10 and then its 100,000
    # without a label (-1).
    "mnist": DataSet("downloads:of_torchvision", ("MNIST",), side=28),
    "cifar10": DataSet("downloads:of_torchvision", ("CIFAR10",), side=32,
                       colours=((0.491, 0.482, 0.447), (0.247, 0.243, 0.262))),
    "cifar100": DataSet("downloads:of_torchvision", ("CIFAR100",), side=32,
                        colours=((0.507, 0.487, 0.441), (0.267, 0.256, 0.276))),
    "svhn": DataSet("downloads:of_torchvision", ("SVHN",), side=32),
    "stl10": DataSet("downloads:of_torchvision", ("STL10",), side=96, pretraining="unlabelled"),
    # root/imagenet/train/WNID and val/WNID, which you put there by hand. imagenet100: the 100 classes of
    # Tian et al. 2020, in root/imagenet100 or root/imagenet.
    "imagenet100": DataSet("folders:imagenet", ("imagenet100.txt",), FILES, side=224),
    "imagenet": DataSet("folders:imagenet", ("",), FILES, side=224,
                        colours=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))),
    # PATH/train/CLASS/IMAGE, and PATH/val or else PATH/test for the test split; training, valid, validation,
    # eval, testing and large letters do as well. Or PATH/CLASS/IMAGE, or images without classes at any depth,
    # with labels -1; these have no test split (`folders.any_folder`).
    FOLDER: DataSet("folders:any_folder", takes=FILES),
    # PATH/CAMERA/THING.jpg of two cameras, all pictures of the first one first, as in stereo-patches. 15 %
    # of the things, chosen by a fixed seed, are the test split (`folders.two_cameras`).
    "pairs:": DataSet("folders:two_cameras", takes=("size",), mirror="apart"),
}  # fmt: skip
NAMES = tuple(f"{name}PATH" if name.endswith(":") else name for name in DATA_SETS)


def known(name: object) -> DataSet:
    """What is known of the data set of that name, here or in a package that registers it; of another name,
    nothing."""
    kind, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind + colon in DATA_SETS:
        return DATA_SETS[kind + colon]
    others = {key: one for package in loaded(RECIPES) for key, one in getattr(package, "sets", {}).items()}
    return others.get(kind + colon, DataSet(""))
