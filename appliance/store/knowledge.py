"""Answers from the packs: the documents' index, kept fresh while the box runs, and what is asked of it.

The index is a cache of what the folders hold: without it everything is read again. A question is answered by what the
documents say, word for word, or not at all.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from appliance.errors import KnowledgeFault, StorageFault
from appliance.store import documents
from appliance.store.db import open_database, writing
from appliance.store.documents import SYNONYMS, Document, Field, Passage
from appliance.store.knowalign import Aligner, Alignment, opposite
from appliance.store.knowfacts import Body, Embed, Fact, Located, body, current, described, expired
from appliance.store.knowquestion import Question, understand
from appliance.store.knowsay import MOST, sentence
from appliance.store.knowwords import Lexicon, Stemmer
from appliance.telemetry import log

FORMAT = "1"
"""Of what is kept of a document; a change makes the index anew."""
STEPS = (
    """create table about (key text primary key, value text not null) without rowid;
    create table document (
        pack text not null, name text not null, digest text not null, faults text not null,
        primary key (pack, name)
    ) without rowid;
    create table passage (
        id integer primary key, pack text not null, document text not null, content text not null,
        vector blob not null
    );
    create index passage_of on passage (pack, document);
    create virtual table words using fts5(text, tokenize = 'porter unicode61 remove_diacritics 2');
    create table meaning (word text primary key, vector blob not null) without rowid""",
)
BATCH = 8
"""Texts that are embedded at a time, so that a question need not wait for a whole document."""
FEW = 200
"""Passages that are all compared; of more, those found by words or by meaning."""
SHORTLIST = 60
SPOKEN = 420
"""Characters of a list of steps that are said."""
SYNONYM_LINES = 2_000
PERIOD_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is to be said; it is taken out of `passage`, which lies in the file `source` of `pack` at `line`. `score`
    in [0, 1] is how much of the question it covers."""

    text: str
    pack: str
    source: str
    line: int
    passage: str
    score: float
    kind: Literal["field", "sentence", "span"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The documents do not answer this; `why` is for the log. `expired` is the day until which they did."""

    why: str
    expired: date | None = None


@dataclass(frozen=True, slots=True)
class Pack:
    """What `parley knowledge list` shows."""

    name: str
    folder: Path
    documents: int
    passages: int


@dataclass(frozen=True, slots=True)
class _State:
    """One whole answer to "what is known": replaced, never changed."""

    body: Body
    aligner: Aligner
    places: Mapping[int, int]
    """Row of the index -> passage."""
    packs: tuple[Pack, ...]
    faults: tuple[KnowledgeFault, ...]


class Knowledge:
    """The packs in `folders`: each folder in them is one; of two with one name the later counts. `embed` may be called
    from any thread, one call at a time. `model` names it: with another, everything is embedded anew.

    Nothing is read before the first `refresh`. Usable from any thread. Raises StorageFault when there is no room for
    the index.
    """

    def __init__(
        self, folders: Sequence[Path], index: Path, embed: Embed, *, largest_mb: int = 20, model: str = ""
    ) -> None:
        self._folders, self._largest = tuple(folders), largest_mb * 1_000_000
        self._raw_embed, self._embedding = embed, Lock()
        self._refreshing, self._lock = Lock(), Lock()
        self._stem = Stemmer()
        self._stats: dict[Path, tuple[tuple[int, int, int], str]] = {}
        _clear(index, f"{FORMAT} {model}")
        self._database = open_database(index, STEPS, durable=False)
        with writing(self._database) as connection:
            connection.execute("insert or ignore into about values ('form', ?)", (f"{FORMAT} {model}",))
        self._state: _State | None = None
        self._seen: object = None

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def packs(self) -> tuple[Pack, ...]:
        return self._state.packs if self._state else ()

    @property
    def faults(self) -> tuple[KnowledgeFault, ...]:
        """What could not be read, with file and line."""
        return self._state.faults if self._state else ()

    def close(self) -> None:
        with self._refreshing, self._lock:
            self._database.close()

    async def watch(self, every_s: float = PERIOD_S) -> None:
        """Refreshes for ever. Questions are answered out of the old state until the new one is whole."""
        while True:
            try:
                await asyncio.to_thread(self.refresh)
            except StorageFault as fault:
                log("knowledge", level=logging.ERROR, message=fault.message, fix=fault.fix)
            await asyncio.sleep(every_s)

    def refresh(self) -> bool:
        """Reads what has changed since the last time; whether anything has. Raises StorageFault."""
        with self._refreshing:
            folders = self._packs()
            files, faults = self._files(folders)
            groups, more = _synonyms(folders)
            faults += more
            seen = (
                tuple((pack, name, key) for (pack, name), (_, key) in files.items()),
                groups,
                tuple(str(fault) for fault in faults),
            )
            if seen == self._seen:
                return False
            self._replace(folders, files, groups, faults)
            self._seen = seen
            for fault in self.faults:
                log("knowledge", level=logging.WARNING, message=fault.message, fix=fault.fix)
            return True

    def _packs(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            try:
                found |= {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "."}
            except OSError:  # a folder that is not there holds no packs
                continue
        return found

    def _files(
        self, folders: Mapping[str, Path]
    ) -> tuple[dict[tuple[str, str], tuple[Path, str]], list[KnowledgeFault]]:
        """Each document with its path and digest. A file that looks untouched is not read again."""
        files: dict[tuple[str, str], tuple[Path, str]] = {}
        faults: list[KnowledgeFault] = []
        stats: dict[Path, tuple[tuple[int, int, int], str]] = {}
        for pack, folder in folders.items():
            found, more = documents.listing(folder, self._largest)
            faults += more
            for name, path in found.items():
                try:
                    status = path.stat()
                    look = (status.st_size, status.st_mtime_ns, status.st_ino)
                    before = self._stats.get(path)
                    key = before[1] if before and before[0] == look else documents.digest(path)
                except KnowledgeFault as fault:
                    faults.append(fault)
                except OSError as error:
                    faults.append(KnowledgeFault(f"{path} cannot be read: {error}", "correct its permissions"))
                else:
                    stats[path] = (look, key)
                    files[pack, name] = (path, key)
        self._stats = stats
        return files, faults

    def _replace(
        self,
        folders: Mapping[str, Path],
        files: Mapping[tuple[str, str], tuple[Path, str]],
        groups: tuple[tuple[str, ...], ...],
        faults: list[KnowledgeFault],
    ) -> None:
        with self._lock:
            rows = self._database.execute("select pack, name, digest from document").fetchall()
        kept = {(pack, name): key for pack, name, key in rows}
        gone = [known for known, key in kept.items() if known not in files or files[known][1] != key]
        new: dict[tuple[str, str], Document] = {}
        vectors: dict[tuple[str, str], NDArray[np.float32]] = {}
        for known, (path, key) in files.items():
            if kept.get(known) != key:
                document = documents.read(path, known[1])
                # Recorded by the digest that was listed: a file that changed in between is read again next time.
                new[known] = replace(document, digest=key)
                vectors[known] = self._embed(described(document.passages))
        with self._lock:
            self._write(gone, new, vectors)
            state = self._load(folders, groups, faults)
            self._state = state

    def _write(
        self,
        gone: Iterable[tuple[str, str]],
        new: Mapping[tuple[str, str], Document],
        vectors: Mapping[tuple[str, str], NDArray[np.float32]],
    ) -> None:
        with writing(self._database) as connection:
            for known in gone:
                connection.execute(
                    "delete from words where rowid in (select id from passage where pack = ? and document = ?)", known
                )
                connection.execute("delete from passage where pack = ? and document = ?", known)
                connection.execute("delete from document where pack = ? and name = ?", known)
            for known, document in new.items():
                told = json.dumps([(fault.message, fault.fix) for fault in document.faults])
                connection.execute("insert into document values (?, ?, ?, ?)", (*known, document.digest, told))
                for passage, vector in zip(document.passages, vectors[known], strict=True):
                    content = json.dumps(asdict(passage), default=str)
                    row = connection.execute(
                        "insert into passage (pack, document, content, vector) values (?, ?, ?, ?)",
                        (*known, content, vector.astype(np.float32).tobytes()),
                    ).lastrowid
                    text = " ".join((*passage.headings, passage.text))
                    connection.execute("insert into words (rowid, text) values (?, ?)", (row, text))

    def _load(
        self, folders: Mapping[str, Path], groups: tuple[tuple[str, ...], ...], faults: list[KnowledgeFault]
    ) -> _State:
        located: list[Located] = []
        places: dict[int, int] = {}
        vectors: list[NDArray[np.float32]] = []
        for row, pack, content, vector in self._database.execute(
            "select id, pack, content, vector from passage order by pack, document, id"
        ):
            passage = _passage(json.loads(content))
            places[row] = len(located)
            located.append(Located(pack, passage))
            vectors.append(np.frombuffer(vector, np.float32))
        told = list(faults)
        counted: dict[str, int] = {}
        for pack, kept in self._database.execute("select pack, faults from document order by pack, name"):
            counted[pack] = counted.get(pack, 0) + 1
            told += [KnowledgeFault(message, fix) for message, fix in json.loads(kept)]
        known = body(
            located,
            np.stack(vectors) if vectors else np.zeros((0, 1), np.float32),
            Lexicon(self._stem, groups),
            self._meanings,
        )
        passages = [known.pack for known in located]
        packs = tuple(
            Pack(name, folder, counted.get(name, 0), passages.count(name)) for name, folder in sorted(folders.items())
        )
        return _State(known, Aligner(known, self._embed), places, packs, tuple(told))

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = []
        for start in range(0, len(texts), BATCH):
            with self._embedding:
                found.append(self._raw_embed(texts[start : start + BATCH]))
        return np.concatenate(found) if found else np.zeros((0, 1), np.float32)

    def _meanings(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Of single words, kept in the index: most are there the next time."""
        kept = dict(self._database.execute("select word, vector from meaning"))
        new = [word for word in words if word not in kept]
        made = self._embed(new)
        with writing(self._database) as connection:
            pairs = [(word, row.astype(np.float32).tobytes()) for word, row in zip(new, made, strict=True)]
            connection.executemany("insert or replace into meaning values (?, ?)", pairs)
        kept |= dict(pairs)
        return (
            np.stack([np.frombuffer(kept[word], np.float32) for word in words])
            if words
            else np.zeros((0, 1), np.float32)
        )

    # --- what is asked ---------------------------------------------------------------------------------------------

    def ask(self, question: str, now: datetime) -> Answer | Refusal | None:
        """What the documents say, at this moment; a Refusal when they do not; None when there are no packs, or the
        words ask for nothing that a document could hold."""
        state = self._state
        if state is None or not state.body.facts:
            return None
        known = state.body
        asked = understand(question, known.lexicon, now)
        if not asked.heavy and not asked.step:
            return None
        [vector] = self._embed([question])
        closeness = known.vectors @ vector
        places = self._shortlist(state, asked, closeness)
        close = {place: float(closeness[place]) for place in places}
        if asked.step:
            return self._step(known, asked, close, now.date())
        facts = [fact for place in places for fact in known.of_passage[place]]
        today = now.date()
        found, failed = state.aligner.align(asked, facts, close)
        valid = [made for made in found if current(_passage_of(known, made), today)]
        if asked.steps and (listed := self._steps(known, asked, places, today)):
            return listed
        if valid:
            return _answer(known, valid, today)
        late = [passage.valid_until for made in found if expired(passage := _passage_of(known, made), today)]
        if late:
            return Refusal("what answered it is no longer valid", late[0])
        return Refusal(f"nothing about {failed[0].missing}" if failed else "nothing near")

    def _shortlist(self, state: _State, asked: Question, closeness: NDArray[np.float32]) -> list[int]:
        """Places of the passages that are worth a look: by words and by meaning, their ranks fused."""
        count = len(state.body.passages)
        if count <= FEW:
            return list(range(count))
        words = {key for term in asked.heavy for key in term.keys | term.parts if key[0] not in "=#"}
        for group in {key for term in asked.heavy for key in term.keys if key[0] == "="}:
            words |= state.body.lexicon.members(group)
        ranks: dict[int, float] = {}
        quoted = " OR ".join(f'"{word}"' for word in sorted(words))
        with self._lock:
            rows = (
                self._database.execute(
                    "select rowid from words where words match ? order by rank limit ?", (quoted, SHORTLIST)
                ).fetchall()
                if quoted
                else []
            )
        by_words = [state.places[row] for (row,) in rows if row in state.places]
        by_meaning = [int(place) for place in np.argsort(-closeness)[:SHORTLIST]]
        for ranking in (by_words, by_meaning):
            for rank, place in enumerate(ranking):
                ranks[place] = ranks.get(place, 0.0) + 1 / (60 + rank)
        return sorted(ranks, key=lambda place: -ranks[place])[:SHORTLIST]

    def _step(self, known: Body, asked: Question, close: Mapping[int, float], today: date) -> Answer | Refusal:
        """The step of that number, in the procedure that the other words are about."""
        best: tuple[float, int] | None = None
        for place, nearness in close.items():
            passage = known.passages[place].passage
            if passage.step != asked.step or not current(passage, today):
                continue
            above = known.lexicon.keys(" . ".join((known.passages[place].pack, *passage.headings)))
            if all(term.among(above | known.generic) for term in asked.heavy):
                best = max(best or (-1.0, -1), (nearness, place))
        if best is None:
            return Refusal(f"there is no step {asked.step}")
        located = known.passages[best[1]]
        return _told(
            located, f"Step {asked.step}: {located.passage.text}", f"{asked.step}. {located.passage.text}", 1.0
        )

    def _steps(self, known: Body, asked: Question, places: Sequence[int], today: date) -> Answer | None:
        """All steps of the procedure that the words are about, as far as they can be said."""
        for place in places:
            passage = known.passages[place].passage
            above = known.lexicon.keys(" . ".join(passage.headings))
            named = all(term.among(above | known.generic) for term in asked.heavy)
            if passage.step != 1 or not named or not current(passage, today):
                continue
            lines: list[str] = []
            for located in known.passages[place:]:
                if located.passage.step != len(lines) + 1 or located.passage.headings != passage.headings:
                    break
                lines.append(f"{located.passage.step}. {located.passage.text}")
            said = lines[:1]
            for line in lines[1:]:
                if len(" ".join((*said, line))) > SPOKEN:
                    break
                said.append(line)
            return _told(known.passages[place], " ".join(said), "\n".join(lines), 1.0)
        return None


def _passage_of(known: Body, made: Alignment) -> Passage:
    return known.passages[known.facts[made.fact].of].passage


def _answer(known: Body, valid: Sequence[Alignment], today: date) -> Answer:
    """The best, with those that answer alike: rows of one table that the question does not tell apart."""
    best = valid[0]
    fresh = [
        made
        for made in valid
        if best.score - made.score < 0.05
        and _updated(known, made) > _updated(known, best)
        and _rivals(known, made, best)
    ]
    best = max(fresh, key=lambda made: _updated(known, made), default=best)
    fact = known.facts[best.fact]
    alike = [known.facts[made.fact] for made in valid if _alike(known, fact, known.facts[made.fact], best, made)]
    alike = sorted(alike, key=lambda other: (other.of, other.position))[:MOST] if len(alike) > 1 else [fact]
    located = known.passages[alike[0].of]
    text = sentence(known.passages, alike, outside=best.outside)
    passages = [known.passages[place].passage.text for place in dict.fromkeys(other.of for other in alike)]
    above = [f"{located.passage.headings[-1]}:"] if best.outside and located.passage.headings else []
    shown = "\n".join((*above, *passages))
    until = located.passage.valid_until
    if until is not None:
        text, shown = f"{text} Valid until {until}.", f"{shown} (valid until {until})"
    return Answer(
        text, located.pack, located.passage.file, located.passage.line, shown, min(1.0, best.coverage), fact.kind
    )


def _alike(known: Body, fact: Fact, other: Fact, best: Alignment, made: Alignment) -> bool:
    if fact is other:
        return True
    one, two = known.passages[fact.of].passage, known.passages[other.of].passage
    if fact.field is None or other.field is None or one.file != two.file or one.headings != two.headings:
        return False
    if not one.entity or abs(best.coverage - made.coverage) > 0.01 or best.score - made.score > 0.3:
        return False
    if fact.of == other.of:
        return not fact.attribute & other.attribute and opposite(
            fact.field.attribute.lower().split(), other.field.attribute.lower().split()
        )
    same = fact.field.attribute == other.field.attribute
    if best.score - made.score < 0.08:
        return same
    return same and opposite(one.entity.lower().split(), two.entity.lower().split())


def _rivals(known: Body, one: Alignment, other: Alignment) -> bool:
    """Whether two facts say something of the same thing."""
    first, second = known.facts[one.fact], known.facts[other.fact]
    return first.attribute == second.attribute and first.entity == second.entity and first.kind == second.kind


def _updated(known: Body, made: Alignment) -> date:
    return _passage_of(known, made).updated or date.min


def _told(located: Located, text: str, passage: str, score: float) -> Answer:
    known = located.passage
    return Answer(text, located.pack, known.file, known.line, passage, score, "span")


def _passage(kept: dict[str, Any]) -> Passage:
    when = {key: date.fromisoformat(kept[key]) if kept[key] else None for key in documents.DATES}
    fields = tuple(Field(**field) for field in kept["fields"])
    return Passage(**{**kept, **when, "headings": tuple(kept["headings"]), "fields": fields})


def _synonyms(folders: Mapping[str, Path]) -> tuple[tuple[tuple[str, ...], ...], list[KnowledgeFault]]:
    """Each pack's groups of equal words: a line each, with commas between."""
    groups: list[tuple[str, ...]] = []
    faults: list[KnowledgeFault] = []
    for folder in folders.values():
        path = folder / SYNONYMS
        if not path.is_file():
            continue
        try:
            lines = path.read_text("utf-8-sig").splitlines()[:SYNONYM_LINES]
        except (OSError, UnicodeDecodeError) as error:
            faults.append(KnowledgeFault(f"{path} cannot be read: {error}", "save it as UTF-8"))
            continue
        for number, line in enumerate(lines, start=1):
            words = tuple(filter(None, (word.strip() for word in line.split("#")[0].split(","))))
            if len(words) == 1:
                faults.append(
                    KnowledgeFault(f"{path}:{number}: one word alone is no group", "put commas between words")
                )
            elif words:
                groups.append(words)
    return tuple(groups), faults


def _clear(index: Path, form: str) -> None:
    """Removes an index that is damaged or of another form: it is only a cache."""
    try:
        with closing(open_database(index, STEPS, durable=False)) as database:
            with writing(database) as connection:
                connection.execute("insert or ignore into about values ('form', ?)", (form,))
            if database.execute("select value from about where key = 'form'").fetchone()[0] == form:
                return
    except (StorageFault, sqlite3.Error) as error:
        log("knowledge", level=logging.WARNING, message=f"{index} is made anew: {error}")
    for path in (index, *(index.with_name(index.name + end) for end in ("-wal", "-shm"))):
        path.unlink(missing_ok=True)
