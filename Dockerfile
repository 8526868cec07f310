# The course for a JupyterHub or a laptop: CPU torch in fixed versions, JupyterLab on the first page, no rights.
# `docker build -t setclr . && docker run -p 8888:8888 setclr`; INDEX is where pip finds torch's CPU build.
FROM python:3.11-slim
ARG INDEX=1
RUN apt-get update && apt-get install -y --no-install-recommends make git && rm -rf /var/lib/apt/lists/* \
  && useradd --create-home student
USER student
WORKDIR /home/student/setclr
COPY --chown=student . .
RUN make .venv/.ready CPU=$INDEX
EXPOSE 8888
CMD ["make", "lab", "LAB_OPTIONS=--no-browser --ip 0.0.0.0"]
