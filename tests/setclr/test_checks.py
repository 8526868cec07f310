"""Choices: short lists are printed, long ones are not."""

import pytest

from setclr.checks import choice, nearest

MANY = [f"paper-table{i}-{method}" for i in range(9) for method in ("infonce", "groco", "mmcl")]


def test_a_short_list_is_printed_with_the_nearest():
    with pytest.raises(ValueError) as error:
        choice("fruit", "appel", ["apple", "pear"], hint="eat it")
    said = "fruit must be one of 'apple', 'pear', got 'appel'; did you mean 'apple'?; eat it"
    assert str(error.value) == said


@pytest.mark.parametrize("value", ["paper-tabel3-grocco", "", None, 3])
def test_of_a_long_list_the_three_nearest_are_named(value):
    with pytest.raises(ValueError, match="recipe must be one of the 27 there are, got ") as error:
        choice("recipe", value, MANY, hint="recipes lists them")
    message = str(error.value)
    assert message.endswith("; recipes lists them")
    if value == "paper-tabel3-grocco":
        assert message.count("paper-table") == 3 and "did you mean 'paper-table3-groco' or" in message
    assert choice("recipe", MANY[5], MANY) == MANY[5]


def test_parts_of_a_name_find_it():
    assert nearest("tabl4 mmcl", MANY, 1) == ["paper-table4-mmcl"]
    assert nearest("4", ["a-4", "b-5"], 2) == ["a-4", "b-5"]
    assert nearest("", MANY, 3) == []
