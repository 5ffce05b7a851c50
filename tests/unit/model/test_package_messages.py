"""Every message about a package, as the user reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE, change, message

SOURCE = "rows: {connection: inbox, files: orders.tbl, layout: orders}"
DESTINATION = "out: {input: rows, connection: warehouse, table: orders, target: replace}"
FLOW = "    data_flow:\n"
FOREACH = (
    COMPLETE[: COMPLETE.index("tasks:")]
    + """\
tasks:
  each:
    foreach:
      item: name
      in: ${tables}
      tasks:
        load:
          data_flow:
            sources:
              rows: {connection: inbox, files: "${name}.tbl", layout: orders}
            destinations:
              out: {input: rows, connection: warehouse, table: "${name}", target: replace}
"""
)

CASES: dict[str, str | bytes] = {
    # The file and its YAML
    "yaml_empty": "",
    "yaml_only_comment": "# nothing\n",
    "yaml_list_instead_of_package": "- a\n- b\n",
    "yaml_text_instead_of_package": "hello\n",
    "yaml_tab": "headrace: 1\npackage: x\ntasks:\n\tload: 1\n",
    "yaml_colon_in_text": "headrace: 1\npackage: a: b\n",
    "yaml_list_not_closed": "headrace: 1\npackage: [a, b\ntasks: {}\n",
    "yaml_mapping_not_closed": "headrace: 1\nconnections: {a: {type: files}\ntasks:\n  x: 1\n",
    "yaml_indentation": "headrace: 1\n  package: x\n",
    "yaml_indentation_outwards": "tasks:\n    a: 1\n  b: 2\n",
    "yaml_quote_not_closed": 'headrace: 1\npackage: "x\ntasks: {}\n',
    "yaml_reserved_character": "headrace: 1\npackage: @x\n",
    "yaml_percent": "headrace: 1\npackage: %x\n",
    "yaml_unknown_escape": 'headrace: 1\npackage: "a\\qb"\n',
    "yaml_escape_out_of_range": 'headrace: 1\npackage: "\\UFFFFFFFF"\n',
    "yaml_control_character": "headrace: 1\npackage: a\x01b\n",
    "yaml_key_without_colon": "headrace: 1\npackage\ntasks:\n  a: 1\n",
    "yaml_not_utf8": b"headrace: 1\npackage: caf" + b"\xe9\n",
    "yaml_utf16": "headrace: 1\n".encode("utf-16"),
    "yaml_duplicate_key": change("package: sales", "package: sales\npackage: other"),
    "yaml_duplicate_keys_in_two_places": change("package: sales", "package: sales\npackage: other").replace(
        "target: replace", "target: replace, target: create"
    ),
    "yaml_merge_key": change(DESTINATION, "out: {<<: {input: rows}, connection: warehouse}"),
    "yaml_custom_tag": change("package: sales", "package: !python/name:os.system sales"),
    "yaml_standard_tag": change("package: sales", "package: !!str sales"),
    "yaml_integer_key": change("  orders:\n    delim", "  2024:\n    delim"),
    "yaml_null_key": change("  orders:\n    delim", "  null:\n    delim"),
    "yaml_list_key": change("package: sales", "package: sales\n[a, b]: c"),
    "yaml_several_documents": COMPLETE + "---\nheadrace: 1\n",
    "yaml_undefined_alias": change("files: orders.tbl", "files: *.tbl"),
    "yaml_alias_without_anchor": change("files: orders.tbl", "files: *orders"),
    "yaml_reference_in_braces_without_quotes": change("files: orders.tbl", "files: ${mode}"),
    "yaml_placeholder_without_quotes": "headrace: 1\nfiles: {stream}.tbl\n",
    "yaml_recursive_alias": "headrace: 1\ntasks: &t\n  load: *t\n",
    "yaml_alias_bomb": "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    + "".join(f"{n}: &{n} [{','.join([f'*{p}'] * 10)}]\n" for p, n in zip("abcde", "bcdef", strict=True)),
    "yaml_too_deep": "a: " + "[" * 100 + "]" * 100,
    "yaml_too_large": b"#" * 1_000_001,
    "yaml_half_surrogate": 'headrace: 1\npackage: "\\uD800"\n',
    # Keys
    "version_missing": change("headrace: 1\n", ""),
    "version_newer": change("headrace: 1", "headrace: 2"),
    "version_text": change("headrace: 1", 'headrace: "1"'),
    "version_true": change("headrace: 1", "headrace: true"),
    "key_of_a_later_version": change("package: sales", "package: sales\nschedule: daily"),
    "key_misspelt_top": change("connections:", "conections:"),
    "key_misspelt_in_destination": change("target: replace", "tagret: replace"),
    "key_unknown_far": change("layout: orders}", "layout: orders, zzz: 1}"),
    "key_unknown_in_column": change("nullable: false", "nulable: false"),
    "key_with_control_characters": change("package: sales", 'package: sales\n"a\\e[31m\\nb": 1'),
    "key_very_long": change("package: sales", f"package: sales\n{'z' * 100}: 1"),
    "key_missing_target": change(", target: replace", ""),
    "key_missing_tasks": COMPLETE[: COMPLETE.index("tasks:")],
    "key_missing_column_type": change("{name: id, type: int64, nullable: false}", "{name: id}"),
    "many_problems": change("target: replace", "target: replce, load: stagd").replace(
        "layout: orders}", "layuot: orders}"
    ),
    "more_than_twenty_problems": change(
        "package: sales", "package: sales\n" + "\n".join(f"zz{n}: 1" for n in range(25))
    ),
    # Kinds of values
    "text_expected_integer_found": change("package: sales", "package: 2024"),
    "text_expected_decimal_found": change("table: orders", "table: 1.10"),
    "text_expected_boolean_found": change("files: orders.tbl", "files: true"),
    "text_expected_null_found": change("table: orders", "table: "),
    "text_expected_list_found": change("table: orders", "table: [a, b]"),
    "boolean_expected_no_found": change("nullable: false", "nullable: no"),
    "boolean_expected_integer_found": change("nullable: false", "nullable: 0"),
    "integer_expected_text_found": change("package: sales", "package: sales\nstreams: eight"),
    "integer_expected_octal_found": change("package: sales", "package: sales\nstreams: 010"),
    "integer_expected_decimal_found": change("package: sales", "package: sales\nstreams: 1.5"),
    "integer_out_of_range": change("package: sales", "package: sales\nstreams: 0"),
    "mapping_expected_text_found": change("{type: files, path: data}", "data"),
    "mapping_expected_list_found": change("  inbox: {type: files, path: data}\n", "  - inbox\n").replace(
        "  warehouse: {type: duckdb, path: w.duckdb}\n", ""
    ),
    "list_expected_text_found": change("      - {name: id, type: int64, nullable: false}\n", "      id\n").replace(
        '      - {name: amount, type: "decimal(15,2)"}\n', ""
    ),
    "list_items_of_wrong_kind": change("files: orders.tbl", "files: [a, 5]"),
    "choice_misspelt": change("target: replace", "target: repalce"),
    "choice_far": change("target: replace", "target: upsert"),
    "choice_of_wrong_kind": change("target: replace", "target: 5"),
    "memory_unit": change("package: sales", "package: sales\nmemory: 1gb"),
    "memory_number": change("package: sales", "package: sales\nmemory: 1000"),
    "affinity": change("package: sales", "package: sales\naffinity: sockets"),
    "memory_zero": change("package: sales", "package: sales\nmemory: 0GB"),
    "name_of_package": change("package: sales", "package: my sales"),
    "name_of_task": change("  load:\n", "  my.load:\n"),
    "name_of_parameter": change("  day:", "  the-day:"),
    "name_of_parameter_reserved": change("  day:", "  system:"),
    # Parameters
    "parameter_type_unknown": change("type: date", "type: datum"),
    "parameter_default_wrong_type": change("default: 2024-01-31", "default: tomorrow"),
    "parameter_default_no_such_day": change("default: 2024-01-31", "default: 2024-02-30"),
    "parameter_default_not_allowed": change("default: staged", "default: stagd"),
    "parameter_default_not_a_list": change("default: [orders, returns]", "default: orders"),
    "parameter_default_and_required": change("default: 2024-01-31", "default: 2024-01-31, required: true"),
    "parameter_default_refers_to_parameter": change("default: 2024-01-31", 'default: "${mode}"'),
    "parameter_one_of_empty": change("one_of: [staged, single, view]", "one_of: []"),
    "parameter_items_without_list": change("type: date,", "type: date, items: date,"),
    "parameter_differs_in_case": change("  mode:", "  DAY: {type: date}\n  mode:"),
    # References and expressions
    "reference_misspelt": change("table: orders", 'table: "${moed}"'),
    "reference_unknown": change("table: orders", 'table: "${zzz}"'),
    "reference_system_unknown": change("table: orders", 'table: "${system.usr}"'),
    "reference_not_closed": change("table: orders", 'table: "${mode"'),
    "reference_malformed": change("table: orders", 'table: "${a b}"'),
    "reference_in_literal": change("package: sales", 'package: "${mode}"'),
    "reference_list_in_text": change("table: orders", 'table: "x_${tables}"'),
    "reference_null_in_text": change("default: 2024-01-31", "required: false").replace(
        "table: orders", 'table: "x_${day}"'
    ),
    "reference_environment_missing": change("table: orders", 'table: "${env:TABLE}"'),
    "reference_file_missing": change("table: orders", 'table: "${file:secret.txt}"'),
    "reference_value_not_allowed": change("default: staged, one_of: [staged, single, view]", "default: stagd").replace(
        "target: replace", 'target: replace, load: "${mode}"'
    ),
    "reference_value_of_wrong_kind": change("package: sales", "package: sales\nstreams: ${mode}"),
    "expression_unknown_name": change(FLOW, '    when: "mod = 1"\n' + FLOW),
    "expression_reserved_word": FOREACH.replace("item: name", "item: table")
    .replace("${name}", "${table}")
    .replace("          data_flow:", "          when: \"table = 'a'\"\n          data_flow:"),
    "expression_syntax": change(FLOW, '    when: "1 +"\n' + FLOW),
    "expression_not_boolean": change(FLOW, '    when: "upper(mode)"\n' + FLOW),
    "expression_null": change(FLOW, '    when: "NULL"\n' + FLOW),
    "expression_with_reference": change(FLOW, "    when: \"'${mode}' = 'x'\"\n" + FLOW),
    "expression_conversion": change("layout: orders}", 'layout: orders, missing: {expr: "mode::INTEGER"}}'),
    "expression_value_not_allowed": change("layout: orders}", "layout: orders, missing: {expr: \"'skp'\"}}"),
    "expression_closes_parenthesis": change(FLOW, '    when: "1), (2"\n' + FLOW),
    "expression_infinite": change("layout: orders}", 'layout: orders, missing: {expr: "1 / 0"}}'),
    "expression_not_text": change("layout: orders}", "layout: orders, missing: {expr: 5}}"),
    "condition_number": change(FLOW, "    when: 5\n" + FLOW),
    # Connections and layouts
    "connection_type_unknown": change("type: duckdb", "type: sqlserver"),
    "connection_type_misspelt": change("type: duckdb", "type: duckbd"),
    "connection_type_missing": change("{type: duckdb, path: w.duckdb}", "{path: w.duckdb}"),
    "connection_key_unknown": change("path: w.duckdb", "file: w.duckdb"),
    "connection_in_memory": change("path: w.duckdb", 'path: ":memory:"'),
    "connection_misspelt": change("connection: warehouse", "connection: warehose"),
    "connection_of_source_is_no_folder": change("connection: inbox", "connection: warehouse"),
    "connection_of_destination_is_folder": change("connection: warehouse", "connection: inbox"),
    "layout_misspelt": change("layout: orders", "layout: order"),
    "layout_file_missing": change("layout: orders}", "layout: other}").replace(
        "layouts:\n", "layouts:\n  other: {file: layouts/other.yaml}\n"
    ),
    "layout_file_with_other_keys": change('    delimiter: "|"\n', '    file: x.yaml\n    delimiter: "|"\n'),
    "layout_delimiter_line_break": change('delimiter: "|"', 'delimiter: "\\n"'),
    "layout_delimiter_of_a_column": change("type: int64, nullable: false}", "type: int64, delimiter: ''}"),
    "layout_row_end_letters": change('delimiter: "|"', 'delimiter: "|"\n    row_end: ende'),
    "layout_escape_is_the_qualifier": change('delimiter: "|"', 'delimiter: "|"\n    qualifier: "~"\n    escape: "~"'),
    "layout_comment_in_the_delimiter": change('delimiter: "|"', 'delimiter: "|#"\n    comment: "#"'),
    "layout_row_end_begins_with_the_delimiter": change('delimiter: "|"', 'delimiter: "|"\n    row_end: "|\\n"'),
    "layout_delimiter_begins_with_a_line_break": change('delimiter: "|"', 'delimiter: "\\n|"'),
    "layout_kept_by_a_number": change('delimiter: "|"', 'delimiter: "|"\n    extra_fields: keep'),
    "layout_row_ends_as_data_and_fill": change(
        'delimiter: "|"', 'delimiter: "|"\n    row_end_in_fields: data\n    short_rows: fill'
    ),
    "layout_row_ends_as_data_and_trailing": change(
        'delimiter: "|"', 'delimiter: "|"\n    row_end_in_fields: data\n    trailing_delimiter: true'
    ),
    "layout_delimiter_backslash_t": change('delimiter: "|"', "delimiter: \\t"),
    "layout_delimiter_letter": change('delimiter: "|"', "delimiter: x"),
    "layout_delimiter_missing": change('    delimiter: "|"\n', ""),
    "layout_qualifier_two_characters": change('delimiter: "|"', 'delimiter: "|"\n    qualifier: \'""\''),
    "layout_qualifier_empty": change('delimiter: "|"', 'delimiter: "|"\n    qualifier: ""'),
    "layout_qualifier_blank": change('delimiter: "|"', 'delimiter: "|"\n    qualifier: " "'),
    "layout_qualifier_not_ascii": change('delimiter: "|"', 'delimiter: "|"\n    qualifier: "\u201c"'),
    "layout_qualifier_is_the_delimiter": change('delimiter: "|"', 'delimiter: "\'"\n    qualifier: "\'"'),
    "layout_qualifier_begins_a_null_token": change(
        'delimiter: "|"', 'delimiter: "|"\n    qualifier: \'"\'\n    null_tokens: [NA, \'""\']'
    ),
    "layout_empty_is_a_value": change('delimiter: "|"', 'delimiter: "|"\n    empty: 0'),
    "layout_empty_has_no_text": change('delimiter: "|"', 'delimiter: "|"\n    empty: {value: ""}'),
    "layout_skip_lines_negative": change('delimiter: "|"', 'delimiter: "|"\n    skip_lines: -1'),
    "layout_footer_rows_too_many": change('delimiter: "|"', 'delimiter: "|"\n    footer_rows: 101'),
    "layout_header_unknown": change('delimiter: "|"', 'delimiter: "|"\n    header: "yes"'),
    "layout_other_columns_without_names": change('delimiter: "|"', 'delimiter: "|"\n    other_columns: ignore'),
    "layout_names_with_delimiters_of_columns": change(
        "{name: id, type: int64", 'header: by_name\n    columns:\n      - {name: id, delimiter: ";", type: int64'
    ).replace("    columns:\n      - header", "    header"),
    "layout_null_token_twice": change('delimiter: "|"', 'delimiter: "|"\n    null_tokens: [NA, NULL, NA]'),
    "layout_null_token_null": change('delimiter: "|"', 'delimiter: "|"\n    null_tokens: [null]'),
    "layout_made_of_another_type": change(
        "{name: id, type: int64, nullable: false}", "{name: id, type: int32, from: row_number}"
    ),
    "layout_made_time_of_another_type": change(
        "{name: id, type: int64, nullable: false}", "{name: id, type: timestamp, from: load_time}"
    ),
    "layout_made_with_settings_of_fields": change(
        "{name: id, type: int64, nullable: false}", "{name: id, type: string, from: file_name, null_tokens: [NA]}"
    ),
    "layout_made_with_a_format": change(
        "{name: id, type: int64, nullable: false}", "{name: id, type: timestamptz, from: load_time, format: yyyy}"
    ),
    "layout_made_from_something_else": change(
        "{name: id, type: int64, nullable: false}", "{name: id, type: int64, from: row_numbers}"
    ),
    "layout_all_columns_are_made": change(
        COMPLETE[COMPLETE.index("    columns:") : COMPLETE.index("tasks:")],
        "    columns:\n      - {name: id, type: int64, from: row_number}\n",
    ),
    "generate_with_made_columns": change(SOURCE, "rows: {generate: {tpch: orders}, layout: orders}").replace(
        "{name: id, type: int64, nullable: false}", "{name: id, type: int64, from: byte_offset}"
    ),
    "partition_key_that_is_made": change(
        DESTINATION, DESTINATION[:-1] + ", load: staged, partition: {hash: {column: id, parts: 2}}}"
    ).replace("{name: id, type: int64, nullable: false}", "{name: id, type: int64, from: byte_offset}"),
    "layout_no_columns": COMPLETE[: COMPLETE.index("    columns:")]
    + "    columns: []\n"
    + COMPLETE[COMPLETE.index("tasks:") :],
    "layout_duplicate_column": change("name: amount", "name: ID"),
    "layout_column_name_empty": change("name: amount", 'name: ""'),
    "type_sql_bigint": change("type: int64", "type: bigint"),
    "type_sql_text": change("type: int64", "type: text"),
    "type_sql_numeric": change("decimal(15,2)", "numeric(15,2)"),
    "type_sql_varchar_without_length": change("type: int64", "type: varchar"),
    "type_upper_case": change("type: int64", "type: INT64"),
    "type_misspelt": change("type: int64", "type: itn64"),
    "type_unknown": change("type: int64", "type: geometry"),
    "type_decimal_without_numbers": change("type: int64", "type: decimal"),
    "type_decimal_without_quotes": change('"decimal(15,2)"', "decimal(15,2)"),
    "type_decimal_too_wide": change("decimal(15,2)", "decimal(39,2)"),
    "type_decimal_scale_too_large": change("decimal(15,2)", "decimal(2,15)"),
    "type_char_too_long": change("type: int64", "type: char(10485761)"),
    "type_with_needless_number": change("type: int64", "type: int64(8)"),
    "type_not_text": change("type: int64", "type: 64"),
    # Tasks
    "task_does_nothing": change(COMPLETE[COMPLETE.index(FLOW) :], "    description: nothing\n"),
    "task_does_two_things": change(FLOW, "    foreach: {item: i, in: [a], tasks: {}}\n" + FLOW),
    "task_kind_misspelt": change("data_flow:", "dataflow:"),
    "task_is_text": COMPLETE[: COMPLETE.index("tasks:")] + "tasks:\n  load: now\n",
    "tasks_empty": COMPLETE[: COMPLETE.index("tasks:")] + "tasks: {}\n",
    "two_sources": change(SOURCE, SOURCE + "\n        more: {connection: inbox, files: x, layout: orders}"),
    "no_source": change(SOURCE, "{}"),
    "input_misspelt": change("input: rows", "input: row"),
    "files_empty_list": change("files: orders.tbl", "files: []"),
    "files_absolute": change("files: orders.tbl", "files: /data/orders.tbl"),
    "files_unknown_placeholder": change("files: orders.tbl", 'files: "orders.{streams}.tbl"'),
    "files_parameter_without_dollar": change("files: orders.tbl", 'files: "orders_{day}.tbl"'),
    "table_three_parts": change("table: orders", "table: a.b.c"),
    "table_in_ledger_schema": change("table: orders", "table: headrace.orders"),
    "columns_source_misspelt": change("target: replace", "target: replace, columns: {total: amuont}"),
    "columns_target_twice": change("target: replace", "target: replace, columns: {total: amount, Total: id}"),
    "columns_empty": change("target: replace", "target: replace, columns: {}"),
    "rejects_limit_negative": change(FLOW, FLOW + "      rejects: {limit: -1}\n"),
    "rejects_percent_above_100": change(FLOW, FLOW + "      rejects: {percent: 100.5}\n"),
    "rejects_percent_too_exact": change(FLOW, FLOW + "      rejects: {per_file: {percent: 0.00001}}\n"),
    "rejects_percent_text": change(FLOW, FLOW + "      rejects: {percent: few}\n"),
    "package_rejects_per_file": change("tasks:", "rejects: {per_file: {limit: 1}}\ntasks:"),
    "generate_table_unknown": change(SOURCE, "rows: {generate: {tpch: order}, layout: orders}"),
    "generate_scale_zero": change(SOURCE, "rows: {generate: {tpch: orders, scale: 0}, layout: orders}"),
    "generate_scale_in_the_gap": change(SOURCE, "rows: {generate: {tpch: orders, scale: 20000}, layout: orders}"),
    "files_in_home": change("path: data", "path: ~/data"),
    "database_in_home": change("path: w.duckdb", "path: ~/w.duckdb"),
    "generate_scale_text": change(SOURCE, "rows: {generate: {tpch: orders, scale: big}, layout: orders}"),
    "generate_with_files": change(SOURCE, "rows: {generate: {tpch: orders}, files: x, layout: orders}"),
    "foreach_item_shadows_parameter": FOREACH.replace("item: name", "item: day").replace("${name}", "${day}"),
    "foreach_item_misspelt": FOREACH.replace('files: "${name}.tbl"', 'files: "${nmae}.tbl"'),
    "foreach_item_outside": FOREACH.replace("tasks:\n  each:", "memory: ${name}\ntasks:\n  each:"),
    "foreach_in_text": FOREACH.replace("in: ${tables}", "in: ${mode}"),
    "foreach_value_twice": FOREACH.replace("in: ${tables}", "in: [a, b, a]"),
    "foreach_value_null": FOREACH.replace("in: ${tables}", "in: [a, null]"),
    "foreach_problem_reported_once": FOREACH.replace("layout: orders}", 'layout: "${mode}"}'),
    "foreach_problem_of_one_value": FOREACH.replace("layout: orders}", 'layout: "${name}"}'),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"package_{name}", message(tmp_path, CASES[name]))
