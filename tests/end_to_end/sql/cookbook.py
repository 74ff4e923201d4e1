"""Runs the questions of docs/sql.md over the data set `fleet` of the current directory.

    cookbook.py duckdb|spark DOCUMENT    prints {name: {"columns": [...], "rows": [[...], ...]}, ...} as JSON
"""

import json
import re
import sys


def blocks(document):
    """Name and text of every block of SQL, in order."""
    text = open(document, encoding="utf-8").read()
    return re.findall(r"^```sql (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def statements(text):
    return [statement.strip() for statement in text.split(";\n") if statement.strip(" ;\n")]


def plain(value):
    """What both engines' numbers are in JSON."""
    if value is None or isinstance(value, (str, int)):
        return value
    return float(value)


def duckdb_engine():
    import duckdb

    connection = duckdb.connect()

    def run(statement):
        cursor = connection.execute(statement)
        names = [column[0] for column in cursor.description or []]
        return names, cursor.fetchall()

    return run


def spark_engine():
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def run(statement):
        frame = session.sql(statement)
        return frame.columns, [list(row) for row in frame.collect()]

    return run


def main(engine, document):
    run = {"duckdb": duckdb_engine, "spark": spark_engine}[engine]()
    answers = {}
    for name, text in blocks(document):
        if name in ("duckdb", "spark") and name != engine:
            continue
        for statement in statements(text):
            columns, rows = run(statement.rstrip(";"))
        if name != engine:
            answers[name] = {"columns": columns, "rows": [[plain(value) for value in row] for row in rows]}
    json.dump(answers, sys.stdout, ensure_ascii=False)


main(*sys.argv[1:])
