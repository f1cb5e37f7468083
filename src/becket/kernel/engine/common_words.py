"""Common words of settings and logs: a value that is one of them is no secret."""

from __future__ import annotations

_WORDS = """
absolute abstract activate anything approved argument assembly automatic available baseline beginning benchmark
breaking building callback canceled cancelled category changelog checkout children chromium classpath cleaning
codebase collected combined commands compared compatible compiled compiler compiling complete completed component
computed concurrent condition configuration configure connected connection container contents continue coverage
critical database debugging decimals declared defaults deferred delivery dependencies dependency deprecated describe
destroyed detected developer development directory disabled discovery distribution doctests document documentation
download downloaded duration electron elements embedded emulator encoding endpoint enhanced entities environment
equality estimate evaluate examples exception excluded executable executed execution existing expected experimental
expression extended extension external failures fallback features filesystem filtered finished fixtures fragment
framework frontend function functional functions generated generator handlers headless identity implementation
included incremental indexing information installed installing instance instances integration interactive interface
internal internet interrupt iteration javascript language libraries lifecycle listener localhost location machines
maintain manifest matching material measured memcached messages metadata migrations minified modified monitoring
multiple national negative networks nonexistent normally notebook notfound notified notimplemented numerical
operation operations optimized optional original outdated override overview packages parallel parameter parameters
password passwords performance permanent personal platform playwright position positive postgres postgresql
powershell practice preflight preparing presence previous printing priority problems processed processes processing
produced production profiles progress projects protected protocol provider publicly published puppeteer question
rabbitmq readonly received recommended recorded recursive redirect reference register registry regression relative
releases remaining rendered repeated reported repository requests required requirements resolved resource resources
response restored resulting returned revision rollback scheduled scheduler security selected selenium separate
sequence sequential serialized serverless services sessions settings simulator skipping snapshot software solution
something specific specified stability standard starting statement statements statistics stopping strategy strictly
structure subclass subprocess succeeded successful supported symbolic synchronous template temporary terminal
terminated testbench testcase testdata testfile testsuite threading threshold timeouts together toolchain traceback
tracking transaction transform translate transport triggered truncated typescript undefined unexpected unittest
unittests universal unlimited unrelated unstable untracked upgraded upstream username utilities validate validation
variable variables verified versions volatile warnings webdriver whatever wildcard workflow workspace wrapping
"""
USUAL = frozenset(_WORDS.split())
