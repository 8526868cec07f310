"""The language of losses: what a stranger may write, and what is refused in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setclr.losses import NAMED, parse
from setclr.recipes import RECIPES

REFUSED = {
    "InfoNC()": "loss must be one of .*did you mean 'InfoNCE'",
    "InfoNCE(temprature=1)": "InfoNCE's argument must be one of .*did you mean 'temperature'",
    "InfoNCE(temperature=-1)": "temperature must be > 0, got -1",
    "InfoNCE": "loss must be an expression",
    "3": "loss must be an expression",
    "InfoNCE(": "loss must be an expression",
    "InfoNCE() + 3": "losses are added, and multiplied or divided by a number",
    "InfoNCE() * GroCo()": "losses are added, and multiplied or divided by a number",
    "InfoNCE() / GroCo()": "losses are added, and multiplied or divided by a number",
    "InfoNCE() / 0": "divisor must be > 0, got 0",
    "learnable(0.07)": "loss must be an expression",
    "InfoNCE(learnable(-1))": "learnable must be >= 0.01 and <= 1, got -1",
    "InfoNCE(learnable(0.0))": "learnable must be >= 0.01 and <= 1, got 0.0",
    "'a' * 99999999999": "got \"'a'\"",
    "InfoNCE() * 'a'": "multiplied or divided by a number",
    "InfoNCE(10 ** 9)": "an argument must be a number",
    "InfoNCE([1])": "an argument must be a number",
    "InfoNCE(*[1])": "an argument must be a number",
    "InfoNCE(**{'temperature': 1})": "an argument must be a number",
    "InfoNCE(temperature=1, temperature=2)": "must name temperature once, got it 2 times",
    "InfoNCE(0.5j)": "an argument must be a number",
    "InfoNCE(--1)": "an argument must be a number",
    "2 * 3 * QARe()": "got '2 \\* 3 \\* QARe\\(\\)'",
    "InfoNCE() - QARe()": "losses are added",
    "Rotation() + QARe()": "Rotation\\(\\) is a baseline and stands alone",
    "float('1')": "loss must be an expression",
    "learnable(1e50) * QARe()": "learnable must be 1e-",
    "InfoNCE(" + 400 * "1" + ")": "temperature must be 1e-30 to 1e30",
    "__import__('os').getcwd()": "loss must be an expression such as",
    "\0": "loss must be an expression such as",
    900 * "(": "loss must be an expression such as",
    "-" * 2000 + "1": "at most 1000 characters, got 2001",
    " + ".join(1500 * ["QARe()"]): "at most 1000 characters",
    "+".join(140 * ["QARe()"]): "at most 400 parts",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_is_not_in_the_language_is_refused_in_words(text):
    with pytest.raises(ValueError, match=REFUSED[text]) as refused:
        parse(text)
    assert len(str(refused.value)) < 1500


def test_every_recipes_loss_is_in_the_language():
    for recipe in RECIPES.values():
        assert repr(parse(repr(recipe.parsed_loss))) == repr(recipe.parsed_loss)


SIGNS = st.sampled_from(
    ["+", "*", "/", "-", "(", ")", ",", "=", "'", "1", "1e9", "temperature", "[", "{", "."]
)


@given(st.lists(st.one_of(SIGNS, st.sampled_from(sorted(NAMED))), max_size=30).map("".join))
def test_any_text_is_a_loss_or_a_value_error(text):
    try:
        loss = parse(text)
    except ValueError:
        return
    assert repr(parse(repr(loss))) == repr(loss)
