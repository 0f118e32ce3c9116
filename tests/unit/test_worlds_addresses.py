import pytest

from gymsuite.worlds.addresses import addresses, mailboxes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ann@firm.test", ("ann@firm.test",)),
        (" Ann@FIRM.test ", ("ann@firm.test",)),
        ("Ann Lee <ann@firm.test>", ("ann@firm.test",)),
        ('"Lee, Ann" <ann@firm.test>', ("ann@firm.test",)),
        ("bob@firm.test; ann@firm.test,", ("ann@firm.test", "bob@firm.test")),
        ("ann@firm.test, Ann <ANN@firm.test>", ("ann@firm.test",)),
        ("mailto:ann+x@firm.test", ("ann+x@firm.test",)),
        ("ann\uff20firm.test", ("ann@firm.test",)),
        ("", ()),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, found: tuple[str, ...]) -> None:
    assert addresses(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "everybody",
        "ann@firm",
        "ann@firm.test.",
        "ann@firm.test bob@firm.test",
        "ann@firm.test,,bob@firm.test",
        "ann@firm.test\u200b",
        "ann @firm.test",
        "Ann <ann@firm.test",
        "<>",
        "a@b@firm.test",
    ],
)
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="no mail address"):
        addresses(text)


def test_a_tag_leads_to_the_same_mailbox() -> None:
    assert mailboxes("ann+a+b@firm.test, ANN@firm.test") == {"ann@firm.test"}
    assert mailboxes("+a@firm.test") == {"+a@firm.test"}


def test_a_long_text_takes_no_time() -> None:
    for text in ("a" * 4000, "a." * 2000, "a@" * 2000, '"' * 4000, "a@" + "b." * 1999, "," * 4000):
        with pytest.raises(ValueError, match="no mail address"):
            addresses(text)
