"""The demo's agent: reads the brief, mends what it knows how to mend, and talks. Becket believes none of its words."""

import re
import sys
from pathlib import Path

brief = sys.stdin.read()
failing = sorted(set(re.findall(r"test_\w+fahrenheit", brief)))
print(f"I read a brief of {len(brief.splitlines())} lines; these fail: {', '.join(failing)}.")
source = Path("temperature.py")
text = source.read_text()
mended = re.sub(r"return round\(.*, 1\)(?=\n*\Z)", "return round(celsius * 9 / 5 + 32, 1)", text)
source.write_text(mended)
print("I have put the conversion right. All tests pass, trust me.")
