"""Files in which another delimiter, qualifier, header or footer than the right one is tempting."""

from __future__ import annotations

_WORDS = ("alpha", "beta", "gamma", "delta", "eps", "zeta")


def _rows(form: str, count: int = 59) -> bytes:
    """Rows by a pattern: `i` is the number of the row, `w`, `v` and `u` are words, `h` and `m` an hour and a minute."""
    rows = []
    for number in range(1, count + 1):
        words = {name: _WORDS[number * step % 6] for name, step in (("w", 1), ("v", 7), ("u", 5))}
        rows.append(form.format(i=number, h=f"{number % 24:02}", m=f"{number:02}", n=number * 7 % 100, **words))
    return "".join(row + "\n" for row in rows).encode()


DIALECT_FILES: dict[str, bytes] = {
    # The right delimiter separates texts, a wrong one cuts the only value of a type.
    "decimal_commas_behind_texts.csv": b"Nr;Name;Ort;Bemerkung;Betrag\n" + _rows("{i};{w};{v};{u};{n},{m}"),
    "decimal_commas_no_header.csv": _rows("K{i};{w};{v};{u};{n},{m}"),
    "times_behind_tabs.tsv": b"k\tn\to\tz\n" + _rows("K{i}\t{w}\t{v}\t{h}:{m}"),
    "times_behind_tabs_no_header.tsv": _rows("K{i}\t{w}\t{v}\t{h}:{m}:{m}"),
    "times_behind_bars.txt": b"Kunde|Name|Ort|Zeit\n" + _rows("K{i}|{w}|{v}|2024-01-01 {h}:{m}"),
    "semicolons_in_texts.csv": b"k,n,o,z\n" + _rows("K{i},{w},{v},a;{i}"),
    "pairs_of_numbers_in_texts.tsv": b"k\tn\to\tz\n" + _rows("K{i}\t{w}\t{v}\t{i},{n}"),
    "documents_in_texts.tsv": _rows('{i}\t{{"a":{i},"b":"{w}"}}'),
    # Colons of values.
    "list_of_timestamps.csv": b"t\n" + _rows("2024-01-01 {h}:{m}:00"),
    "list_of_times.csv": _rows("{h}:{m}"),
    "list_of_offsets.csv": b"t\n2024-01-01 10:00:00+01:00\n2024-01-01 10:00:00Z\n",
    "list_of_hardware_addresses.txt": _rows("00:1b:44:11:3a:{m}"),
    "list_of_addresses.txt": _rows("https://example.org/a?b={i}"),
    "list_of_machines.txt": _rows("fe80::1:{i}"),
    "log.txt": _rows("2024-01-02 10:11:{m} something happened {i}"),
    "password_file.txt": _rows("{w}{i}:x:{i}:{i}:{w},,,:/srv/{w}{i}:/bin/sh"),
    # A qualifier that only some rows need.
    "few_qualified.csv": b"id,amount,comment\n" + b"".join(
        b'%d,%d.50,%s\n' % (number, number, b'"late, twice"' if number % 30 == 7 else b"") for number in range(300)
    ),
    "one_qualifier_broken.csv": b"id,name\n" + b"".join(
        b'%d,"%s"\n' % (number, b'5" pipe' if number == 40 else b"name %d" % number) for number in range(200)
    ),
    # Rows behind the others.
    "cut_transfer.csv": b"id,name,qty\n1,a,2\n2,b,3\n3,c",
    "last_row_too_long.csv": b"id,name,qty\n1,a,2\n2,b,3\n3,c,4,5\n",
    "cut_in_first_text.csv": b"name,qty\nann,2\nbob,3\ncar",
    "mixed_row_ends.csv": b"a,b\r\n1,2\n3,4\r5,6\n",
    "sum_behind.csv": b"id;name;v\n1;a;2\n2;b;3\nSum;5\n",
    # First rows.
    "null_in_first_row.csv": b"1,NA,3\n" + _rows("{i},{n},{i}"),
    "null_in_first_row.tsv": b"1\t\\N\t2024-01-01\n" + _rows("{i}\t{n}\t2024-01-{h}", 20),
    "dash_in_first_row.csv": b"1,-,3\n" + _rows("{i},{n},{i}"),
    "comment_within.csv": b"# x\n# y\nid,v\n1,2\n#3,4\n5,6\n",
    "double_bars.txt": b"a||b||c\n1||x||2\n2||y||3\n",
    "separator_line.csv": b"sep=;\r\nid;name\r\n1;a\r\n2;b\r\n",
    "separator_line_below_it.csv": b"sep=;\nReport\nid;name;v\n1;a;2\n2;b;3\n",
    "empty_last_column.csv": b"1,2,\n3,4,\n5,6,\n",
    "padded_title.csv": b"Report 2024,,\nid,name,v\n1,a,2\n2,b,3\n",
    "two_header_rows.csv": b",,2023,2023\nid,name,Q1,Q2\n1,a,2,3\n2,b,3,4\n",
    "units.csv": b"time,temp,hum\ns,degC,%\n0.0,21.5,40\n0.1,21.6,41\n0.2,21.4,40\n",
    "words_in_first_data_row.csv": b"name,age,score\nbob,,unknown\nann,5,6\njoe,7,8\n",
    "row_names.txt": b"a,b\n1,2,3\n2,3,4\n3,4,5\n",
    "delimiter_behind_rows.csv": b"id,name\n1,a,\n2,b,\n3,c,\n",
    # Quotes inside of values: text, unless two of a row may have a delimiter between them.
    "inch_marks.csv": b'id,size,note\n1,5" pipe,a\n2,"6, or 7",b\n3,3" x 4",c\n' + _rows('{i},{n}" pipe,"{w}, {v}"'),
    "text_after_quotes.csv": b'id,size,note\n1,5" pipe,a\n2,"6, or 7",b\n3,"x" y,c\n' + _rows('{i},{n},"{w}, {v}"'),
    "missing_delimiter_behind_many.csv": b"id,price,name\n"
    + _rows('{i},{i}.5,"thing, no {i}"', 60)
    + _rows('1{h}{m},2.5,5" nail', 12)
    + b'200,7.00"Pillow, 7"\n',
    "text_after_quotes_and_a_pair.csv": b"id,price,name\n"
    + _rows('{i},{i}.5,"thing, no {i}"', 60)
    + _rows('1{h}{m},2.5,5" nail', 3)
    + b'200,"x" y "a,b" c\n202,7.00"P,"7" q\n',
    "blanks_around_quotes.csv": b"id,note,more\n"
    + _rows('{i},"{w}, {v}",{u}')
    + b'61, "y", z\n62, "a, b",c\n63,k, "l"\n',
    "missing_delimiter_before_quotes.csv": b"id,price,name,note\n"
    + _rows('{i},{n}.00,"Pillow, {i}",n', 9)
    + b'10,7.00"Pillow, 7",n\n',
    "delimiter_behind_header.csv": b"id,name,\n1,a\n2,b\n3,c\n",
}  # fmt: skip
