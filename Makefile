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
SOURCES := pyproject.toml docs/package-page.md LICENSE py.typed __init__.py __main__.py \
	$(shell find audit mechanisms experiments reports -name '*.py' -o -name '*.j2' -o -name '*.js')

.PHONY: audit test types pytest doctests evidence test-diffprivlib test-jax-privacy test-torch test-accountants test-sql test-federated docs clean

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

# The scikit-learn that diffprivlib needs is an old one, so its tests have an environment of their own.
test-diffprivlib: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-diffprivlib
	$(VENV)-diffprivlib/bin/pip install $(QUIETLY) --no-compile '.[test,diffprivlib]'
	PYTHONPATH=$(SOURCE) $(VENV)-diffprivlib/bin/pytest tests/mechanisms/adapters tests/experiments/benchmarks/test_tables.py -m ''
	PYTHONPATH=$(SOURCE) $(VENV)-diffprivlib/bin/pytest tests/test_docs_pages.py -k diffprivlib

# JAX is large and only these tests need it, so they have an environment of their own.
test-jax-privacy: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-jax-privacy
	$(VENV)-jax-privacy/bin/pip install $(QUIETLY) --no-compile '.[test,jax-privacy]'
	PYTHONPATH=$(SOURCE) $(VENV)-jax-privacy/bin/pytest tests/experiments/libraries tests/experiments/benchmarks/test_tables.py -m ''

# Torch is larger still. An index that has wheels for CPUs only, named by PIP_EXTRA_INDEX_URL, saves most of it.
test-torch: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-torch
	$(VENV)-torch/bin/pip install $(QUIETLY) --no-compile '.[test,torch,jax-privacy]' opacus
	PYTHONPATH=$(SOURCE) $(VENV)-torch/bin/pytest tests/audit/training tests/mechanisms/adapters/test_torch.py -m ''

# Accountants of other libraries, of which Opacus needs torch.
test-accountants: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-accountants
	$(VENV)-accountants/bin/pip install $(QUIETLY) --no-compile '.[test,accountants]'
	PYTHONPATH=$(SOURCE) $(VENV)-accountants/bin/pytest tests/mechanisms/adapters/test_accountants.py

# SmartNoise SQL needs an older OpenDP, and Qrlew an older numpy.
test-sql: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-sql
	$(VENV)-sql/bin/pip install $(QUIETLY) --no-compile '.[all,smartnoise-sql,pyqrlew]' pytest hypothesis
	PYTHONPATH=$(SOURCE) $(VENV)-sql/bin/pytest tests/mechanisms/adapters/test_smartnoise_sql.py tests/experiments/library_suites/test_qrlew.py

# Flower and NVIDIA FLARE bring servers along, with pinned versions of what these need.
test-federated: | $(VENV)/source
	$(PYTHON) -m venv $(VENV)-federated
	$(VENV)-federated/bin/pip install $(QUIETLY) --no-compile '.[all,flwr,nvflare]' 'pytest>=8.2' 'hypothesis>=6.150'
	PYTHONPATH=$(SOURCE) $(VENV)-federated/bin/pytest tests/experiments/library_suites/test_federated.py

docs: $(VENV)/installed-test $(VENV)/source
	PYTHONPATH=$(SOURCE) $(BIN)/mkdocs build --strict
	PYTHONPATH=$(SOURCE) $(BIN)/pytest tests/test_docs.py tests/test_docs_search.py -m site

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv --without-pip $(VENV)

# Modules are compiled when they are first imported: most of what the tests bring along never is. uv takes a sixth of pip's time. It is installed beside
# the environment, as pip takes three seconds to enter one. Where uv fails, behind a mirror that only pip knows for
# example, pip installs.
define install
	{ test -x $(UV) || $(PYTHON) -m pip install $(QUIETLY) --root-user-action ignore --target $(VENV)/uv uv; } \
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
