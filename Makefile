# `make audit` and `make test` do everything on a machine with Python 3.11 and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
UV := $(VENV)/uv/bin/uv
QUIETLY := --quiet --disable-pip-version-check
# Small matrices, and as many processes as cores: threads of the linear algebra would only get in each other's way.
export OMP_NUM_THREADS := 1
# Memory of arrays is kept for the next ones: handing it back to the system takes a tenth of a small audit's time.
export MALLOC_MMAP_THRESHOLD_ := 67108864
export MALLOC_TRIM_THRESHOLD_ := 268435456
# What is imported is compiled once, and not again by every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := pyproject.toml setup.py docs/package-page.md LICENSE py.typed __init__.py __main__.py \
	$(shell find audit mechanisms experiments reports -name '*.py' -o -name '*.j2' -o -name '*.js')

.PHONY: audit test types pytest doctests evidence matrix docs version dist dry-run site clean

audit: $(VENV)/installed
	$(BIN)/dpaudit run

# The source tree is the package, found under its name through a link: tests and the type checker read what is edited.
SOURCE := $(CURDIR)/$(VENV)/source

test: $(VENV)/installed-test $(VENV)/source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs 2 types pytest

# The type checker needs twice the time of the doctests, and one core.
pytest: doctests
	PYTHONPATH=$(SOURCE) $(BIN)/pytest tests --numprocesses 2 --dist worksteal --ignore tests/experiments/benchmarks \
		--ignore tests/mechanisms/adapters/answering_program.py

types: $(VENV)/installed-test $(VENV)/source
	MYPYPATH=$(SOURCE) $(BIN)/mypy $(addprefix -p dpaudit.,audit mechanisms experiments reports)

# Of the installed copy, where they stand under the names that users import.
doctests: $(VENV)/installed-test
	$(BIN)/pytest --doctest-modules --pyargs dpaudit --quiet

# What the documents say of dpaudit itself. The figures in docs/benchmarks take days, so --resume continues them.
evidence: $(VENV)/installed-test $(VENV)/source
	PYTHONPATH=$(SOURCE) $(BIN)/pytest tests/experiments/benchmarks --numprocesses 2 --dist worksteal
	PYTHONPATH=$(SOURCE) $(BIN)/pytest tests/audit tests/experiments tests/mechanisms -m evidence --numprocesses 2 --dist worksteal
	PYTHONPATH=$(SOURCE) $(BIN)/python -m dpaudit bench all --resume --out docs/benchmarks

# Fresh environments with the wheel: the rows of docs/support.md but the large ones, or `make matrix ROWS="3.12 torch"`.
# Large rows have libraries of gigabytes. An index with wheels for CPUs only, in UV_EXTRA_INDEX_URL, saves most of them.
matrix:
	$(uv)
	PATH="$(CURDIR)/$(VENV)/uv/bin:$$PATH" $(UV) tool run --python $(PYTHON) nox --noxfile .ci/matrix.py \
		$(if $(ROWS),--session $(ROWS))

docs: $(VENV)/installed-test $(VENV)/source
	PYTHONPATH=$(SOURCE) $(BIN)/mkdocs build --strict
	PYTHONPATH=$(SOURCE) $(BIN)/pytest tests/test_docs.py tests/test_docs_search.py -m site

# Releases, in the order of docs/releasing.md. `make version TO=1.0.0` sets the version in the files that state it.
RELEASE := $(VENV)-release/bin

version: STATED := pyproject.toml CITATION.cff packaging/recipe.yaml docs/how-to/reviewers.md docs/install.md
version:
	sed -E -i.old -e 's/^( *version(:| =) ["{]?)[0-9][^"}, ]*/\1$(TO)/' -e 's/^[0-9]+\.[0-9]+\.[0-9][0-9a-z.]*$$/$(TO)/' $(STATED)
	rm $(STATED:=.old)

$(RELEASE)/twine:
	$(PYTHON) -m venv $(VENV)-release
	$(RELEASE)/python -m pip install $(QUIETLY) --no-compile build check-wheel-contents pyroma twine

# pyroma takes two of ten points because the authors have no address.
dist: $(RELEASE)/twine
	rm -rf dist
	$(RELEASE)/python -m build
	$(RELEASE)/twine check --strict dist/*
	$(RELEASE)/check-wheel-contents dist/*.whl
	$(RELEASE)/pyroma --min 8 dist/*.tar.gz

dry-run: dist
	$(RELEASE)/python packaging/dry_run.py dist

# The branch gh-pages keeps the pages of all versions, and the list from which a reader chooses one.
site: MIKE := PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=$(SOURCE) $(BIN)/mike
site: $(VENV)/installed-test $(VENV)/source
	$(BIN)/python -m pip install $(QUIETLY) --no-compile mike
	$(MIKE) deploy --push --update-aliases $$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) stable
	$(MIKE) set-default --push stable

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv --without-pip $(VENV)

# Modules are compiled when they are first imported: most of what the tests bring along never is. uv takes a sixth of pip's time. It is installed beside
# the environment, as pip takes three seconds to enter one. Where uv fails, behind a mirror that only pip knows for
# example, pip installs.
uv = { test -x $(UV) || $(PYTHON) -m pip install $(QUIETLY) --root-user-action ignore --target $(VENV)/uv uv; }
define install
	$(uv) \
		&& $(UV) pip install --quiet --python $(BIN)/python --reinstall-package dpaudit pip $(1) \
		|| { $(BIN)/python -m ensurepip --upgrade > $(VENV)/ensurepip \
			&& $(BIN)/python -m pip install $(QUIETLY) --no-compile $(1); }
endef

$(VENV)/installed: $(SOURCES) | $(BIN)/python
	$(call install,'.[all]')
	touch $@

$(VENV)/installed-test: $(SOURCES) | $(BIN)/python
	$(call install,'.[test]')
	touch $(VENV)/installed $@

$(VENV)/source:
	mkdir -p $@
	ln -sfn ../.. $@/dpaudit

clean:
	rm -rf $(VENV) $(VENV)-* build dpaudit.egg-info .mypy_cache .ruff_cache .pytest_cache
