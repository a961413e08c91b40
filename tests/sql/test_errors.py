"""Bad texts: each error points to its place, says what is wrong, and names the nearest name.

The place that the carets must be under is between « and ».
"""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import pytest
from tests.sql.test_statements import FORMS

import sash

TABLE = {"ts": [1, 2, 3], "k": ["a", "b", "a"], "x": [1, 2, 3], "amount": [1.5, 2.5, 0.0]}
WINDOW = "window(ts, '10 minutes')"
OVER = "ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
HOP = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR))"
BOUNDS = "window_start, window_end"

#: Text, what the message says, and the nearest name.
BAD: list[tuple[str, str, str | None]] = [
    # no statement
    ("«»", "there is no SQL in this text", None),
    ("«»   -- nothing", "there is no SQL in this text", None),
    ("«SELEC» x FROM t", "SELEC cannot stand here", "SELECT"),
    ("«UPDATE» t SET x = 1", "UPDATE cannot stand here", None),
    ("SELECT«»", "the text ends, where an expression is missing", None),
    ("SELECT x«»", "the text ends, where ',' or FROM is missing", None),
    ("SELECT x FROM«»", "the text ends behind FROM", None),
    # misspelt keywords
    ("SELECT count(*) «FORM» t GROUP BY " + WINDOW, "FORM is no keyword", "FROM"),
    ("SELECT count(*) FROM t «GRUOP» BY " + WINDOW, "GRUOP is no keyword", "GROUP"),
    ("SELECT count(*) FROM t «GROUPBY» " + WINDOW, "GROUPBY is no keyword", "GROUP"),
    ("SELECT count(*) FROM t «WHEER» x > 1 GROUP BY " + WINDOW, "WHEER is no keyword", "WHERE"),
    (
        f"SELECT count(*) FROM t GROUP BY {WINDOW} «HAVNG» count(*) > 1",
        "HAVNG cannot stand here",
        "HAVING",
    ),
    (f"SELECT count(*) FROM t GROUP BY {WINDOW} «LIMT» 3", "LIMT cannot stand here", "LIMIT"),
    (f"SELECT count(*) FROM t GROUP BY {WINDOW} ORDER «YB» 1", "YB cannot stand here", None),
    (f"SELECT count(*) FROM t GROUP «BE» {WINDOW}", "BE cannot stand here behind GROUP", None),
    (
        "SELECT sum(x) OVER («PARTITON» BY k ORDER BY ts) FROM t",
        "PARTITON is no keyword",
        "PARTITION",
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR «PRECEDIN» AND CURRENT "
        "ROW) FROM t",
        "PRECEDIN cannot stand here",
        "PRECEDING",
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT "
        "«ROWS») FROM t",
        "ROWS cannot stand here behind CURRENT",
        "ROW",
    ),
    (f"SELECT sum(x) OVER ({OVER} EXCLUDE «TIE») FROM t", "TIE cannot stand here", "TIES"),
    ("SELECT CASE WHEN x > 1 «THAN» 2 END FROM t", "THAN cannot stand here", "THEN"),
    ("SELECT CASE WHEN x > 1 THEN 2 «FROM» t", "FROM cannot stand here behind CASE", None),
    (f"SELECT count(*) FROM t GROUP BY {WINDOW} «WHERE» x > 1", "stands in the wrong place", None),
    # signs and literals
    (f"SELECT max«(»x FROM t GROUP BY {WINDOW}", "this parenthesis is never closed", None),
    (f"SELECT max(x)«)» FROM t GROUP BY {WINDOW}", ") cannot stand here", None),
    (f"SELECT max(x), «FROM» t GROUP BY {WINDOW}", "FROM cannot stand here", None),
    ("SELECT count(*) FROM t WHERE k = «'»a", "this text has no closing '", None),
    ("SELECT «`»k FROM t", "this name has no closing `", None),
    ("SELECT x «/*» FROM t", "this comment has no closing */", None),
    ("SELECT «1a» FROM t", "1a is neither a number nor a name", None),
    ("SELECT x «§» FROM t", "'§' is no part of SQL", None),
    (
        f'SELECT count(*) FROM t WHERE k = «"a"» GROUP BY {WINDOW}',
        "double quotes are text to some and names to others",
        None,
    ),
    (f"SELECT max(x) AS «'n'» FROM t GROUP BY {WINDOW}", "cannot stand here behind AS", None),
    (f"SELECT max(x) FROM t GROUP BY {WINDOW} LIMIT «many»", "many cannot stand here", None),
    # columns
    (f"SELECT max(«amuont») AS m FROM t GROUP BY {WINDOW}", "column amuont is not there", "amount"),
    (f"SELECT max(x) AS m FROM t GROUP BY «kk», {WINDOW}", "column kk is not there", "k"),
    (f"SELECT max(x) FROM t WHERE «amonut» > 1 GROUP BY {WINDOW}", "amonut is not", "amount"),
    ("SELECT max(x) FROM t GROUP BY window(«tss», '1 hour')", "column tss is not there", "ts"),
    (f"SELECT sum(x) OVER (PARTITION BY «ky» {OVER}) FROM t", "column ky is not there", "k"),
    (f"SELECT «u.k», max(x) FROM t GROUP BY {WINDOW}", "u is not", None),
    (
        f"SELECT «k», max(x) FROM t GROUP BY {WINDOW}",
        "column k is neither grouped nor aggregated",
        None,
    ),
    (
        f"SELECT k, max(x) FROM t GROUP BY k, {WINDOW} HAVING «amount» > 1",
        "column amount is neither grouped nor aggregated",
        None,
    ),
    (
        f"SELECT k, max(x) FROM t GROUP BY k, {WINDOW} ORDER BY «amount»",
        "column amount is neither grouped nor aggregated",
        None,
    ),
    (f"SELECT max(x) + «x» FROM t GROUP BY {WINDOW}", "neither grouped nor aggregated", None),
    (f"SELECT «*» FROM t GROUP BY {WINDOW}", "* has all columns", None),
    (
        f"SELECT max(x) AS m, «min(x) AS m» FROM t GROUP BY {WINDOW}",
        "two columns are called m",
        None,
    ),
    (f"SELECT «window.strat», max(x) FROM t GROUP BY {WINDOW}", "a window has no strat", "start"),
    (
        "SELECT «window.start», max(x) FROM t GROUP BY session_window(ts, '1 hour')",
        "column window.start is neither grouped nor aggregated",
        "session_window.start",
    ),
    (
        f"SELECT extract(«huor» FROM ts), max(x) FROM t GROUP BY 1, {WINDOW}",
        "huor is no unit",
        None,
    ),
    (f"SELECT max(x) FROM t GROUP BY «3», {WINDOW}", "the SELECT list has 1 items, not 3", None),
    (f"SELECT max(x) FROM t GROUP BY {WINDOW} ORDER BY «2»", "has 1 items, not 2", None),
    # functions
    (f"SELECT «mx»(x) FROM t GROUP BY {WINDOW}", "there is no function mx", "max"),
    (f"SELECT «cuont»(*) FROM t GROUP BY {WINDOW}", "there is no function cuont", "count"),
    (
        f"SELECT «count_if»(x > 1) FROM t GROUP BY {WINDOW}",
        "write count(*) FILTER (WHERE …)",
        None,
    ),
    (f"SELECT «uper»(k), max(x) FROM t GROUP BY 1, {WINDOW}", "there is no function uper", "upper"),
    (f"SELECT max(«sqrt»(x)) FROM t GROUP BY {WINDOW}", "there is no function sqrt", None),
    (
        f"SELECT «max_by(k)» FROM t GROUP BY {WINDOW}",
        "max_by is written as max_by(value, by)",
        None,
    ),
    (f"SELECT «sum(x, 2)» FROM t GROUP BY {WINDOW}", "sum is written as sum(column)", None),
    (f"SELECT sum(«*») FROM t GROUP BY {WINDOW}", "sum takes a column, not *", None),
    (f"SELECT «count(x, k)» FROM t GROUP BY {WINDOW}", "count takes * or one expression", None),
    (
        f"SELECT «sum(DISTINCT x)» FROM t GROUP BY {WINDOW}",
        "sum(DISTINCT …) is not supported",
        None,
    ),
    (f"SELECT «sum(x) IGNORE NULLS» FROM t GROUP BY {WINDOW}", "takes no IGNORE NULLS", None),
    (f"SELECT collect_list(x ORDER BY «k») FROM t GROUP BY {WINDOW}", "ORDER BY within", None),
    (f"SELECT max(«min(x)») FROM t GROUP BY {WINDOW}", "cannot stand within another", None),
    (f"SELECT first_n(x, «k») FROM t GROUP BY {WINDOW}", "n of first_n must be a number", None),
    (f"SELECT max(x) FROM t WHERE «max(x)» > 1 GROUP BY {WINDOW}", "cannot stand in WHERE", None),
    (
        f"SELECT max(x) FROM t GROUP BY «max(x)», {WINDOW}",
        "cannot be grouped by an aggregate",
        None,
    ),
    (f"SELECT «upper(k, x)», max(x) FROM t GROUP BY 1, {WINDOW}", "is written as upper(s)", None),
    (
        f"SELECT «upper(k) FILTER (WHERE x > 1)» FROM t GROUP BY k, {WINDOW}",
        "FILTER cannot follow it",
        None,
    ),
    (f"SELECT CAST(k AS «intt»), max(x) FROM t GROUP BY 1, {WINDOW}", "intt is no type", None),
    (f"SELECT «row_number»() OVER ({OVER}) FROM t", "ranking functions are not supported", None),
    (f"SELECT «lag»(x) OVER ({OVER}) FROM t", "lag is not supported", None),
    (f"SELECT k, «x» + 1 FROM t GROUP BY k, {WINDOW}", "neither", None),
    (f"SELECT «k» FROM t GROUP BY k, {WINDOW}", "the SELECT list has no aggregate", None),
    # windows
    ("SELECT «max(x)» FROM t", "there is no window", None),
    ("SELECT k, max(x) FROM t «GROUP BY k»", "there is no window", None),
    (f"SELECT max(x) FROM t GROUP BY {WINDOW}, «window(ts, '1 hour')»", "two windows", None),
    (f"SELECT max(x) FROM «{HOP}» GROUP BY {BOUNDS}, {WINDOW}", "two windows", None),
    (f"SELECT «max(x) OVER ({OVER})» FROM t GROUP BY {WINDOW}", "two windows", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, «'10'»)", "'10' has no unit", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, «10»)", "10 has no unit", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, «INTERVAL 5»)", "interval of 5 has no unit", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, INTERVAL 5 «MINTUE»)", "is no unit", "MINUTE"),
    ("SELECT max(x) FROM t GROUP BY window(ts, «'5 parsecs'»)", "'parsecs' is none of", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, «'1 month'»)", "give sash.sql a timezone", None),
    (
        "SELECT max(x) FROM t GROUP BY window(ts, '1 minute', «'1 hour'»)",
        "the order of arguments is window(ts, size[, slide[, offset]])",
        None,
    ),
    ("SELECT max(x) FROM t GROUP BY window(«'1 hour'», ts)", "is the column of times", None),
    ("SELECT max(x) FROM t GROUP BY «window(ts)»", "window is written as window(ts, size", None),
    ("SELECT max(x) FROM t GROUP BY window(ts, «x»)", "must be a length of time in the text", None),
    ("SELECT max(x) FROM t GROUP BY session_window(ts, «'0 seconds'»)", "more than 0", None),
    ("SELECT max(x) FROM t GROUP BY «HOP(ts, INTERVAL '1' MINUTE)»", "Flink's old form", None),
    ("SELECT «TUMBLE_START(ts)», max(x) FROM t GROUP BY k", "Flink's old form", None),
    (
        "SELECT max(x) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), «INTERVAL '1' HOUR», INTERVAL '1' "
        f"MINUTE)) GROUP BY {BOUNDS}",
        "the order of arguments is HOP(TABLE t, DESCRIPTOR(ts), slide, size)",
        None,
    ),
    (
        "SELECT max(x) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), «INTERVAL '1' HOUR», INTERVAL "
        f"'1' MINUTE)) GROUP BY {BOUNDS}",
        "the order of arguments is CUMULATE(TABLE t, DESCRIPTOR(ts), step, size)",
        None,
    ),
    (
        f"SELECT max(x) FROM TABLE(«HPO»(TABLE t, DESCRIPTOR(ts))) GROUP BY {BOUNDS}",
        "HPO cannot stand here",
        "HOP",
    ),
    (
        f"SELECT max(x) FROM TABLE(«TUMBLE(TABLE t, DESCRIPTOR(ts))») GROUP BY {BOUNDS}",
        "TUMBLE lacks SIZE",
        None,
    ),
    (
        f"SELECT max(x) FROM TABLE(TUMBLE(TABLE t, «ts», INTERVAL '1' HOUR)) GROUP BY {BOUNDS}",
        "the second argument of TUMBLE is DESCRIPTOR(ts)",
        None,
    ),
    (
        "SELECT max(x) FROM TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), «SZIE» => "
        f"INTERVAL '1' HOUR)) GROUP BY {BOUNDS}",
        "TUMBLE has no argument SZIE",
        "SIZE",
    ),
    (f"SELECT max(x) FROM {HOP} «GROUP BY window_start»", "GROUP BY lacks window_end", None),
    (f"«SELECT max(x) FROM {HOP}»", "GROUP BY lacks", None),
    (
        "SELECT k, max(x) FROM TABLE(SESSION(TABLE t PARTITION BY «x», DESCRIPTOR(ts), INTERVAL "
        f"'1' HOUR)) GROUP BY k, {BOUNDS}",
        "the keys of SESSION's PARTITION BY",
        None,
    ),
    ("SELECT max(x) FROM «t [RANGE 1 HOUR SLIDE 1 MINUTE]»", "time='ts'", None),
    # OVER
    ("SELECT sum(x) OVER «(PARTITION BY k)» FROM t", "this window has no ORDER BY", None),
    ("SELECT sum(x) OVER (ORDER BY «ts DESC») FROM t", "in order of rising time", None),
    (
        "SELECT sum(x) OVER (ORDER BY ts RANGE BETWEEN «5» PRECEDING AND CURRENT ROW) FROM t",
        "5 has no unit",
        None,
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND «INTERVAL '1' HOUR "
        "FOLLOWING») FROM t",
        "FOLLOWING is not supported",
        None,
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts «GROUPS» BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "GROUPS frames are not supported",
        None,
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts «RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND INTERVAL "
        "'2' HOUR PRECEDING») FROM t",
        "the first end is the older one",
        None,
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts ROWS BETWEEN «UNBOUNDED PRECEDING» AND CURRENT ROW) "
        "FROM t",
        "a ROWS frame has a number of rows",
        None,
    ),
    (
        "SELECT sum(x) OVER (ORDER BY ts «ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES») "
        "FROM t",
        "EXCLUDE is for RANGE frames",
        None,
    ),
    ("SELECT sum(x) OVER «ww» FROM t WINDOW w AS (ORDER BY ts)", "there is no window ww", "w"),
    (
        "SELECT sum(x) OVER (ORDER BY ts) FROM t WINDOW w AS «(ORDER BY ts)»",
        "no OVER uses the window w",
        None,
    ),
    (
        "SELECT sum(x) OVER (PARTITION BY k ORDER BY ts), max(x) OVER «(ORDER BY ts)» FROM t",
        "PARTITION BY is not the same in all OVER",
        None,
    ),
    (
        f"SELECT sum(x) OVER ({OVER}), max(x) OVER «(ORDER BY ts ROWS 3 PRECEDING)» FROM t",
        "RANGE or ROWS is not the same in all OVER",
        None,
    ),
    (
        f"SELECT sum(x) OVER ({OVER}), max(x) OVER «({OVER} EXCLUDE TIES)» FROM t",
        "EXCLUDE is not the same in all OVER",
        None,
    ),
    (f"SELECT sum(x) OVER ({OVER}), «max(x)» FROM t", "max has no OVER, and others have", None),
    (f"SELECT sum(x) OVER ({OVER}) FROM t «GROUP BY k»", "use one of them", None),
    (f"SELECT sum(x) OVER ({OVER}) FROM t HAVING «x > 1»", "HAVING goes with GROUP BY", None),
    # FROM
    (
        f"SELECT max(x) FROM «t JOIN u ON t.k = u.k» GROUP BY {WINDOW}",
        "FROM is a join, and in this process it is one table",
        None,
    ),
    (f"SELECT max(x) FROM «(SELECT * FROM t)» GROUP BY {WINDOW}", "FROM is a subquery", None),
    (f"SELECT max(x) FROM t GROUP BY {WINDOW} «UNION» SELECT 1", "UNION is not supported", None),
    (f"SELECT «DISTINCT» max(x) FROM t GROUP BY {WINDOW}", "SELECT DISTINCT is not", None),
    (f"SELECT max(x) FROM t GROUP BY «ROLLUP»(k), {WINDOW}", "GROUP BY ROLLUP is not", None),
    ("«WITH u AS (SELECT 1)» SELECT max(x) FROM u GROUP BY " + WINDOW, "WITH is Spark's", None),
    (
        f"SELECT max(x) FROM «t TABLESAMPLE (5 ROWS)» GROUP BY {WINDOW}",
        "a table with TABLESAMPLE",
        None,
    ),
    # windows without a length, or that refer to themselves
    (
        "SELECT max(x) OVER (ORDER BY ts «RANGE CURRENT ROW») FROM t",
        "this frame has events of one time alone",
        None,
    ),
    (
        "SELECT max(x) OVER w FROM t WINDOW w AS «(w ORDER BY ts)»",
        "the window w refers to itself",
        None,
    ),
    (
        "SELECT max(x) OVER w FROM t WINDOW w AS (v), v AS «(w ORDER BY ts)»",
        "the window w refers to itself",
        None,
    ),
    # literals
    (f"SELECT max(«70000S») FROM t GROUP BY {WINDOW}", "70000 is beyond smallint", None),
    (f"SELECT max(«300Y») FROM t GROUP BY {WINDOW}", "300 is beyond tinyint", None),
    (f"SELECT max(x + «{2**63}L») FROM t GROUP BY {WINDOW}", "is beyond bigint", None),
    (f"SELECT max(x + «{10**40}») FROM t GROUP BY {WINDOW}", "more than the 38 digits", None),
    (f"SELECT max(x + «0.{10**39}») FROM t GROUP BY {WINDOW}", "more than the 38 digits", None),
    (f"SELECT max(x + «1e40BD») FROM t GROUP BY {WINDOW}", "more than the 38 digits", None),
    (f"SELECT max(x + «1.5L») FROM t GROUP BY {WINDOW}", "1.5L is no number", None),
    # types, when a statement is tied to a table
    ("SELECT max(x) FROM t GROUP BY window(«k», '1 hour')", "the time column 'k' has type", None),
    ("SELECT max(x) OVER (ORDER BY «k») FROM t", "the time column 'k' has type string", None),
    (
        f"SELECT max(x), «stddev(k)», count(*) FROM t GROUP BY {WINDOW}",
        "stddev takes numbers and decimals (column 'k' has string)",
        None,
    ),
    (f"SELECT «bool_or(x)» FROM t GROUP BY {WINDOW}", "takes bools (column 'x' has int64)", None),
    (
        "SELECT max(x) OVER (ORDER BY ts) FROM t WHERE «max(x) OVER (ORDER BY ts)» > 1",
        "filter the result instead",
        None,
    ),
    # values, at run
    (f"SELECT sum(«1 / amount») FROM t GROUP BY {WINDOW}", "row 2: division by zero", None),
    (f"SELECT sum(«CAST(k AS int)») FROM t GROUP BY {WINDOW}", "row 0: CAST: 'a' is no int", None),
    (f"SELECT max(x) FROM t WHERE «x» GROUP BY {WINDOW}", "this is bigint, and a condition", None),
    (f"SELECT max(«ts + k») FROM t GROUP BY {WINDOW}", "row 0: CAST: 'a' is no bigint", None),
    (f"SELECT «1 / (max(x) - 3)» FROM t GROUP BY {WINDOW}", "row of the result 0: division", None),
]


def place_of(marked: str) -> tuple[str, int, int, int]:
    """The text, and the line, column and width that carets must have."""
    start, end = marked.find("«"), marked.find("»") - 1
    text = marked.replace("«", "").replace("»", "")
    before = text[:start]
    column = start - (before.rfind("\n") + 1) + 1
    return text, before.count("\n") + 1, column, max(1, end - start)


@pytest.mark.parametrize(("marked", "says", "near"), BAD)
def test_a_bad_text_gets_its_place_and_what_to_do(marked: str, says: str, near: str | None) -> None:
    text, line, column, width = place_of(marked)
    with pytest.raises(sash.SqlError) as caught:
        sash.sql(text).run(TABLE)
    error = caught.value
    assert says in error.problem
    assert error.nearest == near
    assert (error.line, error.column) == (line, column), str(error)
    carets = str(error).split("\n")[2]
    assert carets.count("^") == width, str(error)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_text_is_read_or_refused_in_sash_words(seed: int) -> None:
    """Whatever is missing, twice or in another place: no other error ever comes out."""
    rng = random.Random(seed)
    texts = [text for text, *_ in FORMS] + [f"SELECT {e} AS a FROM t GROUP BY {WINDOW}" for e in OF]
    refused = []
    for _ in range(400):
        text = rng.choice(texts)
        parts = re.findall(r"\w+|'[^']*'|\s+|.", text)
        for _ in range(rng.randint(1, 3)):
            at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
            what = rng.randrange(4)
            if what == 0 and len(parts) > 1:
                del parts[at]
            elif what == 1:
                parts.insert(other, parts[at])
            elif what == 2:
                parts[at], parts[other] = parts[other], parts[at]
            else:
                parts[at] = rng.choice([parts[at][:-1], parts[at] * 2, "(", ")", "NULL", "*", "1"])
        damaged = "".join(parts)
        try:
            sash.sql(damaged, time=rng.choice([None, "ts"]))
        except sash.SqlError as error:
            refused.append((error.line, error.column, len(damaged)))
        except Exception as error:
            raise AssertionError(f"{damaged!r}: {error!r}") from error
    assert len(refused) > 200
    assert all(line == 1 <= column <= length + 1 for line, column, length in refused)


#: Expressions with every kind of node.
OF = [
    "sum(CASE x WHEN 1 THEN 2 ELSE CAST(k AS int) END)",
    "max(x) BETWEEN 1 AND 2 OR NOT min(x) IN (1, 2.5, -3) AND count(*) IS NOT NULL",
    "round(avg(x) FILTER (WHERE k LIKE 'a%' ESCAPE '!'), 2)::string || 'b'",
    "extract(hour FROM max(ts)) + coalesce(first(x) IGNORE NULLS, 1 / 2) % 3",
]


def test_there_are_a_hundred_bad_texts() -> None:
    assert len({text for text, _, _ in BAD}) >= 100


def test_an_error_shows_the_line_with_carets_and_what_is_allowed() -> None:
    text = "SELECT k,\n\tmxa(x)\nFROM t GROUP BY k, window(ts, '1 hour')"
    with pytest.raises(sash.SqlError) as caught:
        sash.sql(text)
    first, row, carets, allowed = str(caught.value).split("\n")
    assert first == "line 2, column 2: there is no function mxa; did you mean max?"
    assert (row, carets) == ("    \tmxa(x)", "    \t^^^")
    assert "substring" in allowed
    assert "arg_max" in allowed
    again: Any = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.line, again.column, again.nearest) == (2, 2, "max")
