"""What the wheel holds: the folder is the package `dpaudit`, without what only measures dpaudit itself."""

from tempfile import TemporaryDirectory

from setuptools import find_namespace_packages, setup

PARTS = ("audit", "mechanisms", "reports", "experiments")
EVIDENCE = ("experiments.benchmarks", "experiments.catalogue", "experiments.published")

included, excluded = ([pattern for name in names for pattern in (name, f"{name}.*")] for names in (PARTS, EVIDENCE))
found = find_namespace_packages(include=included, exclude=[*excluded, "*.__pycache__"])
with TemporaryDirectory() as folder:  # build/, the default, would add what a build of another version left there
    setup(
        script_name="setup.py",  # which is then no module of the package
        packages=["dpaudit", *(f"dpaudit.{name}" for name in found)],
        package_dir={"dpaudit": "."},
        options={"build": {"build_base": folder}},
    )
