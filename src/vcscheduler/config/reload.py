"""The configuration file of a running scheduler: what is active, and when to read it again (spec 02 §2.5).

A file that cannot be read or is wrong never replaces a configuration that works, unless the process was told
to do without a default; then it is fatal, as upstream. There is no thread: the scheduler asks between two
cycles whether anything in the file's directory has changed, which also sees a ConfigMap's links being swapped.
"""

import logging
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from vcscheduler.config.defaults import default_configuration
from vcscheduler.config.findings import ConfigurationError, Finding
from vcscheduler.config.model import SchedulerConfiguration
from vcscheduler.config.parse import parse_configuration

_LOG = logging.getLogger(__name__)

_Entry = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What one reading of the file came to.

    `configuration` is what is active afterwards. `error` says why the file was not taken; then the
    configuration is the one from before.
    """

    configuration: SchedulerConfiguration
    warnings: tuple[Finding, ...] = ()
    error: ConfigurationError | None = None


class ConfigurationFile:
    """The scheduler configuration at `path`, or the built-in one when there is no path.

    With `require_valid` (`--disable-default-scheduler-config`) there is nothing to fall back on: a file that
    cannot be used raises `ConfigurationError`, at any time.
    """

    def __init__(
        self,
        path: Path | str | None,
        *,
        known_actions: Collection[str],
        known_plugins: Collection[str] | None = None,
        require_valid: bool = False,
    ) -> None:
        self._path = Path(path) if path else None
        self._known_actions = known_actions
        self._known_plugins = known_plugins
        self._require_valid = require_valid
        self._active = None if require_valid else default_configuration()
        self._seen: dict[str, _Entry] = {}
        if self._path is None and require_valid:
            raise ConfigurationError(
                Finding("error", "--scheduler-conf", 0, 0, "", "a file is needed: the default is switched off")
            )
        if self._path is not None and not self._path.parent.is_dir():
            message = f"the directory {self._path.parent} does not exist"
            raise ConfigurationError(Finding("error", str(self._path), 0, 0, "", message))

    @property
    def active(self) -> SchedulerConfiguration:
        """The configuration to use for the next cycle. Before the first `load` it is the built-in one."""
        if self._active is None:
            raise RuntimeError("no configuration is active: load() comes first")
        return self._active

    def load(self) -> LoadResult:
        """Read the file now."""
        if self._path is None:
            return LoadResult(self.active)
        self._seen = self._directory()
        try:
            parsed = parse_configuration(
                self._read(self._path),
                str(self._path),
                known_actions=self._known_actions,
                known_plugins=self._known_plugins,
            )
        except ConfigurationError as error:
            if self._require_valid:
                raise
            _LOG.error("the scheduler configuration stays as it was: %s", error)
            return LoadResult(self.active, error=error)
        for warning in parsed.warnings:
            _LOG.warning("%s", warning)
        self._active = parsed.configuration
        return LoadResult(parsed.configuration, parsed.warnings)

    def reload_if_changed(self) -> LoadResult | None:
        """Read the file again if an entry of its directory appeared or was written; None if nothing was."""
        if self._path is None:
            return None
        now = self._directory()
        changed = any(self._seen.get(name) != entry for name, entry in now.items())
        if not changed:
            self._seen = now  # entries that went away: coming back counts as appearing
            return None
        return self.load()

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigurationError(
                Finding("error", str(path), 0, 0, "", f"the file cannot be read: {reason}")
            ) from None

    def _directory(self) -> dict[str, _Entry]:
        """State of every entry beside the file, and of what the file's own name leads to.

        Links are not followed (a swapped link is a new inode), except the file's own: unlike upstream, a file
        elsewhere that it leads to is watched too.
        """
        assert self._path is not None
        entries: dict[str, _Entry] = {}
        try:
            for child in self._path.parent.iterdir():
                state = _state(child, follow=False)
                if state is not None:
                    entries[child.name] = state
        except OSError:
            return entries
        target = _state(self._path, follow=True)
        if target is not None:
            entries["/target"] = target
        return entries


def _state(path: Path, *, follow: bool) -> _Entry | None:
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
