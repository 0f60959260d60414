"""A campaign behind Label Studio, told what version 1.23.2 tells a model."""

import copy
import shutil
import threading

import pytest

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.exchange.live import LiveCampaign
from stakes.exchange.tasks import open_tasks
from tests.exchange.conftest import create, golden, row

CREATED = [golden(f"annotation_created-{i}.json") for i in range(1, 8)]
UPDATED, DELETED = golden("annotation_updated-1.json"), golden("annotations_deleted-1.json")


@pytest.fixture
def path(tmp_path):
    create(tmp_path, "classes").close()
    return tmp_path / "classes.stakes"


@pytest.fixture
def live(path):
    opened = LiveCampaign(path)
    yield opened
    opened.close()


def states(path):
    with Campaign.open(path) as opened:
        return {each: state for each, state in opened.journal.states().items() if state.event > 8}


def changed(body, **annotation):
    other = copy.deepcopy(body)
    other["annotation"] |= annotation
    return other


def result(name):
    return [{"from_name": "label", "to_name": "row", "type": "choices", "value": {"choices": [name]}}]


def about(body):
    return body["task"]["data"]["stakes_id"]


def test_what_a_real_project_sent_is_what_the_campaign_has(path, live):
    """The whole of it, in its order: four labels, of which one is cancelled; one changed and deleted; one unknown."""
    for body, name in zip(CREATED[:3], ("bus", 'van & <"co">', "$5"), strict=True):
        assert live.webhook(body) == {"recorded": 1, "known": 0, "replaced": 0, "opinions": 0, "withdrawn": 0}
        assert states(path)[about(body)].label == name  # on the disk, for everybody
        assert states(path)[about(body)].who == "label-studio:1"
    assert set(live.webhook(CREATED[3]).values()) == {0}
    assert about(CREATED[3]) not in states(path)
    assert live.webhook(CREATED[4])["recorded"] == 1
    assert live.webhook(UPDATED)["replaced"] == 1
    assert states(path)[about(UPDATED)].label == "$5"
    assert live.webhook(DELETED)["withdrawn"] == 1
    assert states(path)[about(UPDATED)].status == "open"
    before = states(path)
    with pytest.raises(StakesError, match=r"task \d+, row .*'no such class' is no class; there are .*'bus'"):
        live.webhook(CREATED[5])
    assert set(live.webhook(golden("annotations_deleted-2.json")).values()) == {0}  # that one was never recorded
    assert set(live.webhook(golden("project_updated-1.json")).values()) == {0}
    assert states(path) == before
    assert live.webhook(CREATED[6])["opinions"] == 1
    with Campaign.open(path) as opened:
        assert opened.disagreements() == (about(CREATED[6]),)
        assert opened.journal.state(about(CREATED[6])).label == "bus"
        opened.check()


def test_once_more_changes_nothing(path, live):
    live.webhook(CREATED[0])
    before = path.read_bytes()
    assert live.webhook(CREATED[0])["known"] == 1
    assert path.read_bytes() == before
    live.webhook(DELETED)  # of another annotation
    assert path.read_bytes() == before


def test_which_row_an_annotation_was_of_is_known_after_a_restart(path, live):
    live.webhook(CREATED[4])
    live.close()
    again = LiveCampaign(path)
    try:
        assert again.webhook(DELETED)["withdrawn"] == 1
        assert again.webhook(DELETED)["withdrawn"] == 0
    finally:
        again.close()


def test_an_annotation_of_another_project_with_the_same_number_is_another(path, live):
    live.webhook(CREATED[4])
    other = copy.deepcopy(DELETED)
    other["project"]["id"] += 1
    assert live.webhook(other)["withdrawn"] == 0
    assert states(path)[about(CREATED[4])].status == "labelled"


def test_what_others_say_stays_when_one_takes_it_back(path, live):
    live.webhook(CREATED[0])
    live.webhook(CREATED[6])
    body = {**DELETED, "annotations": [{"id": CREATED[0]["annotation"]["id"]}]}
    assert live.webhook(body)["withdrawn"] == 1
    state = states(path)[about(CREATED[0])]
    assert state.label == CREATED[6]["annotation"]["result"][0]["value"]["choices"][0]


def test_a_label_that_is_cancelled_later_is_taken_back(path, live):
    live.webhook(CREATED[0])
    body = changed(CREATED[0], was_cancelled=True)
    assert live.webhook({**body, "action": "ANNOTATION_UPDATED"})["withdrawn"] == 1
    assert states(path)[about(CREATED[0])].status == "open"


def test_a_label_that_somebody_else_changed_meanwhile_is_not_withdrawn(path, live):
    live.webhook(CREATED[4])
    with Campaign.open(path) as opened:
        opened.withdraw([about(CREATED[4])])
        opened.tell(about(CREATED[4]), "bus", who="anna")
    assert live.webhook(DELETED)["withdrawn"] == 0
    assert states(path)[about(CREATED[4])].label == "bus"


def test_several_at_once_are_all_recorded_or_none(path, live):
    def several(*bodies):
        return {
            "action": "ANNOTATIONS_CREATED",
            "annotation": [body["annotation"] for body in bodies],
            "task": [body["task"] for body in bodies],
            "project": bodies[0]["project"],
        }

    with pytest.raises(StakesError, match="'no such class'"):
        live.webhook(several(CREATED[0], CREATED[5]))
    assert states(path) == {}
    assert live.webhook(several(*CREATED[:4]))["recorded"] == 3


def test_labels_of_a_test_are_taken_and_taken_back(path, live):
    with Campaign.open(path) as opened:
        (drawn,) = opened.audit(1)
    body = copy.deepcopy(CREATED[0])
    body["task"]["data"]["stakes_id"] = body["task"]["meta"]["stakes_id"] = drawn
    assert live.webhook(body)["recorded"] == 1
    assert states(path)[drawn].status == "tested"
    assert live.webhook({**DELETED, "annotations": [{"id": body["annotation"]["id"]}]})["withdrawn"] == 1
    assert states(path)[drawn].status == "open"


@pytest.mark.parametrize(
    "broken",
    [
        {"action": "ANNOTATION_CREATED"},
        {"action": "ANNOTATIONS_DELETED"},
        {"action": "ANNOTATIONS_DELETED", "annotations": [3]},
        {**CREATED[0], "annotation": None},
        {**CREATED[0], "task": [CREATED[0]["task"], CREATED[1]["task"]]},
        {**CREATED[0], "task": {"id": 1, "data": {"stakes_id": "no such row"}}},
        changed(CREATED[0], result="bus"),
        changed(CREATED[0], result=result("bus") + result("$5")),
    ],
)
def test_what_cannot_be_understood_is_refused(path, live, broken):
    with pytest.raises(StakesError):
        live.webhook(broken)
    assert states(path) == {}


def test_predictions_are_ranks_in_the_order_of_the_tasks(path, live):
    request = golden("predict-1.json")
    answer = live.predict(request)
    with Campaign.open(path) as opened:
        ours = {task.row: task.score for task in open_tasks(opened).tasks}
    rows = [task["data"]["stakes_id"] for task in request["tasks"]]
    assert [each["score"] for each in answer["results"]] == [ours[each] for each in rows]
    assert {each["model_version"] for each in answer["results"]} == {answer["model_version"]} == {"stakes-8"}
    assert live.setup(golden("setup-1.json")) == {"model_version": "stakes-8"}


def test_after_a_label_the_order_is_a_new_one_and_that_row_the_last(live):
    live.predict(golden("predict-1.json"))
    live.webhook(CREATED[0])
    answer = live.predict(golden("predict-1.json"))
    assert answer["model_version"] == "stakes-9" == live.setup({})["model_version"]
    rows = [task["data"]["stakes_id"] for task in golden("predict-1.json")["tasks"]]
    scores = dict(zip(rows, (each["score"] for each in answer["results"]), strict=True))
    assert scores[about(CREATED[0])] == 1.0
    assert sorted(scores.values())[0] == 0.0


def test_whoever_sits_in_front_of_a_task_does_not_wait_for_a_ranking(path):
    ranking, go_on = threading.Event(), threading.Event()

    def ranked(found):
        if found.version != "stakes-8":
            ranking.set()
            assert go_on.wait(60)

    live = LiveCampaign(path, ranked=ranked)
    try:
        request = golden("predict-1.json")
        live.predict(request)
        live.webhook(CREATED[0])
        assert ranking.wait(60)
        live.webhook(CREATED[1])  # labels are taken while rows are ranked
        one = live.predict({**request, "tasks": request["tasks"][:1]})
        assert one["model_version"] == "stakes-10"
    finally:
        go_on.set()
        live.close()


def test_a_task_that_is_not_ours_comes_last_and_guesses_are_shown_if_asked_for(path):
    live = LiveCampaign(path, guess=True)
    try:
        tasks = [{"id": 1, "data": {"text": "sample"}}, {"id": 2, "data": {"stakes_id": row(8)}}]
        other, ours = live.predict({"tasks": tasks})["results"]
        assert (other["score"], other["result"]) == (1.0, [])
        assert ours["result"][0]["value"]["choices"][0] in ("bus", "$5", 'van & <"co">')
    finally:
        live.close()


@pytest.mark.parametrize("tasks", [None, "text", [3], [{}] * 100_001])
def test_requests_without_tasks_are_refused(live, tasks):
    with pytest.raises(StakesError, match="list of tasks"):
        live.predict({"tasks": tasks})


def test_a_model_that_fails_leaves_the_last_order_and_is_reported(path, monkeypatch):
    reports = []
    live = LiveCampaign(path, report=reports.append)
    try:
        request = golden("predict-1.json")
        first = live.predict(request)

        def broken(*_, **__):
            raise StakesError("no model today")

        monkeypatch.setattr("stakes.exchange.live.open_tasks", broken)
        live.webhook(CREATED[0])
        second = live.predict(request, wait=10.0)
        assert [each["score"] for each in second["results"]] == [each["score"] for each in first["results"]]
        assert reports == ["The rows could not be ranked anew: no model today"]
    finally:
        live.close()


def test_a_campaign_that_is_none_is_refused_at_once(tmp_path, path):
    with pytest.raises(StakesError, match=r"none\.stakes"):
        LiveCampaign(tmp_path / "none.stakes")
    shutil.move(tmp_path / "classes.csv", tmp_path / "moved.csv")
    with pytest.raises(StakesError, match="table of the campaign"):
        LiveCampaign(path)
    LiveCampaign(path, table=str(tmp_path / "moved.csv")).close()
