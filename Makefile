# Two commands do everything on a fresh Debian machine, as root: `make demo` and `make test`.
BIN := .venv/bin
MATRICES := tests/lab/test_ssh_shapes.py tests/lab/test_lockout_faults.py

.PHONY: help setup demo test lint unit lab vm molecule full ssh-matrix clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make setup     system packages (as root) and a virtual environment in .venv
setup:
	@tools/setup

## make demo      start a lab host, take it from bare to proven, show the report
demo: setup
	$(BIN)/gpu-provision lab ssh demo -- true 2>/dev/null || $(BIN)/gpu-provision lab up demo
	$(BIN)/gpu-provision bootstrap demo --profile research --set nvidia_driver_source=debian --yes

## make test      every check: lint, unit, lab, vm and molecule (lab hosts, as root)
test: setup lint unit lab vm molecule

## make lint      ruff, mypy, yamllint, ansible-lint
lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .
	tools/ansible-lint

## make unit      no host, no root, a few minutes
unit: setup
	$(BIN)/pytest tests/unit -q -n auto -m "not full"

## make lab       booted lab hosts; skipped with its reason where this machine cannot run them
lab: setup
	$(BIN)/pytest tests/lab -q -m "not full and not alone" -n 2 --dist loadfile --durations=25
	$(BIN)/pytest tests/lab -q -m "not full and alone"

## make vm        virtual machines, one after the other; skipped with its reason where this machine cannot run them
vm: setup
	$(BIN)/pytest tests/vm -q -m "not full" --durations=10

## make molecule  each role on lab hosts: check mode, converge, idempotence, verify
molecule: setup
	tools/molecule

## make full      everything, with the large matrices; hours
full: setup lint unit ssh-matrix
	$(BIN)/pytest tests/lab -q -m "not alone" -n 2 --dist loadfile $(MATRICES:%=--ignore=%)
	$(BIN)/pytest tests/lab -q -m alone
	$(BIN)/pytest tests/vm -q
	tools/molecule

## make ssh-matrix   each SSH shape and each fault on Debian 12 and 13; writes docs/ssh-matrix.md, and
##                with MORE=--missing makes up for what an earlier run left or saw fail
ssh-matrix: setup
	$(BIN)/pytest $(MATRICES) -q -n 4 --matrix docs/ssh-matrix.md $(MORE)

## make clean     take the lab down and remove what was built
clean:
	-[ ! -x $(BIN)/gpu-provision ] || $(BIN)/gpu-provision lab down --all
	rm -rf .venv build dist .cache
