"""UCF-101 (Soomro et al. 2012, table 5 of MMCL), laid out as `setclr.video.load_videos` reads folders."""

from pathlib import Path

VIDEOS = {"train": 9537, "test": 3783}  # of split 1


def link_splits(root: str | Path, complete: bool = True) -> str:
    """Link the videos of UCF-101's split 1 into ROOT/train/CLASS and ROOT/test/CLASS; gives "folder:ROOT".

    ROOT holds what UCF101.rar and UCF101TrainTestSplits-RecognitionTask.zip of crcv.ucf.edu unpack:
    UCF-101/CLASS/v_CLASS_g01_c01.avi, and ucfTrainTestlist/trainlist01.txt and testlist01.txt. `complete`
    requires the full number of videos. Raises FileNotFoundError or ValueError, with the remedy, before
    anything is linked, where a list or a video is missing.
    """
    root, entries = Path(root).resolve(), {}
    for split, count in VIDEOS.items():
        path = root / "ucfTrainTestlist" / f"{split}list01.txt"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; unpack UCF101TrainTestSplits-RecognitionTask.zip")
        entries[split] = [line.split()[0] for line in path.read_text().splitlines() if line.strip()]
        if complete and len(entries[split]) != count:
            raise ValueError(f"{path} must list {count} videos, got {len(entries[split])}; fetch it again")
        for entry in entries[split]:
            if not (root / "UCF-101" / entry).is_file():
                raise FileNotFoundError(f"{root}/UCF-101/{entry} is missing; unpack UCF101.rar into {root}")
    for split, names in entries.items():
        for name in names:
            link = root / split / name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(root / "UCF-101" / name)
    return f"folder:{root}"
