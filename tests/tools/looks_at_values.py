"""Which losses look at the values of a tensor, and why: a GPU waits there, and a compiled graph breaks.

One list for the rehearsal, the tests of compiled losses, and those on a GPU.
"""

import re

ALWAYS = {  # the beginning of a repr, as a pattern, and the reason
    r"LinearAssignment\(margin=\S+, temperature=0.0, mining='one-to-one'": "scipy finds the assignment",
    r"IOT\(constraint='both', epsilon=\S+, iterations=None": "Sinkhorn's rounds end when they have converged",
    r"MMCL\(.*solver='exact'": "its rounds end when every machine has its support",
    r"MMCL\(.*solver='(pgd|steps)'": "its steps end when they have converged",
}
WITH_LABELS = {
    r"GroCo\(": "the size of the classes is the length of its lists",
    r"SparseCLR\(": "the largest class is the number of its lists",
}
ON_A_GPU = {r"QARe\(": "eigenvalues wait for the device by themselves"}


def why(loss: object, *more: dict[str, str]) -> str | None:
    """The reason why a loss looks at values, always or for what is in `more`; None if it does not."""
    reasons = ALWAYS | {pattern: reason for each in more for pattern, reason in each.items()}
    return next((reason for pattern, reason in reasons.items() if re.search(pattern, repr(loss))), None)
