"""What this room says to people."""

from __future__ import annotations

NONE_NOTES = (
    "a child can do whatever your user can: read your files, reach the network, signal your programs",
    "what it starts is killed at its end, unless it hides from that on purpose",
)

LANDLOCK_NOTES = (
    "chmod, chown, times and names of files outside stay reachable: landlock has no rule for them",
    "unix sockets in the file system (Docker's, for example) stay reachable",
    "the shared /tmp, /dev/shm and terminals are closed: a program that insists on them fails",
    "host processes stay visible: their names and arguments, not their environment or memory",
)
LANDLOCK_SIGNALS_HELD = "signals to host processes, and their abstract sockets, are denied"
LANDLOCK_SIGNALS_OPEN = "signals to host processes are allowed: this kernel's landlock (ABI {abi}) is older than 6"
LANDLOCK_TCP_HELD = "network: none denies TCP; UDP stays open; loopback cannot be told from full"
LANDLOCK_TCP_OPEN = "no network rule at all: this kernel's landlock (ABI {abi}) is older than 4"
LANDLOCK_TRUNCATE_OPEN = "files outside can be emptied: this kernel's landlock (ABI {abi}) is older than 3"

BWRAP_NOTES = (
    "network: none and loopback are a network of the child's own, with nothing but its own loopback",
    "network: full is the host's network, its loopback and abstract sockets included",
)
AS_ROOT = "as root, a child has no capabilities: it cannot write a tree that belongs to another user"

BWRAP_MISSING = (
    "the program `bwrap` is not on PATH. Install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap` or "
    "`pacman -S bubblewrap`"
)
BWRAP_BROKEN = (
    "bubblewrap is installed, but cannot make a sandbox here: {said}. Allow user namespaces "
    "(`sysctl kernel.unprivileged_userns_clone=1`, on Ubuntu `kernel.apparmor_restrict_unprivileged_userns=0`; in a "
    "container: run it with user namespaces allowed)"
)
LANDLOCK_ABSENT = "the kernel has no landlock. It needs Linux 5.13 or newer (6.2 or newer to hold files fully)"
LANDLOCK_DISABLED = "landlock is built into the kernel, but off. Add `landlock` to the `lsm=` boot parameter"

UNAVAILABLE = (
    "The sandbox `{kind}` cannot be used: {reason}. "
    "Or set `sandbox: auto` in becket.yaml to take the best one that works."
)
LANDLOCK_CANNOT_HIDE = (
    "landlock cannot hide {hidden} inside {shown}, which the child may write. "
    "Move one of them, or use the bwrap sandbox."
)

NO_TREE = "the working directory {tree} does not exist, or may not be entered"
NO_OUTPUT = "the output file {output} cannot be made: {reason}"
NO_SCRATCH = "no private folder could be made for the child: {reason}. Free some disk space"
NO_SPAWN = "no process could be made: {reason}"
NO_SANDBOX = "the sandbox did not start: {said}"
KEEPER_LOST = "the keeper of this child was killed from outside; what the child started was searched for and killed"
