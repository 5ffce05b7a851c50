"""Every message about tasks, their order, their variables and expressions, as the user reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots import assert_snapshot
from tests.unit.model.packages import message

HEAD = """\
headrace: 1
package: control
parameters:
  day: {type: date, default: 2024-01-31}
  limit: {type: integer, default: 5}
  names: {type: list, default: [a, b]}
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
  server: {type: postgres, host: db}
  nowhere: {type: "null"}
layouts:
  one: {delimiter: ";", columns: [{name: id, type: int32}]}
variables:
  count: {type: integer, value: 0}
  ready: {type: boolean}
  found: {type: rows}
  text: {type: string}
"""
FLOW = """\
    data_flow:
      sources: {rows: {connection: inbox, files: "*.csv", layout: one}}
      destinations: {out: {input: rows, connection: warehouse, table: t, target: replace}}
"""


def package(*tasks: str, head: str = HEAD) -> str:
    """A package with these tasks, each a line of YAML (or more)."""
    return f"{head}tasks:\n" + "".join(f"  {task.rstrip()}\n" for task in tasks)


SET = "set: {count: 1}"

CASES: dict[str, str] = {
    # Order
    "circle_of_two": package(f"a: {{{SET}, after: b}}", "b: {set: {ready: true}, after: a}"),
    "circle_of_four": package(
        "start: {set: {text: \"'x'\"}}",
        "a: {set: {}, after: [d, start]}",
        "b: {set: {}, after: a}",
        "c: {set: {}, after: {b: {on: completion}}}",
        "d: {set: {}, after: {c: failure}}",
    ),
    "circle_inside_a_container": package(
        "outer: {sequence: {tasks: {a: {set: {}, after: b}, b: {set: {}, after: a}}}}"
    ),
    "after_itself": package("a: {set: {}, after: a}"),
    "after_nothing": package("prepare: {set: {}}", "load: {set: {}, after: prepair}"),
    "after_task_of_another_container": package(
        "outer: {sequence: {tasks: {inner: {set: {}}}}}", "load: {set: {}, after: {inner: success}}"
    ),
    "after_alone": package("load: {set: {}, after: other}"),
    "after_is_a_number": package("a: {set: {}}", "load: {set: {}, after: 1}"),
    "after_list_of_numbers": package("a: {set: {}}", "load: {set: {}, after: [1]}"),
    "after_outcome_misspelt": package("a: {set: {}}", "load: {set: {}, after: {a: succes}}"),
    "after_with_unknown_key": package("a: {set: {}}", "load: {set: {}, after: {a: {on: success, whem: ready}}}"),
    "join_misspelt": package("a: {set: {}}", "load: {set: {}, after: a, join: al}"),
    "names_in_two_cases": package("load: {set: {}}", "Load: {set: {}}"),
    # What a task is
    "two_kinds": package(f"load: {{{SET}, sequence: {{tasks: {{a: {{set: {{}}}}}}}}}}"),
    "kind_misspelt": package("load: {sequnce: {tasks: {a: {set: {}}}}}"),
    "sequence_without_tasks": package("load: {sequence: {tasks: {}}}"),
    "sequence_is_a_list": package("load: {sequence: [a, b]}"),
    "handler_of_no_event": package("load: {set: {}, on: {success: {tasks: {a: {set: {}}}}}}"),
    "handler_without_tasks": package("load: {set: {}, on: {error: {propagate: false}}}"),
    "retry_without_times": package("load: {set: {}, retry: {wait_seconds: 1}}"),
    "retry_factor": package("load: {set: {}, retry: {times: 1, factor: 0.5}}"),
    "retry_of_a_container": package("load: {sequence: {tasks: {a: {set: {}}}}, retry: {times: 2}}"),
    "retry_of_a_variable": package("load: {set: {text: \"'x'\"}, retry: {times: \"${count}\"}}"),
    "timeout_is_text": package("load: {set: {}, timeout_seconds: soon}"),
    "maximum_errors_of_a_leaf": package("load: {set: {}, maximum_errors: 2}"),
    "maximum_errors_of_a_package": package("load: {package: {file: x.yaml}, maximum_errors: 2}"),
    "disabled_by_a_variable": package('load: {set: {}, disabled: "${ready}"}'),
    # Loops
    "foreach_without_values": package("each: {foreach: {item: x, tasks: {a: {set: {}}}}}"),
    "foreach_with_two_lists": package("each: {foreach: {item: x, in: [1], rows: found, tasks: {a: {set: {}}}}}"),
    "foreach_rows_without_columns": package("each: {foreach: {rows: found, tasks: {a: {set: {}}}}}"),
    "foreach_files_without_item": package(
        'each: {foreach: {files: {connection: inbox, pattern: "*"}, tasks: {a: {set: {}}}}}'
    ),
    "foreach_item_and_columns": package(
        "each: {foreach: {item: x, rows: found, as: {n: integer}, tasks: {a: {set: {}}}}}"
    ),
    "foreach_column_type": package("each: {foreach: {rows: found, as: {n: number}, tasks: {a: {set: {}}}}}"),
    "foreach_rows_of_a_text": package("each: {foreach: {rows: text, as: {n: integer}, tasks: {a: {set: {}}}}}"),
    "foreach_rows_unknown": package("each: {foreach: {rows: fuond, as: {n: integer}, tasks: {a: {set: {}}}}}"),
    "foreach_value_twice": package("each: {foreach: {item: x, in: [a, a], tasks: {a: {set: {}}}}}"),
    "foreach_over_a_text": package('each: {foreach: {item: x, in: "${day}", tasks: {a: {set: {}}}}}'),
    "foreach_item_hides_a_variable": package("each: {foreach: {item: Count, in: [1], tasks: {a: {set: {}}}}}"),
    "foreach_item_of_a_loop_around": package(
        "each: {foreach: {item: x, in: [1], tasks: {inner: {foreach: {item: x, in: [2], tasks: {a: {set: {}}}}}}}}"
    ),
    "foreach_range_by_nothing": package(
        "each: {foreach: {item: x, range: {from: 1, to: 3, step: 0}, tasks: {a: {set: {}}}}}"
    ),
    "foreach_range_of_text": package("each: {foreach: {item: x, range: {from: a, to: b}, tasks: {a: {set: {}}}}}"),
    "for_without_condition": package("again: {for: {tasks: {a: {set: {}}}}}"),
    "for_condition_no_truth": package("again: {for: {while: count, tasks: {a: {set: {}}}}}"),
    "for_step_of_no_variable": package("again: {for: {while: ready, step: {cuont: 1}, tasks: {a: {set: {}}}}}"),
    # Variables
    "variable_without_type": package("a: {set: {}}", head=HEAD + "  x: {value: 1}\n"),
    "variable_type_misspelt": package("a: {set: {}}", head=HEAD + "  x: {type: int}\n"),
    "variable_value_and_expression": package("a: {set: {}}", head=HEAD + "  x: {type: integer, value: 1, expr: '2'}\n"),
    "variable_items_of_no_list": package("a: {set: {}}", head=HEAD + "  x: {type: integer, items: date}\n"),
    "variable_rows_with_value": package("a: {set: {}}", head=HEAD + "  x: {type: rows, value: 1}\n"),
    "variable_value_of_another_type": package("a: {set: {}}", head=HEAD + "  x: {type: integer, value: soon}\n"),
    "variable_expression_of_another_type": package("a: {set: {}}", head=HEAD + "  x: {type: date, expr: \"'a'\"}\n"),
    "variable_from_a_variable": package("a: {set: {}}", head=HEAD + '  x: {type: integer, value: "${count}"}\n'),
    "variable_hides_a_parameter": package("a: {set: {}}", head=HEAD + "  Day: {type: date}\n"),
    "variable_hides_a_variable": package("a: {set: {}, variables: {count: {type: integer}}}"),
    "variable_called_system": package("a: {set: {}}", head=HEAD + "  system: {type: date}\n"),
    "set_of_no_variable": package("a: {set: {cuont: 1}}"),
    "set_of_a_parameter": package("a: {set: {day: 1}}"),
    "set_of_another_type": package("a: {set: {count: \"'many'\"}}"),
    "set_of_unknown_type": package("a: {set: {ready: count + 1}}"),
    "set_of_nothing": package('a: {set: {count: ""}}'),
    "set_by_a_reference": package('a: {set: {count: "${limit}"}}'),
    "race_of_two_writers": package("a: {set: {count: 1}}", "b: {set: {count: 2}}"),
    "race_of_a_reader": package("a: {set: {count: 1}}", 'b: {set: {}, when: "count > 0"}'),
    "race_inside_containers": package(
        "a: {sequence: {tasks: {x: {set: {count: 1}}}}}",
        "b: {foreach: {item: i, in: [1], tasks: {y: {set: {text: \"'n' || count\"}}}}}",
    ),
    "race_with_a_file": package(
        "a: {set: {text: \"'x'\"}}", 'b: {file: {delete: "${text}"}}'
    ),
    "race_of_alternatives_by_any": package(
        "z: {set: {}}",
        "a: {set: {count: 1}, after: {z: success}}",
        "b: {set: {count: 2}, after: {z: completion}}",
    ),
    # Expressions and references
    "when_unknown_name": package('a: {set: {}, when: "cuont > 1"}'),
    "when_no_truth": package("a: {set: {}, when: count}"),
    "when_no_truth_known": package("a: {set: {}, when: limit}"),
    "when_of_two_expressions": package('a: {set: {}, when: "true) AS value, (true"}'),
    "when_syntax": package('a: {set: {}, when: "count >"}'),
    "when_of_a_constraint": package("a: {set: {}}", "b: {set: {}, after: {a: {when: count}}}"),
    "when_reads_a_file": package("a: {set: {}, when: \"(SELECT count(*) > 0 FROM read_csv('x.csv'))\"}"),
    "when_of_a_variable_of_its_own": package("a: {set: {}, variables: {mine: {type: boolean}}, when: mine}"),
    "when_of_rows": package('a: {set: {}, when: "len(found) > 0"}'),
    "item_behind_its_loop": package(
        "each: {foreach: {item: x, in: [1], tasks: {a: {set: {}}}}}", 'b: {set: {}, after: each, when: "x = 1"}'
    ),
    "error_outside_of_handlers": package('a: {set: {text: "system.error"}}'),
    "reference_to_rows": package('a: {file: {delete: "${found}"}}'),
    "reference_in_sql": package('a: {sql: {connection: warehouse, text: "DROP TABLE ${text}"}}'),
    # Leaves
    "sql_without_text": package("a: {sql: {connection: warehouse}}"),
    "sql_with_two_texts": package("a: {sql: {connection: warehouse, text: SELECT 1, file: x.sql}}"),
    "sql_without_its_file": package("a: {sql: {connection: warehouse, file: sql/missing.sql}}"),
    "sql_connection_unknown": package("a: {sql: {connection: warehuose, text: SELECT 1}}"),
    "sql_of_files": package("a: {sql: {connection: inbox, text: SELECT 1}}"),
    "sql_of_null": package("a: {sql: {connection: nowhere, text: SELECT 1}}"),
    "sql_affected_into_text": package("a: {sql: {connection: warehouse, text: DELETE FROM t, affected: text}}"),
    "sql_row_into_nothing": package("a: {sql: {connection: warehouse, text: SELECT 1 AS n, row: {n: n}}}"),
    "sql_rows_into_an_integer": package("a: {sql: {connection: warehouse, text: SELECT 1, rows: count}}"),
    "process_without_command": package("a: {process: {command: []}}"),
    "process_of_a_shell": package("a: {process: {command: ls -l}}"),
    "process_releases_a_server": package("a: {process: {command: [ls], releases: [server]}}"),
    "process_releases_nothing": package("a: {process: {command: [ls], releases: [warehose]}}"),
    "file_does_nothing": package("a: {file: {connection: inbox}}"),
    "file_does_two_things": package("a: {file: {copy: a, move: b, to: c}}"),
    "file_without_place": package("a: {file: {copy: a}}"),
    "file_deletes_to_a_place": package("a: {file: {delete: a, to: b}}"),
    "file_compresses_a_copy": package("a: {file: {copy: a, to: b, compression: gzip}}"),
    "file_of_a_database": package("a: {file: {delete: a, connection: warehouse}}"),
    "python_without_function": package("a: {python: {arguments: {x: 1}}}"),
    "python_result_of_no_variable": package("a: {python: {function: 'm:f', result: nothing}}"),
    "switch_changes_nothing": package("a: {switch: {connection: server, table: t, partition: p}}"),
    "switch_of_files": package("a: {switch: {connection: inbox, table: t, partition: p, out: o}}"),
    "generate_unknown_table": package("a: {generate: {tpch: ordres, out: data}}"),
    "foreach_files_of_a_database": package(
        'a: {foreach: {item: f, files: {connection: warehouse, pattern: "*"}, tasks: {b: {set: {}}}}}'
    ),
    "foreach_query_of_files": package(
        "a: {foreach: {query: {connection: inbox, text: SELECT 1}, as: {n: integer}, tasks: {b: {set: {}}}}}"
    ),
    # Transactions
    "transaction_of_nothing": package("s: {sequence: {transaction: warehose, tasks: {a: {set: {}}}}}"),
    "transaction_of_files": package(
        "s: {sequence: {transaction: inbox, tasks: {a: {sql: {connection: warehouse, text: SELECT 1}}}}}"
    ),
    "transaction_of_a_process": package(
        "s: {sequence: {transaction: warehouse, tasks: {a: {process: {command: [ls]}}}}}"
    ),
    "transaction_elsewhere": package(
        "s: {sequence: {transaction: warehouse, tasks: {a: {sql: {connection: server, text: SELECT 1}}}}}"
    ),
    "transaction_of_a_flow_elsewhere": package(
        "s:\n    sequence:\n      transaction: server\n      tasks:\n        load:\n      "
        + FLOW.replace("\n", "\n      ").rstrip()
    ),
    "transaction_of_single_appends": package(
        "s:\n    sequence:\n      transaction: server\n      tasks:\n        load:\n      "
        + FLOW.replace("\n", "\n      ").rstrip().replace("connection: warehouse", "connection: server").replace(
            "target: replace", "target: append, load: single"
        )
    ),
    "transaction_with_a_lock": package(
        "s:\n    sequence:\n      transaction: server\n      tasks:\n        load:\n      "
        + FLOW.replace("\n", "\n      ").rstrip().replace("connection: warehouse", "connection: server").replace(
            "target: replace", "target: replace, lock: true"
        )
    ),
    "transaction_of_two_flows_into_one_table": package(
        "s:\n    sequence:\n      transaction: warehouse\n      tasks:\n        load:\n      "
        + FLOW.replace("\n", "\n      ").rstrip()
        + "\n        more:\n      "
        + FLOW.replace("\n", "\n      ").rstrip()
    ),
    "transaction_of_vacuum": package(
        "s: {sequence: {transaction: server, tasks: {a: {sql: {connection: server, text: VACUUM, "
        "transaction: false}}}}}"
    ),
    "transaction_with_failure": package(
        "s: {sequence: {transaction: server, tasks: {a: {sql: {connection: server, text: SELECT 1}}, "
        "b: {sql: {connection: server, text: SELECT 2}, after: {a: failure}}}}}"
    ),
    "transaction_with_everything": package(
        "s: {maximum_errors: 1, sequence: {transaction: server, tasks: {a: {sql: {connection: server, text: SELECT 1}, "
        "retry: {times: 1}, timeout_seconds: 5, when: ready, disabled: true, on: {error: {tasks: {x: {set: {}}}}}}}}}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"task_{name}", message(tmp_path, CASES[name]))


def test_every_case_is_another_package() -> None:
    assert len(set(CASES.values())) == len(CASES)
