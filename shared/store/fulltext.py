"""Full text: the words of a search, and the index of it in SQLite, which triggers keep.

Each class of rows says in `searched` which of its columns are searched. In SQLite all of them stand in one index, so
that the scores of two classes can be compared: a word is as rare as it is in all of them. The index keeps no text,
only words. Postgres has its own in `supabase/migrations`; one suite compares what they find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shared.store.query import Condition
from shared.store.records import TABLES, Row
from shared.store.schema import columns

WORDS = 50  # words of a query that are looked for, at most
FIRST = (
    100_000  # characters of a column that are searched: Postgres holds no more than so many words of one row
)
BUDGET = 2_000  # rows, with those that hold several words counted for each, that are weighed by one search
WIDE = 5_000  # rows from which on a scope is wide
MOST = 1000  # rows that one search gives, at most
# What stands in a conversation beside what was said: the situation in which it was said.
SITUATION = "[Current date and time:"
STOP = frozenset(
    """
a about after all also am an and any are as at be because been before being between both but by can
could did do does doing down during each few for from further had has have having he her here hers him
his how i if in into is it its itself just me more most my no nor not now of off on once only or other
our out over own same she should so some such than that the their them then there these they this those
through to too under until up very was we were what when where which while who whom why will with would
you your
""".split()  # noqa: SIM905 - a list of a hundred quoted words reads worse
)
_WORD = re.compile(r"[^\W_]+")
_TRIGGERS = ("added", "changed", "gone")


def asked(text: str) -> list[str]:
    """The words that a search looks for: any of them may fit. No sign in the text means anything else."""
    found = (word for word in _WORD.findall(text.casefold()) if word not in STOP)
    return list(dict.fromkeys(found))[:WORDS]


def searched(kind: type[Row]) -> tuple[str, Sequence[str]]:
    """The column of a row's title, or "", and those of its text; ValueError where none is searched."""
    if not kind.searched:
        raise ValueError(f"{kind.table} is not searched by its words")
    return kind.searched[0], kind.searched[1:]


def anywhere(words: Sequence[str]) -> str:
    """The query of FTS5: any of the words, in the rows of all kinds."""
    return f"{{title body}} : ({_any(words)})"


def scope(kind: type[Row], conditions: Sequence[Condition]) -> str:
    """The query of all rows of the narrowest scope that the conditions name."""
    scopes = [_token(kind)]
    for condition in conditions:
        if condition.column in kind.scopes and condition.op in ("eq", "in"):
            values = condition.value if condition.op == "in" else [condition.value]
            scopes = [_token(kind, condition.column, str(value)) for value in values]
            break
    return f"scope : ({_any(scopes)})"


def rare(words: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The words that are looked for, by how many rows hold each: what stands everywhere tells nothing beside others.

    As many of the rarest as stand in `BUDGET` rows together; one at least, of those that stand somewhere.
    """
    kept: dict[str, int] = {}
    for count, word in sorted(zip(counts, words, strict=True)):
        if not count or (kept and sum(kept.values()) + count > BUDGET):
            continue
        kept[word] = count
    return [word for word in words if word in kept] or list(words[:1])


def _any(words: Sequence[str]) -> str:
    # In quotes a word is a word, also AND and NEAR.
    return " OR ".join(f'"{word}"' for word in words)


def _token(kind: type[Row], column: str = "", value: str = "") -> str:
    """One word for all rows of a kind, or for those with this value."""
    text = f"{kind.table}.{column}={value}" if column else kind.table
    return text.encode().hex()


def statements() -> Iterator[str]:
    """SQL that makes the index where it is missing, and its triggers anew."""
    yield "CREATE TABLE IF NOT EXISTS search_rows (number INTEGER PRIMARY KEY, row TEXT NOT NULL UNIQUE)"
    yield (
        "CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5"
        "(scope, title, body, content='', tokenize='porter unicode61 remove_diacritics 0')"
    )
    for kind in TABLES:
        for name in _TRIGGERS:
            yield f"DROP TRIGGER IF EXISTS {kind.table}_search_{name}"
        if kind.searched:
            yield from _triggers(kind)


def missing() -> Iterator[str]:
    """SQL that puts into the index the rows that are not in it."""
    for kind in TABLES:
        if kind.searched:
            # Words first: the row is in the index as soon as it has its number.
            yield (
                "INSERT INTO search_words (rowid, scope, title, body)"
                " SELECT (SELECT coalesce(max(number), 0) FROM search_rows) + row_number() OVER (ORDER BY r.rowid),"
                f" {_values(kind, 'r')} FROM {kind.table} r"
                " WHERE r.id NOT IN (SELECT row FROM search_rows) ORDER BY r.rowid"
            )
            yield (
                f"INSERT INTO search_rows (row) SELECT r.id FROM {kind.table} r"
                " WHERE r.id NOT IN (SELECT row FROM search_rows) ORDER BY r.rowid"
            )


def _triggers(kind: type[Row]) -> Iterator[str]:
    table = kind.table
    title, texts = searched(kind)
    number = "(SELECT number FROM search_rows WHERE row = {}.id)"
    into = "INSERT INTO search_words (rowid, scope, title, body) VALUES"
    # An index without its text has to be told what it forgets.
    forget = (
        "INSERT INTO search_words (search_words, rowid, scope, title, body)"
        f" VALUES ('delete', {number.format('old')}, {_values(kind, 'old')});"
    )
    learn = f"{into} ({number.format('new')}, {_values(kind, 'new')});"
    yield (
        f"CREATE TRIGGER {table}_search_added AFTER INSERT ON {table} BEGIN"
        f" INSERT INTO search_rows (row) VALUES (new.id); {learn} END"
    )
    changing = [column for column in (title, *texts, *kind.scopes) if column]
    differs = " OR ".join(f"old.{column} IS NOT new.{column}" for column in changing)
    yield (
        f"CREATE TRIGGER {table}_search_changed AFTER UPDATE OF {', '.join(changing)} ON {table}"
        f" WHEN {differs} BEGIN {forget} {learn} END"
    )
    yield (
        f"CREATE TRIGGER {table}_search_gone AFTER DELETE ON {table} BEGIN"
        f" {forget} DELETE FROM search_rows WHERE row = old.id; END"
    )


def _values(kind: type[Row], row: str) -> str:
    """SQL of the scope, the title and the text of a row."""
    title, texts = searched(kind)
    scopes = [f"'{_token(kind)}'"]
    for column in kind.scopes:
        scopes.append(f"hex('{kind.table}.{column}=' || coalesce({row}.{column}, ''))")
    bodies = " || char(10) || ".join(_text(kind, row, column) for column in texts)
    return f"{' || char(32) || '.join(scopes)}, {_text(kind, row, title)}, {bodies}"


def _text(kind: type[Row], row: str, column: str) -> str:
    if not column:
        return "''"
    text = f"{row}.{column}"
    if columns(kind)[column].kind == "json":  # blocks of a conversation, of which the words that were said
        said = f"json_extract({text}, block.fullkey || '.text')"
        text = (
            f"(SELECT group_concat({said}, char(10)) FROM json_each({text}) AS block"
            f" WHERE json_extract({text}, block.fullkey || '.type') = 'text'"
            f" AND substr({said}, 1, {len(SITUATION)}) <> '{SITUATION}')"
        )
    return f"substr(coalesce({text}, ''), 1, {FIRST})"
