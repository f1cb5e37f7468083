"""What is put into an agent's HOME, and what is taken back out. The agent may have left anything there before."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from becket.kernel.contract.config import Credential
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.removal import remove

log = logging.getLogger("becket.agents")

_LARGEST = 64_000
_FOLDER, _FILE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class LentCredential:
    """One credential: the user's file, and the agent's copy of it."""

    source: Path
    copy: Path
    home: Path
    write_back: bool
    lent: bytes | None  # what the user's file held; None if it is not there

    @property
    def there(self) -> bool:
        return self.lent is not None


def lend(credentials: Iterable[Credential], users: Path, home: Path) -> tuple[LentCredential, ...]:
    """Copy the user's files into the agent's HOME, readable for nobody else."""
    loans = []
    for credential in credentials:
        source = users / credential.file.removeprefix("~/")
        place = credential.as_ or _below(source, users)
        held = _read(source)
        copy = _place(home, place)
        if held is not None:
            remove(copy)
            _write(copy, held)
        loans.append(LentCredential(source, copy, home, credential.write_back, held))
    return tuple(loans)


def take_back(loans: Iterable[LentCredential]) -> None:
    """Remove the copies; what the agent renewed goes back to the user, if it is still what it was meant to be."""
    for loan in loans:
        if not loan.there or not _is_real(loan.copy, loan.home):
            continue
        try:
            if loan.write_back and (new := _read(loan.copy, follow=False)) is not None and _fits(loan, new):
                _write(loan.source.resolve(), new)
            loan.copy.unlink(missing_ok=True)
        except OSError as error:  # no reason to lose what the agent has done
            log.warning("%s could not be taken back from the agent: %s", loan.source, error)


def put_skills(skills: Mapping[str, Path], home: Path, place: str) -> None:
    """Fresh copies of the chosen skills and of no others, whatever an earlier call did to them."""
    if not place:
        return
    folder = _place(home, place)
    remove(folder)
    for name, source in skills.items():
        _make(folder)
        shutil.copytree(source, folder / name, symlinks=True)


def _fits(loan: LentCredential, new: bytes) -> bool:
    """Not if the user's own file changed meanwhile: then a newer login is there already."""
    if new == loan.lent or not new or _read(loan.source) != loan.lent:
        return False
    return _is_json(new) or not _is_json(loan.lent or b"")


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _below(source: Path, users: Path) -> str:
    if not source.is_relative_to(users):
        raise UsageError(f"the credential {source} is not below your home; say where the agent looks for it with `as`")
    return str(source.relative_to(users))


def _place(home: Path, below: str) -> Path:
    """A place below HOME whose folders are real ones. A link that an earlier call left in the way is removed."""
    parts = PurePosixPath(below).parts
    if not parts or ".." in parts or PurePosixPath(below).is_absolute():
        raise UsageError(f"{below!r} is no place below the agent's HOME")
    path = home
    for name in parts[:-1]:
        path /= name
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()
        _make(path)
    return path / parts[-1]


def _is_real(path: Path, home: Path) -> bool:
    """A regular file that no link on the way below HOME leads to."""
    try:
        ways = [path, *(parent for parent in path.parents if parent.is_relative_to(home) and parent != home)]
        return stat.S_ISREG(path.lstat().st_mode) and not any(way.is_symlink() for way in ways)
    except OSError:
        return False


def _read(path: Path, *, follow: bool = True) -> bytes | None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        file = os.open(path, flags)
    except OSError:
        return None
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        data = stream.read(_LARGEST + 1)
    return data if len(data) <= _LARGEST else None


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all; never through a link, nor into what somebody left under the draft's name."""
    draft = path.with_name(f".{path.name}.becket")
    remove(draft)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _FILE), "wb") as stream:
        stream.write(data)
    draft.replace(path)


def _make(folder: Path) -> None:
    folder.mkdir(mode=_FOLDER, exist_ok=True)
    folder.chmod(_FOLDER)  # an earlier call may have closed it
