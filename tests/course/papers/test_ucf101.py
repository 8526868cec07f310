"""UCF-101's split 1, made up: what its archives unpack becomes folders that the library reads."""

import pytest

from setclr_course.papers.ucf101 import link_splits

ENTRIES = ["Archery/v_Archery_g08_c01.avi", "YoYo/v_YoYo_g08_c01.avi"]
TESTED = ["Archery/v_Archery_g01_c01.avi", "YoYo/v_YoYo_g01_c01.avi"]


def test_the_splits_are_folders_of_links(tmp_path):
    """The lists have the line ends of Windows, those of training a label beside each name."""
    lists = {"trainlist01": [f"{ENTRIES[0]} 1", f"{ENTRIES[1]} 2"], "testlist01": TESTED}
    (tmp_path / "ucfTrainTestlist").mkdir()
    for name, lines in lists.items():
        (tmp_path / "ucfTrainTestlist" / f"{name}.txt").write_text("\r\n".join([*lines, ""]))
    for entry in (*ENTRIES, *TESTED):
        path = tmp_path / "UCF-101" / entry
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry)
    for _ in range(2):
        assert link_splits(tmp_path, complete=False) == f"folder:{tmp_path}"
    for split, entries in (("train", ENTRIES), ("test", TESTED)):
        linked = sorted((tmp_path / split).glob("*/*"))  # no videos, so that `load_videos` refuses them
        assert [path.read_text() for path in linked] == entries
        assert [path.parent.name for path in linked] == ["Archery", "YoYo"]
    with pytest.raises(ValueError, match="must list 9537 videos, got 2; fetch it again"):
        link_splits(tmp_path)
    (tmp_path / "UCF-101" / ENTRIES[1]).unlink()
    with pytest.raises(FileNotFoundError, match="v_YoYo_g08_c01.avi is missing; unpack UCF101.rar"):
        link_splits(tmp_path, complete=False)
    (tmp_path / "ucfTrainTestlist" / "testlist01.txt").unlink()
    with pytest.raises(FileNotFoundError, match="(v_YoYo|testlist01).* is missing; unpack"):
        link_splits(tmp_path, complete=False)
