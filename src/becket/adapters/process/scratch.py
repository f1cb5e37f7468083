"""The private home and temporary folder of one child."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


class Scratch:
    """Two empty folders, made for one child and removed after it."""

    def __init__(self, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="becket-child-", dir=parent)).resolve()
        self.home = self.folder / "home"
        self.temporary = self.folder / "tmp"
        self.home.mkdir(mode=0o700)
        self.temporary.mkdir(mode=0o700)

    def remove_if_empty(self) -> bool:
        """The cheap way; False if the child left files."""
        try:
            for folder in (self.home, self.temporary, self.folder):
                folder.rmdir()
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it with all the child left there, folders without write permission included."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            self._open_folders()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _open_folders(self) -> None:
        for parent, folders, _ in os.walk(self.folder):
            for folder in (Path(parent, name) for name in folders):
                if not folder.is_symlink():  # its target is not ours to change
                    folder.chmod(0o700)
