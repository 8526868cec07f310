"""What page 16 asks: flow, views of clips, and what colours and flow tell."""

from collections.abc import Callable

import torch

from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Vertical stripes fill the frame, and the camera pans downwards. What does TV-L1 find?",
        {
            "arrows upwards": "That is how the picture really goes. But a stripe looks the same a pixel "
            "further up.",
            "nothing moves": "Yes. The two frames are the same picture. Any even flow along the stripes "
            "explains them; the search begins at none and has no reason to leave.",
            "arrows to the side": "Across the stripes a motion would be seen, and there is none.",
        },
        "nothing moves",
    ),
    "2": Question(
        "Each frame of a clip gets a crop of its own. What is lost of the clip?",
        {
            "what is in the picture": "Each frame still shows a part of it.",
            "the motion": "Yes. The crops jump about by more than the camera moves.",
            "its colours": "They are changed in both cases, once for a clip or once for a frame.",
        },
        "the motion",
    ),
    "3": Question(
        "An encoder with first weights gets the true flow of a clip that moves. How often has the nearest "
        "training clip the same motion of nine?",
        {
            "one time in nine": "That would be guessing. But the flow of a pan and of a turn differ already.",
            "about half": "From colours it would be much. But flow shows the motion itself.",
            "always": "Yes. Nothing has to be learnt: the flow of a clip is its motion.",
        },
        "always",
    ),
    "4": Question(
        "A probe has learnt the nine motions from the true flow. Now it is shown ten crops, five of them "
        "mirrored, and its scores are averaged. Is it right as often as before?",
        {
            "more often: ten tries": "They would help if all ten showed the same motion. Five show its "
            "mirror image.",
            "as often": "A mirrored pan to the left is a pan to the right, and its flow says so.",
            "less often": "Yes. Five crops say left and five say right, of pans and of turns: four of the "
            "nine motions. The others are not touched.",
        },
        "less often",
    ),
}


def mirrors(answer: Callable) -> bool:
    """Whether it mirrors a flow (2, T, H, W)."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    flow = torch.arange(2.0 * 3 * 4 * 5).view(2, 3, 4, 5)
    wanted = flow.flip(-1) * torch.tensor([-1.0, 1]).view(2, 1, 1, 1)
    return torch.equal(torch.as_tensor(answer(flow.clone())), wanted)


EXERCISES = {
    "1": Exercise(
        "a whole number",
        25,
        "A clip of 8 frames can begin at any of 5 frames, and each of two clips has the choice.",
        why="Five beginnings for view 1, and with each of them five for view 2.",
    ),
    "2": Exercise(
        "a number of per cent",
        100 * 27 / 324,
        "knn(train.videos.flatten(1).float(), labels, test.videos.flatten(1).float(), k=1) of "
        "setclr.evaluation.neighbours gives the label of the nearest.",
        tolerance=0.1,
        why="Pixels hardly beat guessing, because each clip has its own colour cast and shows another part.",
    ),
    "3": Exercise(
        "a function of a flow",
        mirrors,
        "Columns in reverse order are flow.flip(-1). And what went to the right goes to the left.",
        why="A flow moves with the pixels and also points somewhere, and a mirror changes both.",
    ),
}
