# The first Python >= 3.11 on the path; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready
NOTEBOOK ?= notebooks/00_start_here.ipynb
PAGES ?=
RECIPE ?= photo-groco
IP ?= 127.0.0.1
# torch's CPU build, 2 GB: CPU=URL names the index that has it; CPU=1 where pip brings it by itself, as on macOS.
CPU ?=
ROOM := $(if $(CPU),2500000,8000000)
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# Photographs that are chosen together have more than the 10 MB that a message may have otherwise.
LARGE := --ServerApp.tornado_settings='{"websocket_max_message_size": 1000000000}'
AT_ONCE := --ServerApp.kernel_websocket_connection_class=setclr_course.at_once.AtOnce

.DEFAULT_GOAL := help
.PHONY: help lab test test-processes test-careful test-machines torture test-browser test-site notebooks site \
  slides student grading coverage pretrain bench gpu format clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

# One environment for everything, made again only when what it is made from changes.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { \
	  echo "SetCLR needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv module is missing: install it (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@test -n "$(PIP_OPTIONS)$$(df -Pk . | awk 'NR == 2 && $$4 > $(ROOM)')" || { \
	  echo "SetCLR's environment takes about $(if $(CPU),2,7) GB and the disk has less: free some (README.md: CPU)"; exit 1; }
	@echo "Making .venv ($(if $(CPU),2,7) GB, a few minutes; only this once) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(filter-out 1,$(CPU)),--extra-index-url $(CPU)) $(PIP_OPTIONS) \
	  -c constraints.txt -e '.[lab,encoders,graphs,video,examples,site,test]' || { \
	  echo "The packages could not be installed: the lines above say which; is the network there?"; exit 1; }
	@$(BIN)/jupyter labextension disable --level=sys_prefix \
	  @jupyterlab/apputils-extension:announcements >/dev/null 2>&1
	@touch $@

lab: $(READY) ## open JupyterLab on the first notebook
	$(BIN)/jupyter lab --ip $(IP) --ServerApp.root_dir=. $(AT_ONCE) $(LARGE) $(AS_ROOT) $(LAB_OPTIONS) $(NOTEBOOK)

test: $(READY) ## lint, check types, test the library, run every notebook with small parameters and its sliders
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not browser and not careful and not processes"

test-processes: $(READY) ## the tests that start other processes, on two hosts too, and kill some
	$(BIN)/python -m pytest -n 2 --dist worksteal -m processes

test-careful: $(READY) ## run the careful pages and the solutions, with small parameters
	$(BIN)/python -m pytest -n 2 -m careful

test-machines: $(READY) ## the numerical tests and notebooks under other processors, threads, seeds and loads
	$(BIN)/python tests/tools/machines.py

torture: $(READY) ## strike Trainers and fit them again for 20 minutes, or TORTURE_MINUTES=60
	$(BIN)/python tests/tools/torture

test-browser: $(READY) ## drive the sliders in a real JupyterLab (needs Chromium)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m browser

test-site: $(READY) ## the same of a whole build/site, as make site leaves it (needs Chromium)
	SETCLR_SITE=build/site $(BIN)/python -m pytest tests/test_site.py

site: $(READY) ## write the course as static pages that slide into build/site, or only make site PAGES="01 careful/07"
	$(BIN)/python site/builder.py $(PAGES)

slides: $(READY) ## write a deck of slides of every page, or of PAGES, into build/slides
	$(BIN)/python site/slides.py $(PAGES)

notebooks: $(READY) ## run every notebook in full into build/, HTML beside
	$(BIN)/python tests/tools/notebook_tools.py build

student: $(READY) ## write the course without solutions and outputs into build/student
	$(BIN)/python tests/tools/notebook_tools.py student

grading: $(READY) ## write the exercises of every page, or of PAGES, as otter-grader's assignments into build/grading
	$(BIN)/python site/grading.py $(PAGES)

coverage: $(READY) ## write notebooks/coverage.md: where each figure and equation is shown
	$(BIN)/python tests/tools/coverage_page.py

pretrain: $(READY) ## train a recipe: make pretrain RECIPE=photo-groco
	$(BIN)/python -m setclr pretrain $(RECIPE) --out data/runs/$(RECIPE)

bench: $(READY) ## measure losses, panels, explore, the training loop; or ONLY="panels"
	$(BIN)/python tests/tools/bench.py $(ONLY)

gpu: $(READY) ## on a machine with a GPU: its tests, its speed, and a file with both to be committed
	$(BIN)/python tests/tools/gpu.py

format: $(READY) ## format the code, strip the notebooks of what is not theirs
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python tests/tools/notebook_tools.py strip

clean: ## remove build/ and caches; .venv and data/ stay
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis lib/*.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
