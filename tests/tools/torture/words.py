"""Hostile texts: losses and their schedules, command lines.

A trial is 60 texts. Each is refused in words or means something; no text runs code of its own.
"""

import contextlib
import io
import os
import random
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from trials import RAN, Outcome, Tries

from setclr import cli, data, experiments, losses
from setclr.evaluation.protocols import PROTOCOLS
from setclr.recipes import RECIPES, loss_schedule
from setclr_course import run_page

TEXTS = 60
CODE = f"__import__('pathlib').Path('{RAN}').touch()"
HOSTILE = [
    "", " ", "\0", "\n", "\r\n", "\t", "'", '"', "\\", "`", "$(touch x)", "; touch x", "| cat", "%s%n",
    "{}", "{0}", "{[]}", "[[", "((", "))", "--", "---", "-", "=", "==", "@", "@0", ",", "..", "../..",
    "/", "~", "*", "**", ":", "\x1b[31m", "\u202e", "\u0000", "\ud83d\ude00".encode("utf-16",
    "surrogatepass").decode("utf-16"), "é", "\udcff", "1e400", "-1e400", "nan", "inf", "1_000", "0x10",
    "1j", "9" * 5000, "0.0000000001", "1" + 60 * "0", "'a'*99999999999", "10**10**10", CODE,
    f"exec({CODE!r})", "lambda: 0", "[x for x in ()]", "(" * 300, "+" * 300, "-" * 3000, "not ", "True",
    "None", "float('inf')", "learnable(1)", "learnable(0)", "float('1')", "()", ".__class__", "[0]",
    "**{}", " from 3", " from -1", "; ", "a" * 3000, "InfoNCE()+" * 500, "beta: 1; " * 400,
]  # fmt: skip
PLAIN = [repr(recipe.parsed_loss) for recipe in RECIPES.values()]
SCHEDULES = ["", "bandwidth: 25, 2.5 from 75", "temperature: 0.1, 0.2 from 3; beta: 1, 2 from 4",
             *{recipe.loss_schedule for recipe in RECIPES.values()}]  # fmt: skip
LINES = """
pretrain photo-infonce --out x --epochs 2
pretrain photo-groco --out x --lr 0.1 --loss 'InfoNCE()'
pretrain photo-infonce --out x --views simclr --encoder resnet18 --hidden 64 --compiled no --resume
campaign photo --seeds 0 1 --lr 0.1 --protocol groco
campaign photo-infonce@0,1 --pixels x --data cifar10
search compare-photo --seeds 0
evaluate x --all --record y.json
evaluate x --protocol groco --device cpu
embed x y --out z.npz --size 24 --batch 3
export x --out y.pt
results x
data cifar10 --verify --size 32
data folder:x --root y
data pairs:x
recipes photo groco
pretrain --help
--help
--version
""".strip().splitlines()


def strings(seed: int, folder: Path) -> Outcome:
    """Losses and schedules."""

    def loss(by: random.Random) -> tuple[str, Callable[[], object]]:
        text = mangled(by, " + ".join(by.choices(PLAIN, k=by.choice([1, 1, 2]))))

        def read() -> None:
            found = losses.parse(text)
            assert repr(losses.parse(repr(found))) == repr(found), "its repr is another loss"

        return text, read

    def schedule(by: random.Random) -> tuple[str, Callable[[], object]]:
        text, of = mangled(by, by.choice(SCHEDULES)), losses.parse(by.choice(PLAIN))
        return text, lambda: loss_schedule.check(of, text)

    return tried(seed, folder, [loss, loss, schedule], ValueError)


def commands(seed: int, folder: Path) -> Outcome:
    """What is typed after `setclr`. The commands' work itself is left out: pretrain trains nothing."""

    def command(by: random.Random) -> tuple[str, Callable[[], object]]:
        words = shlex.split(by.choice(LINES))
        for _ in range(by.choice([0, 1, 1, 2, 4])):
            place = by.randrange(len(words) + 1)
            strange = by.choice([*HOSTILE, *words, "--lr", "--loss", "--seeds", "--all", *PROTOCOLS])
            match by.randrange(4):
                case 0:
                    words.insert(place, strange)
                case 1 if len(words) > 1:
                    del words[place % len(words)]
                case _ if words:
                    words[place % len(words)] = by.choice([strange, mangled(by, words[place % len(words)])])
        return repr(words), lambda: typed(words)

    return tried(seed, folder, [command], Refused)


class Refused(Exception):
    """A command ended in one line."""


def typed(words: list[str]) -> None:
    """What a shell would do. Raises Refused where the command says one line, AssertionError for more."""
    nothing = mock.Mock(side_effect=ValueError("nothing is trained or loaded here"))
    parts = [(experiments, "pretrain"), (experiments, "campaign"), (run_page, "search"), (data, "load")]
    said, errors, before = io.StringIO(), io.StringIO(), sorted(Path().rglob("*"))
    with contextlib.ExitStack() as stack:
        for part, name in parts:
            stack.enter_context(mock.patch.object(part, name, nothing))
        stack.enter_context(mock.patch.object(sys, "argv", ["setclr", *words]))
        stack.enter_context(contextlib.redirect_stdout(said))
        stack.enter_context(contextlib.redirect_stderr(errors))
        try:
            cli.run()
        except SystemExit as ended:
            code = ended.code
            assert not errors.getvalue(), f"it also said {errors.getvalue()[:500]!r}"
            if code not in (None, 0):
                assert isinstance(code, str) and code.startswith("setclr: "), f"it ended with {code!r}"
                assert code.isprintable() and len(code) < 3100, f"the line is {code[:500]!r}"
                raise Refused(code) from None
    assert sorted(Path().rglob("*")) == before, "it left files"


def mangled(by: random.Random, text: str) -> str:
    """The text with a few changes: something hostile put in, a piece left out, repeated or turned round."""
    for _ in range(by.choice([0, 1, 1, 2, 5])):
        a, b = sorted(by.randint(0, len(text)) for _ in range(2))
        text = by.choice([
            text[:a] + by.choice(HOSTILE) + text[a:],
            text[:a] + by.choice(HOSTILE) + text[b:],
            text[:a] + text[b:],
            text[:b] + text[a:b] * by.choice([1, 1, 50]) + text[b:],
            text[:a] + text[a:b][::-1] + text[b:],
        ])  # fmt: skip
    return text


def tried(seed: int, folder: Path, kinds: list[Callable], refusal: type[Exception]) -> Outcome:
    by, tries, empty = random.Random(seed), Tries(refusal, line=False), folder / "empty"
    empty.mkdir(exist_ok=True)
    os.chdir(empty)
    for _ in range(TEXTS):
        text, read = by.choice(kinds)(by)
        tries.one(repr(text), read)
        for path in empty.iterdir():
            tries.findings.append(f"{text[:500]!r}: {RAN if path.name == RAN else f'left {path}'}")
            path.unlink()
    return tries.outcome()
