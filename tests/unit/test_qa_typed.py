import random
from decimal import Decimal

import pytest

from gymsuite.verify.qa_fold import canonical
from gymsuite.verify.qa_typed import (
    INSUFFICIENT,
    DateGold,
    Gold,
    NumberGold,
    SetGold,
    TextGold,
    typed,
)
from gymsuite.verify.qa_units import spelled_number
from gymsuite.verify.qa_values import Date, read_date, read_quantity


def text(*answers: str) -> TextGold:
    return TextGold(answers=answers)


def number(value: str, unit: str = "", tolerance: str = "0") -> NumberGold:
    return NumberGold(value=Decimal(value), unit=unit, relative_tolerance=Decimal(tolerance))


def members(*items: str) -> SetGold:
    return SetGold(items=tuple((item,) for item in items))


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("Paris", text("paris")),
        ("  The answer is Paris. ", text("Paris")),
        ("the Eiffel Tower", text("Eiffel Tower")),
        ("café", text("Cafe\u0301")),
        ("cafe", text("café")),
        ("“quoted”", text("quoted")),
        ("New\u2013York", text("New-York")),
        ("New York", text("New-York")),
        ("U.S.", text("US")),
        ("İstanbul", text("istanbul")),
        ("\uff21\uff22\uff23", text("abc")),
        ("STRASSE", text("straße")),
        ("Rock 'n' Roll", text("Rock n Roll")),
        ("NYC", text("New York City", "NYC")),
        ("C++", text("C++")),
        ("Smith, James", text("Smith James")),
        ("insufficient evidence", INSUFFICIENT),
        ("1,234", number("1234")),
        ("1 234", number("1234")),
        ("3.0", number("3")),
        ("forty-two", number("42")),
        ("two hundred and five", number("205")),
        ("three thousand and twelve", number("3012")),
        ("-5", number("-5")),
        ("\u22125", number("-5")),
        ("1.5 million", number("1500000")),
        ("2e3", number("2000")),
        ("42 km", number("42", "kilometers")),
        ("42", number("42", "km")),
        ("42000 m", number("42", "km")),
        ("90 minutes", number("1.5", "hours")),
        ("$5", number("5", "usd")),
        ("5 dollars", number("5", "dollar")),
        ("50%", number("50", "percent")),
        ("5 works", number("5", "work")),
        ("3.1416", number("3.14159", tolerance="0.001")),
        ("5 March 2001", DateGold(value="2001-03-05")),
        ("March 5th, 2001", DateGold(value="2001-03-05")),
        ("2001-03-05", DateGold(value="2001-03-05")),
        ("Mar 2001", DateGold(value="2001-03")),
        ("13/12/2001", DateGold(value="2001-12-13")),
        ("on Monday, 5 March 2001", DateGold(value="2001-03-05")),
        ("in 1987", DateGold(value="1987")),
        ("**42**", number("42")),
        ("The answer is: `Paris`.", text("Paris")),
        (r"\boxed{42}", number("42")),
        ("(42)", number("42")),
        ("1987", DateGold(value="1987")),
        ("b, a", members("a", "b")),
        ("b and a", members("a", "b")),
        ("a, b, and c", members("a", "b", "c")),
        ('["b", "a"]', members("a", "b")),
        ("Rock and Roll; Blues", members("Blues", "Rock and Roll")),
        ("a", members("a")),
        ("- b\n- a", members("a", "b")),
        ("1. b\n2) a\n", members("a", "b")),
    ],
)
def test_what_says_the_same_is_right(said: str, gold: Gold) -> None:
    assert typed(said, gold)


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("Paris or London", text("Paris")),
        ("Paris, London", text("Paris")),
        ("Paris / London", text("Paris")),
        ("not Paris", text("Paris")),
        ("", text("Paris")),
        ("the", text("a")),
        ("C", text("C++")),
        ("C#", text("C")),
        ("theatre", text("atre")),
        ("314", text("3.14")),
        ("314", number("3.14")),
        ("30", number("3.0")),
        ("1,23", number("123")),
        ("42 or 43", number("42")),
        ("42 43", number("42")),
        ("between 40 and 44", number("42")),
        ("42 kg", number("42", "km")),
        ("42 km", number("42")),
        ("$5", number("5", "eur")),
        ("50%", number("0.5")),
        ("forty two or three", number("42")),
        ("5 or 6 works", number("5", "work")),
        ("5 works or 6", number("5", "work")),
        ("NaN", number("0")),
        ("1e999999999", number("1")),
        ("2001", DateGold(value="2001-03-05")),
        ("5 March 2001", DateGold(value="2001")),
        ("3/4/2001", DateGold(value="2001-03-04")),
        ("30 February 2001", DateGold(value="2001-02-28")),
        ("1987 or 1988", DateGold(value="1987")),
        ("1986-1988", DateGold(value="1987")),
        ("44 BC", DateGold(value="44")),
        ("a, b, c", members("a", "b")),
        ("a", members("a", "b")),
        ("a or b", members("a", "b")),
        ("- a\n- b\n- c", members("a", "b")),
        ("**Paris** or **London**", text("Paris")),
        ("Paris\nLondon", text("Paris")),
        ("", members("a")),
        ("insufficient evidence, or Paris", INSUFFICIENT),
    ],
)
def test_what_says_something_else_is_wrong(said: str, gold: Gold) -> None:
    assert not typed(said, gold)


def test_an_answer_is_short() -> None:
    assert not typed("word " * 12 + "42", number("42"))
    long = " ".join(f"w{n}" for n in range(20))
    assert typed(long, text(long))  # unless the accepted one is long itself
    assert not typed("a" * 5000, text("a" * 5000))


def test_any_order_of_a_set_is_right_and_any_missing_member_is_wrong() -> None:
    rng = random.Random(3)
    for _ in range(200):
        items = rng.sample(["Alda", "Bo Ek", "C++", "d-e", "Rock and Roll", "f 7"], 4)
        order = rng.sample(items, 4)
        assert typed("; ".join(order), members(*items))
        assert not typed("; ".join(order[:-1]), members(*items))
        assert not typed("; ".join([*order, "zz"]), members(*items))


def test_every_number_reads_back_as_itself() -> None:
    rng = random.Random(5)
    for _ in range(500):
        value = rng.randint(-(10**9), 10**9)
        for shown in (str(value), f"{value:,}", f"{value}.00"):
            assert typed(shown, number(str(value)))
        assert not typed(str(value + 1), number(str(value)))


def test_spelled_numbers_below_a_million_read_back() -> None:
    ones = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    for hundreds in range(1, 10):
        for tens, word in ((20, "twenty"), (90, "ninety")):
            for unit in range(10):
                words = [ones[hundreds], "hundred", "and", word, ones[unit]]
                said = spelled_number([w for w in words if w])
                assert said == hundreds * 100 + tens + unit
    assert spelled_number(["two", "million", "three", "hundred", "thousand"]) == 2_300_000
    assert spelled_number(["forty", "forty"]) is None
    assert spelled_number([]) is None


def test_every_day_reads_back_in_every_form() -> None:
    rng = random.Random(9)
    names = ["January", "February", "March", "April", "May", "June", "July", "August", "September"]
    for _ in range(200):
        year, month, day = rng.randint(1000, 2030), rng.randint(1, 9), rng.randint(1, 28)
        name = names[month - 1]
        for shown in (
            f"{year}-{month:02}-{day:02}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{name[:3]}. {day} {year}",
        ):
            assert read_date(shown) == Date(year, month, day)


def test_folding_twice_changes_nothing() -> None:
    rng = random.Random(11)
    alphabet = "aÉß İ-\u2013“”'\u2019.,;/()3C+#ﬁ①½ـ\u200b\u0301中_"
    for _ in range(2000):
        sample = "".join(rng.choices(alphabet, k=rng.randint(0, 12)))
        once = canonical(sample)
        assert canonical(once) == once, repr(sample)


def test_garbage_is_no_number_and_no_date() -> None:
    rng = random.Random(13)
    for _ in range(3000):
        sample = "".join(rng.choices("0123 .,'-/+e$%kmabc\n²½", k=rng.randint(0, 10)))
        read_quantity(sample)
        read_date(sample)
