"""Files that cells name: those below the folder, of known kinds, and no others."""

import os

import pytest

from stakes.exceptions import StakesError
from stakes.label.media import Media


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "media"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.png").write_bytes(b"png")
    (folder / "deep" / "b.JPG").write_bytes(b"jpg")
    (folder / "note.txt").write_text("héllo <b>", encoding="utf-8")
    (folder / "long.txt").write_text("x" * 200_000)
    (folder / "script.svg").write_text("<svg/>")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.png", folder / "link.png")
    os.symlink(folder / "a.png", folder / "inside.png")
    return Media.of(str(folder))


def test_files_below_the_folder_are_found(media):
    assert media.is_image("a.png")
    assert media.is_image("deep/b.JPG")
    assert media.is_image("inside.png")
    assert media.text("note.txt") == "héllo <b>"
    assert media.text("long.txt").endswith("(the rest is left out)")
    assert media.text("a.png") is None
    assert not media.is_image("note.txt")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../secret.png", "deep/../../secret.png", "link.png", "script.svg", "a.png\0", "deep", "x" * 2000,
     "https://example.org/a.png", "C:\\a.png", "nothing.png", "%2e%2e/secret.png", "..\\secret.png"],
)  # fmt: skip
def test_what_leaves_the_folder_or_is_of_another_kind_is_not_there(media, name):
    assert media.file(name) is None
    assert media.text(name) is None


def test_a_path_from_the_root_is_not_there(media, tmp_path):
    assert media.file(str(tmp_path / "secret.png")) is None
    assert media.text(str(tmp_path / "secret.txt")) is None


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(StakesError, match="there is no folder"):
        Media.of(str(tmp_path / "nothing"))
