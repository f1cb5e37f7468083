"""What this room says to people."""

from __future__ import annotations

_IN_PLACE = "steps see their tree where it is, below .git or .worktrees: jest finds no tests below .git; use bwrap"

NONE_NOTES = (
    "a child can do whatever your user can: read your files, reach the network, signal your programs",
    "what it starts is killed at its end, unless it hides from that on purpose",
    _IN_PLACE,
)

LANDLOCK_NOTES = (
    "chmod, chown, times and names of files outside stay reachable: landlock has no rule for them",
    "unix sockets in the file system (Docker's, for example) stay reachable",
    "the shared /tmp, /dev/shm and terminals are closed: a program that insists on them fails",
    "host processes stay visible: their names and arguments, not their environment or memory",
    _IN_PLACE,
)
LANDLOCK_SIGNALS_HELD = "signals to host processes, and their abstract sockets, are denied"
LANDLOCK_SIGNALS_OPEN = "signals to host processes are allowed: this kernel's landlock (ABI {abi}) is older than 6"
LANDLOCK_NETWORK_HELD = "network: none denies TCP and UDP, and 32-bit programs; loopback cannot be told from full"
LANDLOCK_TCP_HELD = "network: none denies TCP; UDP and multipath TCP stay open; loopback cannot be told from full"
LANDLOCK_REACH = "a host to reach on loopback opens its port on every host: landlock knows ports, not addresses"
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
BWRAP_SILENT = (
    "whether bubblewrap works here is not known: {times} tries gave no answer ({why}). Nothing is run in a weaker "
    "sandbox for that; look at what keeps this machine busy, and at `bwrap` itself"
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
NO_DOOR = "the ways out of the child's network could not be opened: {reason}"
KEEPER_LOST = "the keeper of this child was killed from outside; what the child started was searched for and killed"

HOME_IS_LINK = "{home} is a symbolic link, so it cannot be a child's home. Name the real folder."
HOME_HOLDS_HIDDEN = "{hidden} lies in the child's home {home} and cannot be hidden there. Move one of them."

REACH_NEEDS_NONE = (
    "A child with `network: {network}` cannot be given a list of hosts to reach. "
    "Use `network: none` with the list, or drop the list."
)
REACH_TOO_MANY = "A child may be given at most {most} hosts to reach."
REACH_UNCLEAR = (
    "`{entry}` does not name one place to reach. Write host:port: a full name without wildcards and without a dot at "
    "the end (xn-- for other alphabets), an IPv4 address of four numbers, or an IPv6 address in brackets."
)
PROXY_DENIED = "Becket: {wanted} is not on the list of hosts that may be reached from here."
PROXY_NOT_PUBLIC = (
    "Becket: {wanted} is on the list, but its name leads into this machine or its private network. "
    "List its address too, with the same port, if that is meant."
)
PROXY_NO_ANSWER = "Becket: {wanted} could not be reached: {reason}."
PROXY_OF_ANOTHER = "Becket: this proxy serves one child only. Use HTTPS_PROXY as it is, user and password included."
PROXY_UNCLEAR = "Becket: this is an HTTP proxy. It takes CONNECT host:port, and requests with a whole http:// address."
