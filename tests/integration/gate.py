"""A task behind a load that fails until somebody has put a row into the table `gate`: the load is finished, the run is
not, and is resumed.
"""

BEHIND = """
  check:
    after: load
    sql:
      connection: warehouse
      text: |
        SELECT CASE WHEN (SELECT count(*) FROM gate) = 0 THEN error('the gate is closed') ELSE '' END
"""
