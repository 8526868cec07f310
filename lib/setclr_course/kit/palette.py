"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008); tables have one hue."""

BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
YELLOW, BLUE, VERMILION, PURPLE = "#f0e442", "#0072b2", "#d55e00", "#cc79a7"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
WHITE, GREY = "#ffffff", "#8a8a8a"  # white is the page's ground: black on a dark page
DUSK, PALE = "#555555", "#cccccc"  # greys for words and for areas
OCHRE, PINE = "#9a6a00", "#00734f"  # orange and green for words, dark enough to be read on white
MIST = "#cfe6f6"  # sky, paler, for areas
EMPTY, FULL = "#eef2f7", "#003f87"  # a share of nothing and of all; what lies between is mixed from both
FIELD = ("#f3c9a3", "#fbead9", "#deebf5", "#a9cbe6")  # vermilion to blue, pale: the four bands of a machine

INK = "#222222"  # of the signs ● ■ ★ ✚, which have no colour of their own
OF_LOSS = {  # one colour each in the whole course
    "InfoNCE": BLUE, "LinearAssignment": BLACK, "SparseCLR": GREEN, "QARe": PURPLE, "GroCo": ORANGE,
    "IOT": SKY, "MMCL": VERMILION,
}  # fmt: skip


def of_loss(name: str) -> str:
    """The colour of a loss by its name, which may go on: "IOT both"; "" for what is no loss."""
    return next((hue for loss, hue in OF_LOSS.items() if name.lower().startswith(loss.lower())), "")


OF_CLASS, SIGN_OF_CLASS = (BLUE, VERMILION, PINE, OCHRE, PURPLE, BLACK), "▲▼◆"  # together they tell 18 apart
