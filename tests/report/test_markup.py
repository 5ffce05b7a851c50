"""No text becomes markup, wherever it comes from."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from headrace.report.markup import Markup, digits, element, escaped


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.title: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.title = dict(attributes).get("title")

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=200))
def test_texts_are_read_as_they_are(text: str) -> None:
    reader = _Reader()
    reader.feed(element("p", text, title=text))
    reader.close()
    assert reader.tags == ["p"]
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    assert (reader.text, reader.title) == (shown, shown)


def test_a_table_with_a_bad_name() -> None:
    assert escaped("<script>alert('x')</script>") == "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;"
    assert element("td", '"><img src=x>', title='" onload="x') == (
        '<td title="&quot; onload=&quot;x">&quot;&gt;&lt;img src=x&gt;</td>'
    )


def test_control_characters_are_shown() -> None:
    assert escaped("a\x1b[2Jb\x00") == "a\\x1b[2Jb\\x00"


def test_markup_is_not_escaped_twice() -> None:
    assert element("p", Markup("<b>x</b>"), "<") == "<p><b>x</b>&lt;</p>"


def test_attributes() -> None:
    assert element("rect", x=0.04, y=12, width=3.25, hidden=False, rx=None) == '<rect x="0" y="12" width="3.2"/>'
    assert element("input", aria_label="a", class_="b", required=True) == (
        '<input aria-label="a" class="b" required></input>'
    )


def test_coordinates_are_short() -> None:
    assert [digits(value) for value in (0.0, 1.0, 12.34, 999.96, -0.04)] == ["0", "1", "12.3", "1000", "-0"]
