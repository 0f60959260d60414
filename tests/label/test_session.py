"""Secrets, cookies, names."""

import stat

import pytest

from stakes.exceptions import StakesError
from stakes.label.session import Browser, Secret, new_browser


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_a_secret_is_kept_for_its_owner_alone_and_is_the_same_the_next_time(tmp_path):
    first = Secret.of(tmp_path / "c.stakes")
    assert Secret.of(tmp_path / "c.stakes") == first
    (file,) = (tmp_path / "config" / "stakes" / "label").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Secret.of(tmp_path / "d.stakes").token != first.token
    assert Secret.of(tmp_path / "c.stakes", renew=True).token != first.token
    assert first.key.hex() not in repr(first)


def test_a_secret_that_cannot_be_kept_or_was_cut_short_is_made_anew(tmp_path):
    (tmp_path / "config").write_text("a file in the way")
    assert len(Secret.of(tmp_path / "c.stakes").key) == 32
    (tmp_path / "config").unlink()
    secret = Secret.of(tmp_path / "c.stakes")
    (file,) = (tmp_path / "config" / "stakes" / "label").iterdir()
    file.write_bytes(b"short")
    assert Secret.of(tmp_path / "c.stakes").token != secret.token


def test_a_cookie_is_read_back_and_nothing_else_is(tmp_path):
    secret, other = Secret.of(tmp_path / "c.stakes"), Secret.of(tmp_path / "d.stakes")
    browser = Browser("id", "Zoë <b>", {"class:good": "g"})
    sealed = secret.sealed(browser)
    assert secret.opened(sealed) == browser
    text, _, mark = sealed.partition(".")
    forged = secret.sealed(Browser("id", "Eve")).partition(".")[0]
    for wrong in (None, "", "x", sealed[:-1], f"{forged}.{mark}", f"{text}.", other.sealed(browser), "\xff." + mark,
                  f"{text}.\xe9", "\xe9.\xe9", "\udcff.\udcff", "a.b.c", f"{text}.{mark}.x"):  # fmt: skip
        assert secret.opened(wrong) is None


def test_more_than_a_browser_keeps_is_refused_rather_than_lost(tmp_path):
    secret = Secret.of(tmp_path / "c.stakes")
    many = Browser("id", "Anna", {f"class:{'x' * 100}{at}": "k" for at in range(30)})
    with pytest.raises(StakesError, match="30 keys of your own are more than a browser keeps"):
        secret.sealed(many)


def test_marks_of_forms_belong_to_one_browser(tmp_path):
    secret = Secret.of(tmp_path / "c.stakes")
    one, other = new_browser(), new_browser()
    assert secret.form_mark(one) != secret.form_mark(other)
    assert secret.form_mark(one) == secret.form_mark(one.named("Anna"))
    assert secret.admits(secret.token)
    assert not secret.admits("\u20ac")
    assert not secret.admits("")


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\0b", "\x1b[31m"])
def test_what_can_be_no_name_is_refused(name):
    with pytest.raises(StakesError, match="a name has 1 to 60 letters"):
        Browser("x").named(name)
