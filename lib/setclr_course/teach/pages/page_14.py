"""What page 14 asks: time and memory of a loss, of a step, and of a batch that does not fit."""

from setclr.losses import InfoNCE
from setclr_course import costs
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "You double the batch. QARe takes eigenvalues, InfoNCE compares all pairs, MMCL exact solves a "
        "machine for every view. For which do the multiplications grow most?",
        {
            "QARe: eigenvalues": "It sounds so. But a small table has the eigenvalues that count, as you "
            "will see below, and the work only doubles.",
            "InfoNCE: all pairs": "Twice the images are four times the pairs. Another has still more to do.",
            "MMCL exact: a machine for every view": "Yes. Twice as many machines, each with twice as many "
            "negatives, and each of those is compared with twice as many others: up to eight times the "
            "multiplications. The clock in the picture is another matter, and comes next.",
            "all grow alike": "One may look at points, another at pairs, and a third at more than pairs.",
        },
        "MMCL exact: a machine for every view",
    ),
    "2": Question(
        "Put MMCL exact, the highest curve above, into a training step of ResNet-18 with 512 images. Which "
        "part of the step is the loss?",
        {
            "nearly all of it": "Above there was no encoder. Here each image passes through millions of "
            "weights.",
            "about half": "The encoder works harder still: each image passes through millions of weights, "
            "forward and back.",
            "less than a tenth": "Yes. Each image passes through millions of weights, forward and back. A "
            "loss sees only what comes out: a short list of numbers for each view.",
        },
        "less than a tenth",
    ),
    "3": Question(
        "The paper says that QARe makes a step up to 29 % longer. What does it say of the step's memory?",
        {
            "a third more, too": "Eigenvalues take time to find, but they leave little behind.",
            "about a tenth more": "Think of what else is kept: the output of every layer for every view.",
            "less than one per cent more": "Yes. The encoder keeps the output of every layer for every view. "
            "Beside that a few tables of similarities vanish.",
        },
        "less than one per cent more",
    ),
    "4": Question(
        "So send the batch through the encoder in chunks, keep only the embeddings, and take one loss of "
        "them all. Then go back chunk by chunk. What do you pay?",
        {
            "negatives: a view meets only its chunk": "The loss sees all embeddings together, so every view "
            "meets all others.",
            "exactness: the gradient is only near": "The loss of the whole batch has given each embedding "
            "its pull already. With these pulls the rest is a sum over images, in any order.",
            "time: the encoder works more": "Yes. Nothing was kept for the way back, so each chunk must go "
            "forward a second time.",
        },
        "time: the encoder works more",
    ),
}


def crossing(name: str) -> float:
    """The batch N at which InfoNCE does as many flops as that encoder: where a·N = b·N²."""
    N = 256
    of_loss = costs.work(lambda: InfoNCE(0.5)(costs.points(N, 64)).backward()).flops
    return N * costs.encoder_cost(name, N)[0] / of_loss


EXERCISES = {
    "1": Exercise(
        "a number of per cent",
        8.2,
        "Set all three controls; it stands beside MMCL's bar.",
        tolerance=0.03,
        why="MMCL keeps tables of side 2N, so beside a small encoder and a large batch it is felt.",
    ),
    "2": Exercise(
        "a number of MB",
        281.25,
        "kept = u·N + v·N². Divide both known values by their N and subtract: that gives v.",
        why="Only the tables grow sixteenfold from 1024 to 4096; the points grow fourfold.",
    ),
    "3": Exercise(
        "a function of an encoder's name",
        passes(crossing, "conv4", "resnet18", tolerance=0.01, alone=False),
        "The encoder's flops are a·N, those of the loss b·N². Find a and b at any one N; they meet at a / b.",
        why="Below that batch the encoder does most of the work, above it the loss.",
    ),
}
