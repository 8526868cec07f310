"""Contrastive learning on videos with any loss, after table 5 of MMCL and CoCLR (Han et al. 2020).

Files are decoded by PyAV: pip install 'setclr[video]'.
"""

from setclr.video.encoders import VIDEO_ENCODERS, conv4_clips, s3d, video_encoder
from setclr.video.files import VideoFiles
from setclr.video.flow import to_bytes, to_pixels, tv_l1
from setclr.video.sets import VideoSet, load_videos
from setclr.video.views import VIDEO, ClipViews, clip_views, ten_crops, uncut, video_views

__all__ = ["VIDEO", "VIDEO_ENCODERS", "ClipViews", "VideoFiles", "VideoSet", "clip_views", "conv4_clips",
           "load_videos", "s3d", "ten_crops", "to_bytes", "to_pixels", "tv_l1", "uncut", "video_encoder",
           "video_views"]  # fmt: skip
