"""Runs one child to its end: holds it back until Becket says go, ends it in time, and leaves nothing of it alive."""

import _signal  # type: ignore[import-not-found]
import posix as os
import select
import time

from . import kernel, processes
from .job import STARTED, ChildReport, Job, receive
from .output import ChildOutput

_SIGKILL, _SIGTERM = 9, 15
# What Python and we change, and what a shell ignores for whoever it starts in the background.
_CHANGED_SIGNALS = (
    _signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGHUP,
)  # fmt: skip
_CHUNK = 65536
_CHUNKS_IN_A_PIPE = 64
SETTLE = 0.3
"""Seconds in which a helper of the child (a pool's tracker, say) may end by itself and is not called left running."""
KILL = 5.0
"""Seconds after which a process that outlives SIGKILL is given up and reported."""
_REAP_EVERY = 1.0


def main(control: int, log: int, stdout: int = -1) -> None:
    """The whole life of a keeper. `control` ends when Becket does; none of the descriptors is ever the child's."""
    for descriptor in (control, log, stdout):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    for polite in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(polite, _signal.SIG_IGN)  # the keeper goes last: Becket's end is what ends it
    kernel.forbid_tracing()
    kernel.adopt_orphans()
    job = receive(control)
    if job is not None:
        problem = _open_doors(job, control)
        report = ChildReport("not_started", None, 0, 0, False, problem) if problem else _run(job, control, log, stdout)
        _tell(control, report.encode())
    os._exit(0)  # nothing to flush; the interpreter's own end would cost a millisecond


def _open_doors(job: Job, control: int) -> str:
    """What went wrong, if anything. Becket has the doors before the child's program runs."""
    if not job.doors:
        return ""
    from .doors import hand_over  # only where it is used: sockets cost a millisecond

    return hand_over(control, job.doors)


def _run(job: Job, control: int, log: int, stdout: int) -> ChildReport:
    whole = ChildOutput(log, job.cap, job.tail)
    reader, writer = os.pipe()
    pipes: dict[int, tuple[ChildOutput, ...]] = {reader: (whole,)}
    out = writer
    if stdout >= 0:  # a pipe of its own, so that the copy holds nothing of standard error
        reader, out = os.pipe()
        pipes[reader] = (whole, ChildOutput(stdout, job.cap, job.tail))
    pid, problem = _start(job, control, out, writer)
    for end in {out, writer}:
        os.close(end)
    if problem:
        os.waitpid(pid, 0)
        return ChildReport("not_started", None, 0, 0, False, problem)
    return _Watch(job, pid, control, pipes, whole).to_the_end()


def _start(job: Job, control: int, out: int, err: int) -> tuple[int, str]:
    """Fork and exec; returns after the exec, with what went wrong, if anything."""
    reader, failure = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(job, keeper, control, out, err, failure)
    os.close(failure)
    problem = os.read(reader, 4096)
    os.close(reader)
    return pid, problem.decode("utf-8", "replace")


def _become(job: Job, keeper: int, control: int, out: int, err: int, failure: int) -> None:
    """In the fork: turn into the child's program, or tell why not. Never returns."""
    step = "contain it"
    try:
        os.setsid()
        kernel.die_with(keeper)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for changed in _CHANGED_SIGNALS:
            _signal.signal(changed, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        step = f"enter {job.tree}"
        os.chdir(job.tree)
        step = "confine it by landlock"
        if job.landlock is not None:
            from .landlock import restrict  # only where it is used: ctypes costs 4 ms

            restrict(job.landlock.rules, job.landlock.deny_tcp, job.landlock.version, job.landlock.ports)
        step = f"run {job.argv[0]}"
        _tell(control, STARTED)  # before the exec: the program's first act may be to kill its keeper
        _execute(job.argv, job.env)
    except BaseException as error:  # whatever it is, two keepers must never go on
        reason = error.strerror if isinstance(error, OSError) else str(error)
        os.write(failure, f"cannot {step}: {reason}".replace("\n", " ").encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """Run the program that PATH names. Raises what tells most: one that may not be run, before none at all."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, env)
    problem: OSError = FileNotFoundError(2, os.strerror(2))
    for folder in env.get("PATH", "").split(":"):
        try:
            os.execve(f"{folder}/{argv[0]}", argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


class _Watch:
    """From the exec to the moment when nothing of the child is alive."""

    def __init__(
        self, job: Job, pid: int, control: int, pipes: dict[int, tuple[ChildOutput, ...]], output: ChildOutput
    ) -> None:
        self._job = job
        self._pid = pid
        self._control = control
        self._pipes = pipes
        self._output = output
        self._outputs = {each for outputs in pipes.values() for each in outputs}
        self._status: int | None = None
        self._reaped = 0
        self._timed_out = False
        self._at_work = ""
        self._abandoned = False
        self._ended = os.pidfd_open(pid)
        self._poll = select.poll()
        for descriptor in (control, *pipes, self._ended):
            self._poll.register(descriptor, select.POLLIN)
        for pipe in pipes:
            os.set_blocking(pipe, False)

    def to_the_end(self) -> ChildReport:
        deadline = time.monotonic() + self._job.timeout
        if not self._wait_for_child(deadline):
            self._timed_out = not self._abandoned
            self._at_work = processes.at_work(os.getpid()) if self._timed_out else ""
            self._ask_to_end()
        left = self._kill_the_rest()
        for pipe in (*self._pipes,):
            for _ in range(_CHUNKS_IN_A_PIPE):
                if not self._copy(pipe):
                    break
        for output in self._outputs:
            output.close()
        return self._report(left)

    def _wait_for_child(self, deadline: float) -> bool:
        """True when the child's program ended by itself, False at the deadline or when Becket wants an end."""
        while self._status is None and not self._abandoned:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._step(min(remaining, _REAP_EVERY))
            self._reap()
        return self._status is not None and not self._abandoned

    def _ask_to_end(self) -> None:
        """TERM everything, and give it the grace; Becket's own end, or its word, allows no grace."""
        if self._abandoned:
            return
        for process in processes.descendants(os.getpid()):
            processes.send(process, _SIGTERM)
        self._let_end(self._job.grace)

    def _let_end(self, seconds: float) -> bool:
        """Wait for everything to end by itself; True if it did."""
        until = time.monotonic() + seconds
        pause = 0.001
        while self._reap():
            remaining = until - time.monotonic()
            if remaining <= 0 or self._abandoned:
                return False
            self._step(min(pause, remaining))
            pause = min(pause * 2, 0.02)
        return True

    def _kill_the_rest(self) -> int:
        """KILL what is left until no child is; returns how many outlived the child's own end.

        Only our own children are signalled: their pids cannot be reused before we reap them. What they leave behind
        becomes our child in turn, so the loop ends with nothing alive.
        """
        if self._status is not None and not self._timed_out:
            self._let_end(SETTLE)
        before = self._reaped
        until = time.monotonic() + KILL
        pause = 0.001
        while self._reap() and time.monotonic() < until:
            for process in processes.look_around():
                if process.parent == os.getpid():
                    _kill(process.pid)
            self._step(pause)
            pause = min(pause * 2, 0.05)
        return self._reaped - before

    def _step(self, seconds: float) -> None:
        """Serve the pipe and the control socket once."""
        for descriptor, _ in self._poll.poll(seconds * 1000):
            if descriptor in self._pipes:
                self._copy(descriptor)
            elif descriptor == self._control and not self._abandoned:
                self._abandoned = True  # Becket says nothing after the job: this is its word to end, or its own end
                self._poll.unregister(self._control)
            elif descriptor == self._ended:
                self._poll.unregister(self._ended)

    def _copy(self, pipe: int) -> bool:
        """Move one chunk from a pipe to its files; False if there is none."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(pipe)
            del self._pipes[pipe]
        for output in self._pipes.get(pipe, ()):
            output.take(data)
        return bool(data)

    def _reap(self) -> bool:
        """Collect what ended; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._status = os.waitstatus_to_exitcode(status)
            else:
                self._reaped += 1

    def _report(self, left: int) -> ChildReport:
        code = -_SIGKILL if self._status is None else self._status
        end = "timeout" if self._timed_out else "killed" if code < 0 or self._abandoned else "exited"
        message = self._output.problem or self._at_work
        if self._reap():
            message = f"some processes outlived SIGKILL for {KILL:g} s"
        return ChildReport(end, code, left, self._output.size, self._output.capped, message)


def _tell(control: int, message: bytes) -> bool:
    """False if Becket is gone; then the control socket has ended, and what is left of the child is killed anyway."""
    try:
        os.write(control, message)
    except OSError:
        return False
    return True


def _kill(pid: int) -> bool:
    """False for a program that runs with the rights of another user; the report says that it is left."""
    try:
        os.kill(pid, _SIGKILL)
    except PermissionError:
        return False
    return True
