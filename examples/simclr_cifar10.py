"""SimCLR in one file, from images to what they taught: read it from top to bottom, and change it.

python examples/simclr_cifar10.py                                   CIFAR-10, 100 epochs; made for a GPU
python examples/simclr_cifar10.py --data photo-patches --epochs 3   patches of 18 photographs, on a CPU

A loss is a text, such as "GroCo(1.0, 10)", which needs --last-norm, or "InfoNCE(0.5) + 1.125 * QARe()".
"""

import argparse
import math

import torch
from torch import nn
from tqdm.auto import trange

from setclr import data, losses, models, views
from setclr.evaluation import knn

asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
asked.add_argument("--data", default="cifar10", help="a name that setclr.data.load knows")
asked.add_argument("--root", default="data", help="the folder of the data sets")
asked.add_argument("--loss", default="InfoNCE(0.5)", help="a loss of setclr.losses, or a sum of some")
asked.add_argument("--last-norm", action="store_true", help="end the head with a batch norm")
asked.add_argument("--encoder", default="resnet18", help="a name of setclr.models.ENCODERS")
asked.add_argument("--epochs", type=int, default=100)
asked.add_argument("--batch", type=int, default=256)
asked.add_argument("--lr", type=float, default=0.3, help="SGD's peak rate for a batch of 256")
asked.add_argument("--seed", type=int, default=0)
args = asked.parse_args()

# 1. Data: images (N, C, H, W) uint8, and labels (N,), which only serve to ask at the end what was learnt.
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train, test = (data.load(args.data, args.root, split=split) for split in ("train", "test"))
N, channels, _, side = train.images.shape
batch = min(args.batch, N)

# 2. The model: an encoder, whose D features are kept, and a head, which the loss needs and nobody later.
torch.manual_seed(args.seed)
encoder, D = models.encoder(args.encoder, channels)
head = models.head(D, 512, 128, last_norm=args.last_norm)
model = nn.Sequential(encoder, head).to(device)
loss = losses.parse(args.loss).to(device)

# 3. Two random views of each image: a crop, a flip, other colours. What they share is all that can be learnt.
two = views.preset("simclr", side)
chance = torch.Generator().manual_seed(args.seed)


def embedded(images: torch.Tensor) -> torch.Tensor:
    """Embeddings (V, n, E) of two views of n images."""
    pair = views.apply(images.to(device), two, views.draw(two, len(images), chance))
    return model(pair.flatten(0, 1)).unflatten(0, pair.shape[:2])


@torch.no_grad()
def features(images: torch.Tensor) -> torch.Tensor:
    """The encoder's features (N, D), without the head, of whole images."""
    encoder.eval()
    found = [encoder(x.to(device).float() / 255) for x in images.split(512)]
    encoder.train()
    return torch.cat(found)


# 4. Training: the rate rises for a tenth of the steps and falls by half a cosine.
steps = args.epochs * (N // batch)
parameters = [*model.parameters(), *loss.parameters()]
optimiser = torch.optim.SGD(parameters, args.lr * batch / 256, momentum=0.9, weight_decay=1e-4)
rise = max(1, steps // 10)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimiser,
    lambda k: min((k + 1) / rise, (1 + math.cos(math.pi * max(0, k - rise) / max(1, steps - rise))) / 2),
)
history: list[float] = []
for _ in trange(args.epochs, unit="epoch"):
    order = torch.randperm(N, generator=chance)
    for indices in order[: N // batch * batch].split(batch):  # a last batch that is not full is left out
        value = loss(embedded(train.images[indices]))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
        history.append(value.item())

# 5. What was learnt: each test image asks the 20 training images whose features are most like its own.
labels = train.labels.to(device)
guesses = knn(features(train.images), labels, features(test.images), k=min(20, N))
right = (guesses == test.labels.to(device)).double().mean().item()
few = max(1, len(history) // 10)
first, last = (sum(part) / few for part in (history[:few], history[-few:]))
print(f"{args.loss}: loss {first:.3f} -> {last:.3f}; nearest neighbours name {right:.1%} of the test images")
assert last < first, "the loss did not go down: try a smaller --lr"
