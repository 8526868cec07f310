# The course for a JupyterHub or a laptop: torch in a fixed version, JupyterLab on the first page, no rights.
# `docker build --build-arg INDEX=URL -t setclr . && docker run -p 8888:8888 setclr`, with the index of torch's CPU
# builds that pytorch.org names. Without INDEX pip brings CUDA, and the image has 7 GB in the place of 2.
FROM python:3.11-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends make git && rm -rf /var/lib/apt/lists/* \
  && useradd --create-home student
USER student
WORKDIR /home/student/setclr

FROM base
ARG INDEX=1
COPY --chown=student . .
RUN make .venv/.ready CPU=$INDEX
EXPOSE 8888
CMD ["make", "lab", "IP=0.0.0.0", "LAB_OPTIONS=--no-browser"]
