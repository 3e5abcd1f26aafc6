"""Running conformance cases by the hundred: which files, over all cores, and what to tell of the outcome."""

from __future__ import annotations

import logging
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from vcscheduler.config import ConfigurationError
from vcscheduler.framework.registry import PluginError
from vcscheduler.simulator.conformance import CaseError, Difference, EngineFactory, read_case, run_case
from vcscheduler.simulator.engine import SchedulerEngine

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_FEW: Final = 8
"""So few cases are run in this process: starting others would take longer."""


class SelectionError(ValueError):
    """The paths given name no cases; `str()` is one line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case file. `error` is set where the case could not be run to its end."""

    file: str
    id: str
    differences: tuple[Difference, ...] = ()
    error: str = ""
    trace: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.differences and not self.error

    def __str__(self) -> str:
        """One line: the case and, when it failed, why or which keys differ."""
        if self.passed:
            return f"{self.id}: passed"
        if self.error:
            return f"{self.id}: {' '.join(self.error.split())}"
        by_cycle: dict[int, list[str]] = {}
        for difference in self.differences:
            by_cycle.setdefault(difference.cycle, []).append(difference.key)
        return f"{self.id}: " + "; ".join(f"cycle {cycle}: {', '.join(keys)}" for cycle, keys in by_cycle.items())

    def details(self) -> list[str]:
        """One line for each entry that differs, or the place of an unexpected error."""
        if self.error:
            return self.trace.splitlines()
        return [str(entry) for difference in self.differences for entry in difference.entries()]


def collect(paths: Sequence[Path], lists: Sequence[Path] = (), text: str = "") -> list[Path]:
    """The case files behind files, folders and lists of files, each once.

    Folders are searched to all depths, in order of names. A list has one path a line, relative to its own folder;
    empty lines and lines that begin with ``#`` do not count. `text` keeps only files whose path, from the given
    folder's own name on, contains it.

    Raises:
        SelectionError: a path does not exist, or nothing is left to run.
    """
    found: dict[Path, str] = {}
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
            if not files:
                raise SelectionError(f"{path}: no case files in this folder; they end in {', '.join(_SUFFIXES)}")
            above = path.resolve().parent
            found.update((file, str(file.resolve().relative_to(above))) for file in files)
        elif path.exists():
            found[path] = path.name
        else:
            raise SelectionError(f"{path}: no such file or folder")
    for listing in lists:
        found.update((listing.parent / line, line) for line in _listed(listing))
    chosen = [file for file, name in found.items() if text in name]
    if not chosen:
        raise SelectionError(f"no case has {text!r} in its path" if found else "no cases were given")
    return chosen


def _listed(listing: Path) -> list[str]:
    try:
        lines = [line.strip() for line in listing.read_text().splitlines()]
    except OSError as error:
        raise SelectionError(f"{listing}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SelectionError(f"{listing}: not a list of paths: the file is no text") from None
    return [line for line in lines if line and not line.startswith("#")]


def verify_file(file: Path, new_engine: EngineFactory = SchedulerEngine) -> Outcome:
    """Run one case file. Whatever goes wrong is part of the outcome."""
    start = time.perf_counter()
    name = file.stem
    try:
        case = read_case(file)
        name = case.id
        differences = tuple(run_case(case, new_engine))
    except (CaseError, ConfigurationError, PluginError) as error:
        return Outcome(str(file), name, error=str(error), seconds=time.perf_counter() - start)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} (at {Path(place.filename).name}:{place.lineno})"
        return Outcome(str(file), name, (), message, traceback.format_exc(), time.perf_counter() - start)
    return Outcome(str(file), name, differences, seconds=time.perf_counter() - start)


def verify(files: Sequence[Path], processes: int = 0) -> Iterator[Outcome]:
    """Run the files, each outcome as it is known, in the order of the files.

    Args:
        processes: how many at a time; 0 for one a core.
    """
    processes = min(processes or os.cpu_count() or 1, len(files))
    if processes <= 1 or len(files) <= _FEW:
        yield from map(verify_file, files)
        return
    # Fresh processes: forking one that already runs the threads of compiled kernels is not safe.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=quiet) as pool:
        done = 0
        try:
            for outcome in pool.map(verify_file, files, chunksize=max(1, min(16, len(files) // (4 * processes)))):
                done += 1
                yield outcome
        except BrokenProcessPool:
            for file in files[done:]:
                yield Outcome(str(file), file.stem, error="not run: a process that runs cases died")


def quiet() -> None:
    """Keep the scheduler's log out of the report: what goes wrong in a case is in its outcome."""
    logging.getLogger("vcscheduler").setLevel(logging.CRITICAL)


def summary(outcomes: Sequence[Outcome]) -> str:
    """``N passed, M failed``."""
    passed = sum(outcome.passed for outcome in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


def write_junit(outcomes: Sequence[Outcome], file: Path) -> None:
    """Write the outcomes as a JUnit XML report.

    Raises:
        OSError: the file cannot be written.
    """
    suite = ElementTree.Element(
        "testsuite",
        name="vcscheduler verify",
        tests=str(len(outcomes)),
        failures=str(sum(bool(outcome.differences) for outcome in outcomes)),
        errors=str(sum(bool(outcome.error) for outcome in outcomes)),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=Path(outcome.file).parent.name,
            name=outcome.id,
            file=outcome.file,
            time=f"{outcome.seconds:.3f}",
        )
        if not outcome.passed:
            tag = "error" if outcome.error else "failure"
            ElementTree.SubElement(case, tag, message=_xml_text(str(outcome))).text = _xml_text(
                "\n".join(outcome.details())
            )
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.ElementTree(suites).write(file, encoding="utf-8", xml_declaration=True)


def _xml_text(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(char for char in text if char in "\t\n\r" or char >= " ")
