"""Orders that go different ways and come together again: the transforms, and what DuckDB says that the rows are."""

from __future__ import annotations

from tests.integration.several_scenes import KEYED, PARTED

# Rows that find no customer get a label by a query, which leaves some out; all go on together.
GUESSED = """
        guessed:
          input: keyed.no_match
          sql: "SELECT 'unknown' AS label, * FROM keyed WHERE amount > 1"
"""
LABELLED = KEYED + GUESSED + "        labelled: {union: {inputs: [keyed, guessed]}}\n"
LABELS = (
    "SELECT id, customer, amount, note, coalesce(label, 'unknown') AS label FROM orders LEFT JOIN customers "
    "ON code = customer WHERE label IS NOT NULL OR amount > 1"
)
# Some outputs of a split come together, once more by a union of a union, with columns that some of them lack.
PIECES = (
    PARTED.replace("split:", "discard: [odd]\n          split:")
    + """
        doubled: {input: parted.big, sql: "SELECT id, amount * 2 AS double FROM parted"}
        halves: {input: parted.rest, split: {even: "id % 2 = 0"}}
        both: {union: {inputs: [halves.rest, doubled], missing: null}}
        pieces: {union: {inputs: [both, parted.small, halves.even], missing: null}}
"""
)
BIG, SMALL, ODD = "amount > 900", "amount < 100", "1000 / customer > 500"
IN_PIECES = f"""
    SELECT id, CASE WHEN {BIG} THEN NULL ELSE customer END AS customer,
           CASE WHEN {BIG} THEN NULL ELSE amount END AS amount, CASE WHEN {BIG} THEN NULL ELSE note END AS note,
           CASE WHEN {BIG} THEN amount * 2 END AS double
    FROM orders WHERE {BIG} OR {SMALL} OR ({ODD}) IS NOT TRUE
"""
