"""What the heal loop says to people."""

_ONLY_SKIPS = "{file} did not load on the parent, and on the child it only skips: "

ONLY_SKIPS = _ONLY_SKIPS + "whether its tests ran on the last proven commit is not known here, so nothing proves it"
SKIPS_WHAT_RAN = _ONLY_SKIPS + "on the last proven commit {test} ran"
SKIPS_OTHERS = _ONLY_SKIPS + "the file, or which of its tests skip, is not as on the last proven commit"
