"""What page 15 asks: losses on molecules, and a table whose rows differ by a point."""

from collections.abc import Callable

import torch

from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The encoder has its first weights. How will InfoNCE share out a row among the six views?",
        {
            "almost evenly, a sixth each": "Yes. Every embedding is a sum over many atoms, and with chance "
            "weights all these sums point nearly the same way.",
            "most to the molecule's own view": "Then there would be little left to learn. The disc above lay "
            "behind other molecules.",
            "most to one wrong view, at random": "A row would need one view that stands out. But all sums "
            "over atoms point nearly the same way.",
        },
        "almost evenly, a sixth each",
    ),
    "2": Question(
        "Now the trained encoder. Of the 37 other molecules, how many hold the street of a query?",
        {
            "all 37": "With first weights it is nearly so, because all lie close together. Training "
            "spreads them out.",
            "about ten": "Yes. Training spreads the molecules out, and those further back no longer touch.",
            "one, the most alike": "One point can hold a street alone only if all others lie far behind it.",
        },
        "about ten",
    ),
    "3": Question(
        "How often is the SVM right on what the encoder with first weights gives, which has learnt nothing?",
        {
            "about 50 %": "Even a constant answer has 66. And chance weights still add up atoms.",
            "about 66 %": "That would be so if the sums told nothing. But atoms and bonds are in them.",
            "about 86 %": "Yes. Chance weights, too, add up which atoms there are and who is bound to whom.",
        },
        "about 86 %",
    ),
    "4": Question(
        "A run has twenty epochs. Somebody looks at the accuracy after each and prints the best. By how much "
        "does a trained row rise, on average?",
        {
            "not at all: the last is the best": "The accuracy jumps up and down by a point or more from "
            "one epoch to the next.",
            "by some tenths of a point": "It would, were the curve smooth. It jumps up and down by more.",
            "by two to three points": "Yes. The best of twenty noisy numbers lies well above most of them. "
            "That is more than any two of the losses differ.",
        },
        "by two to three points",
    ),
    "5": Question(
        "On MUTAG no loss was surely above the encoder with first weights. And of the eight on IMDB-BINARY?",
        {
            "none again": "It would be so if first weights were as good there. They are not.",
            "one or two": "If one were much better than the others. But here, too, they end close together.",
            "all eight": "Yes. First weights are worse here. What one set says does not hold for the other.",
        },
        "all eight",
    ),
}


def drops(answer: Callable) -> bool:
    """Whether it keeps the right rows and bonds, renumbered, in any order of the bonds."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    x = torch.arange(12.0).view(6, 2)
    edges = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 0, 5], [1, 0, 2, 1, 4, 3, 5, 4, 5, 0]])
    keep = torch.tensor([True, False, True, True, True, False])
    rows, bonds = answer(x, edges, keep)
    found = sorted(map(tuple, torch.as_tensor(bonds).T.tolist()))
    return torch.equal(torch.as_tensor(rows), x[keep]) and found == [(2, 3), (3, 2)]


EXERCISES = {
    "1": Exercise(
        "a number of per cent",
        100 * 2395 / 3371,
        "Column 0 of a graph's x is 1 for carbon. Add it up over all graphs, and count all rows.",
        tolerance=0.001,
        why="2395 of 3371 atoms are carbon; a mean over molecules would weigh an atom of a small one more.",
    ),
    "2": Exercise(
        "a number of per cent",
        83.54,
        "graph.x says of each atom which it is; its sum over the rows counts them. Stack these sums.",
        tolerance=0.015,
        why="The kinds of atoms say nothing of rings, so they do a little worse than atoms and bonds.",
    ),
    "3": Exercise(
        "a function of x, edge_index and keep",
        drops,
        "keep[edge_index].all(0) says which bonds stay, and keep.cumsum(0) - 1 is each atom's new number.",
        why="A bond stays if both of its atoms do; an atom's new number counts those before it that stay.",
    ),
}
