"""Tables of a file that are not ours, lines that are not what was written, and files of the version before."""

import hashlib
import shutil
import time

import pytest

from stakes.campaign import Journal
from stakes.campaign.journal import append
from stakes.campaign.new_files import recover
from stakes.campaign.states import Replay, link
from stakes.exceptions import StakesError
from tests.campaign.forging import changed, unchained

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def made(path):
    with Journal.create(path, [(name, None) for name in NAMES], {"loss": "log"}, {"a": "cat"}, now=100.0) as journal:
        journal.lease(["b", "c"], 2, who="ann", now=200.0)
        journal.tell_many([("b", "dog")], now=300.0)
        journal.save_record("ranking", 3, {"labels": 1}, now=301.0)
        journal.skip(["c"], now=400.0)
    return path


def test_the_hash_of_a_line_is_pinned():
    """By hand: the same on every machine, so that any program can check a file."""
    text = b'1,0x1.9000000000000p+6,"label","\\u00e9","cat",null,null,null'
    before = hashlib.sha256(b'1,"\\u00e9",null').digest()
    assert Replay.begin([(1, "é", None)]).event_hash == before
    assert link(before, (1, 100.0, "label", "é", "cat", None, None, None)) == hashlib.sha256(before + text).digest()


SCHEMA = [
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN UPDATE rows SET id = 'x'; END",
    "CREATE TRIGGER t AFTER UPDATE ON head BEGIN DELETE FROM events; END",
    "CREATE VIEW v AS SELECT * FROM events",
    "CREATE TABLE more (x)",
    "CREATE INDEX i ON events (row)",
    "ALTER TABLE events ADD COLUMN more TEXT",
    "ALTER TABLE events ADD COLUMN made TEXT AS (label || 'x') VIRTUAL",
    "ALTER TABLE records RENAME COLUMN payload TO load",
    "DROP TABLE head",
    "ALTER TABLE rows RENAME TO lines; CREATE VIEW rows AS SELECT number, 'x' || id AS id, cost FROM lines",
    "ANALYZE",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ' -- ours'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'sqlite_x' WHERE name = 'head'",
]


@pytest.mark.parametrize("statement", SCHEMA)
def test_tables_that_are_not_ours_are_refused_before_anything_runs(made, statement):
    changed(made, statement)
    before = made.read_bytes()
    with pytest.raises(StakesError, match="is damaged, or was changed by another program") as caught:
        Journal.open(made)
    assert str(made) in str(caught.value)
    assert made.read_bytes() == before
    assert [each.name for each in made.parent.iterdir()] == [made.name]


def test_a_trigger_is_named_and_does_not_run(made):
    changed(made, "CREATE TRIGGER evil AFTER UPDATE ON head BEGIN UPDATE events SET label = 'dog'; END")
    with pytest.raises(StakesError, match="the trigger evil is not as stakes makes it, and nothing was run"):
        Journal.open(made)


LINES = [
    ("UPDATE events SET label = 'bat' WHERE number = 1", "event 1 is not what was written.*no event is known"),
    ("UPDATE events SET label = 'bat' WHERE number = 4", "event 4 is not what was written.*events 1 to 3 are sound"),
    ("UPDATE events SET label = x'636174' WHERE number = 1", "event 1 cannot be one"),
    ("UPDATE events SET label = NULL WHERE number = 1", "event 1 cannot be one"),
    ("UPDATE events SET kind = 'forget' WHERE number = 2", "event 2 cannot be one"),
    ("UPDATE events SET at = 'noon' WHERE number = 2", "event 2 cannot be one"),
    ("UPDATE events SET at = 9e999 WHERE number = 2", "event 2 cannot be one"),
    ("UPDATE events SET until = NULL WHERE number = 2", "event 2 cannot be one"),
    ("UPDATE events SET batch = 'one' WHERE number = 2", "event 2 cannot be one"),
    ("UPDATE events SET who = 7.5 WHERE number = 2", "event 2 is not what was written"),
    ("UPDATE events SET hash = x'' WHERE number = 2", "event 2 is not what was written"),
    ("UPDATE events SET hash = '' WHERE number = 2", "event 2 is not what was written"),
    ("UPDATE events SET row = 'z' WHERE number = 2", "event 2 is not what was written"),
    ("UPDATE events SET number = 9 WHERE number = 5", "event 5 is missing"),
    ("UPDATE events SET number = -1 WHERE number = 5", "5 events were written and 4 are there"),
    ("DELETE FROM events WHERE number = 5", "5 events were written and 4 are there; events 1 to 4"),
    ("DELETE FROM events WHERE number = 1", "event 1 is missing"),
    ("DELETE FROM events", "5 events were written and 0 are there"),
    ("INSERT INTO events SELECT 6, at, kind, row, label, until, batch, who, hash FROM events WHERE number = 5", "6"),
    ("UPDATE rows SET id = 'z' WHERE number = 4", "event 1 is not what was written"),
    ("UPDATE rows SET id = x'64' WHERE number = 4", "its rows cannot be used .row 4 has no id but b'd'"),
    ("UPDATE rows SET id = 'a' WHERE number = 4", "row 4 has the id of another"),
    ("UPDATE rows SET cost = 'much' WHERE number = 4", "row 4 has no cost but 'much'"),
    ("UPDATE rows SET cost = -1 WHERE number = 4", "row 4 has no cost but -1.0"),
    ("DELETE FROM rows WHERE number = 4", "event 1 is not what was written"),
    ("DELETE FROM rows WHERE number = 1", "row 1 is missing"),
    ("UPDATE records SET payload = '{}' WHERE number = 2", "record 2 is not what was written"),
    ("UPDATE records SET payload = x'7b7d' WHERE number = 2", "record 2 cannot be one"),
    ("UPDATE records SET version = -5 WHERE number = 2", "record 2 cannot be one"),
    ("DELETE FROM records WHERE number = 2", "2 records were written and 1 are there"),
    ("DELETE FROM records", "2 records were written and 0 are there"),
    ("DELETE FROM head", "its head is gone, or there are several"),
    ("INSERT INTO head SELECT 2, rows, events, records, hash FROM head", "its head is gone, or there are several"),
    ("UPDATE head SET number = 2", "its head is gone, or there are several"),
    ("UPDATE head SET events = 'many'", "'many' events were written and 5 are there"),
    ("UPDATE head SET hash = x'00'", "its rows, or its head, are not what was written"),
]


@pytest.mark.parametrize(("statement", "message"), LINES)
def test_lines_that_are_not_what_was_written_are_refused_with_the_last_good_event(made, statement, message):
    changed(made, statement)
    before = made.read_bytes()
    with pytest.raises(StakesError, match=message) as caught:
        Journal.open(made)
    assert f"stakes doctor '{made}' --recover NEW" in str(caught.value)
    assert made.read_bytes() == before


FORGED = [  # written by whoever knows how hashes are made: the rules still hold
    ((0, 500.0, "label", "a", "dog", None, None, None), "event 6 breaks the rules .row 'a' has the label 'cat'"),
    ((0, 500.0, "label", "z", "dog", None, None, None), "event 6 is of the row 'z', which there is not"),
    ((0, 500.0, "release", "d", None, None, None, None), "event 6 breaks the rules .row 'd' is open"),
    ((0, 500.0, "label", "d", "a\0b", None, None, None), "event 6 cannot be one"),
    ((0, 1e15, "label", "d", "dog", None, None, None), "event 6 cannot be one"),
    ((0, 500.0, "ask", "d", None, 1e15, 2, None), "event 6 cannot be one"),
    ((0, 500.0, "ask", "d", None, 600.0, -2, None), "event 6 cannot be one"),
]


@pytest.mark.parametrize(("event", "message"), FORGED)
def test_events_with_true_hashes_that_break_the_rules_are_refused(made, event, message):
    with Journal.open(made) as journal, journal.writing():
        append(journal.connection, journal.replay, [event], [])
    with pytest.raises(StakesError, match=message):
        Journal.open(made)


@pytest.mark.parametrize("payload", ["{", "[" * 100_000, '{"a": NaN}', "9" * 5000, ""])
def test_a_record_that_is_no_json_is_refused_where_it_is_read(made, payload):
    with Journal.open(made) as journal, journal.writing():
        append(journal.connection, journal.replay, [], [(500.0, "ranking", 3, payload)])
    with Journal.open(made) as journal:
        for read in (journal.check, lambda: journal.last_record("ranking"), lambda: journal.records("ranking")):
            with pytest.raises(StakesError, match=r"record 3 .'ranking'. is no JSON"):
                read()
        assert journal.settings == {"loss": "log"}


def test_what_others_add_to_an_open_campaign_is_verified_too(made):
    with Journal.open(made) as journal:
        with Journal.open(made) as other:
            other.tell_many([("d", "cat")])
        assert journal.state("d").label == "cat"
        changed(made, "INSERT INTO events VALUES (7, 1.0, 'withdraw', 'd', NULL, NULL, NULL, NULL, x'00')")
        changed(made, "UPDATE head SET events = 7")
        for use in (journal.states, journal.version, lambda: journal.tell_many([("c", "cat")])):
            with pytest.raises(StakesError, match=r"event 7 is not what was written.*events 1 to 6 are sound"):
                use()


def test_a_file_that_another_program_has_put_into_wal_mode_is_put_back_if_it_is_sound(made):
    changed(made, "PRAGMA journal_mode = WAL")
    with Journal.open(made) as journal:
        assert journal.read("PRAGMA journal_mode") == [("delete",)]
    changed(made, "UPDATE events SET label = 'bat' WHERE number = 1; PRAGMA journal_mode = WAL")
    before = made.read_bytes()
    with pytest.raises(StakesError, match="event 1 is not what was written"):
        Journal.open(made)
    assert made.read_bytes() == before


def test_a_header_that_forbids_writing_is_damage_where_the_file_may_be_written(made):
    data = bytearray(made.read_bytes())
    data[18] = 9  # the version of the format that is needed for writing
    made.write_bytes(data)
    with Journal.open(made) as journal:
        assert journal.version() == 5
        with pytest.raises(StakesError, match="its header says that it can only be read"):
            journal.tell_many([("d", "cat")])
    assert recover(made, made.with_name("new.stakes"))[0] == 5


def test_names_that_are_no_text_are_refused(made):
    made.write_bytes(made.read_bytes().replace(b"CREATE TABLE events", b"CREATE TABLE \xef\xffents"))
    with pytest.raises(StakesError, match="is damaged, or was changed by another program"):
        Journal.open(made)


def test_a_file_of_many_gigabytes_of_nothing_is_read_or_refused(made):
    """As the journal of an unfinished write leaves it, whose number of pages is damaged."""
    with made.open("r+b") as file:
        file.truncate(2**33)  # of which the disk keeps nothing
    with Journal.open(made) as journal:
        assert journal.version() == 5


def test_an_older_copy_put_in_place_of_an_open_campaign_is_noticed(made):
    old = made.read_bytes()
    with Journal.open(made) as journal:
        with Journal.open(made) as other:
            other.tell_many([("d", "cat")])
        assert journal.version() == 6
        made.write_bytes(old)
        with pytest.raises(StakesError, match="5 events were written and 6 are there"):
            journal.tell_many([("c", "cat")])


def test_a_file_with_a_write_ahead_log_beside_it_is_left_alone(made):
    log = made.with_name(f"{made.name}-wal")
    log.write_bytes(b"not ours" * 100)
    before = made.read_bytes()
    with pytest.raises(StakesError, match="which stakes never makes"):
        Journal.open(made)
    assert (made.read_bytes(), log.read_bytes()) == (before, b"not ours" * 100)


def test_what_is_sound_is_recovered_up_to_the_first_damage(made):
    new = made.with_name("new.stakes")
    changed(made, "UPDATE events SET label = 'bat' WHERE number = 4")
    before = made.read_bytes()
    events, why = recover(made, new)
    assert (events, why) == (3, "event 4 is not what was written")
    with Journal.open(new) as journal:
        assert [(event.kind, event.row) for event in journal.history()] == [("label", "a"), ("ask", "b"), ("ask", "c")]
        assert (journal.settings, journal.records("ranking")[0].payload) == ({"loss": "log"}, {"labels": 1})
        assert journal.tell_many([("b", "cow")]).new == ("b",)
    assert made.read_bytes() == before
    with pytest.raises(StakesError, match="is there already"):
        recover(made, new)


@pytest.mark.parametrize("more", ["", "; DELETE FROM records"])
def test_rows_that_are_not_what_was_written_are_not_recovered(made, more):
    changed(made, f"UPDATE rows SET id = 'z' WHERE number = 4{more}")
    with pytest.raises(StakesError, match="nothing can be recovered"):
        recover(made, made.with_name("new.stakes"))
    assert [each.name for each in made.parent.iterdir()] == [made.name]


def test_a_file_of_the_version_before_gets_hashes_and_keeps_its_content(path):
    unchained(path, NAMES)
    with Journal.open(path) as journal:
        assert [tuple(event) for event in journal.history()] == [
            (1, 100.0, "label", "a", "cat", None, None, None),
            (2, 200.0, "ask", "b", None, 300.0, 1, "ann"),
        ]
        assert journal.settings == {"loss": "log"}
        assert journal.costs() == dict.fromkeys(NAMES) | {"a": 2.5}
        assert journal.read("PRAGMA user_version") == [(4,)]
        journal.check()
    changed(path, "UPDATE events SET label = 'bat' WHERE number = 1")
    with pytest.raises(StakesError, match="event 1 is not what was written"):
        Journal.open(path)


def test_a_file_of_the_version_before_with_a_damaged_name_of_an_index_is_refused(path):
    unchained(path, NAMES)
    path.write_bytes(
        path.read_bytes().replace(b"indexsqlite_autoindex_rows_1rows", b"indexsqlite_autoindex_rows_1r0ws")
    )
    before = path.read_bytes()
    with pytest.raises(StakesError, match="the index sqlite_autoindex_rows_1 is not as stakes makes it"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_a_damaged_file_of_the_version_before_gets_no_hashes(path):
    unchained(path, NAMES, "INSERT INTO events VALUES (3, 1.0, 'label', 'a', 'dog', NULL, NULL, NULL)")
    before = path.read_bytes()
    with pytest.raises(StakesError, match="event 3 breaks the rules"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_ten_thousand_events_are_verified_in_well_under_a_third_of_a_second(path):
    rows = [(f"row-{number:05d}", None) for number in range(10_000)]
    Journal.create(path, rows, {}, {row: "3.5" for row, _ in rows}).close()

    def seconds():
        before = time.process_time()
        Journal.open(path).close()
        return time.process_time() - before

    assert min(seconds() for _ in range(5)) < 0.3


def test_a_write_puts_one_hash_and_the_head(path):
    Journal.create(path, [("a", None)], {}).close()
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with Journal.open(copy) as journal:
        journal.tell_many([("a", "x")])
        journal.tell_many([("a", "x")])
        assert journal.read("SELECT count(*) FROM events WHERE length(hash) = 32") == [(1,)]
        assert journal.read("SELECT events, records FROM head") == [(1, 1)]
