"""Contrastive learning on videos with any loss, after table 5 of MMCL and CoCLR (Han et al. 2020).

Files are decoded by PyAV: pip install 'setclr[video]'. The set moving-patches does not need PyAV.
"""

from setclr.video.encoders import VIDEO_ENCODERS, conv4_clips, s3d, video_encoder
from setclr.video.files import VideoFiles
from setclr.video.flow import flow_of_clips, to_bytes, to_pixels, tv_l1
from setclr.video.moving import MOTIONS, Camera, camera_flow, drive, film, moving_patches
from setclr.video.sets import VideoSet, load_videos
from setclr.video.views import VIDEO, ClipViews, clip_views, ten_crops, uncut, video_views

__all__ = ["MOTIONS", "VIDEO", "VIDEO_ENCODERS", "Camera", "ClipViews", "VideoFiles", "VideoSet",
           "camera_flow", "clip_views", "conv4_clips", "drive", "film", "flow_of_clips",
           "load_videos", "moving_patches", "s3d", "ten_crops", "to_bytes", "to_pixels", "tv_l1", "uncut",
           "video_encoder", "video_views"]  # fmt: skip
