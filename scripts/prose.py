"""Checks comments and Markdown for phrases that make English hard to read.

python3 scripts/prose.py [PATH…]    prints every hit in the paths, or without paths only hits in files above the limit

A file may have at most LIMIT hits per 1,000 words. A hit is a phrase to reread, and not always a fault.
"""

import re
import subprocess
import sys

LIMIT = 4
PHRASES = {
    "name the thing": r"\b[Ww]hat (?:is|was|are|were|has|have|had|it|they|a|an|the|else|comes|came|remains)\b"
    r"|\b(?:of|by|to|from|for|with|than) what\b|\b(?:[Ww]hoever|whom)\b|\b(?:that|those) of\b|\bthose that\b",
    "say not next to the verb": r"\b(?:is|are|was|were|be) none\b|\bis no (?!longer|more|such|way|need|point)[a-z]+\b|\bhas none\b",
    "report, return, send or log": r"\b(?:is|are|was|be|been|being) told\b|\btells? (?:what|how|when|that|whether|which|nothing)\b",
    "say if": r"\b(?:[Ww]here|in which) (?:nobody|none|one|it|they|there|that|no)\b",
    "name the actor": r"\b(?:[Nn]obody|[Ss]omebody|[Nn]o one)\b",
    "use the ordinary word": r"\b(?:anew|hence|likewise|whence|thereof|begun|amid)\b|\bbeside (?!s)|\b[a-z]+ alone\b"
    r"|\b(?:has|have|is|no|enough|much|more|for|free|left|make|makes) room\b",
    "drop it": r"\b(?:by (?:itself|themselves)|(?:of|on) (?:its|their|your|our) own)\b",
    "say must or will": r"\b(?:is|are|was|were) to (?:be|have|do|go|come|see|end|start|get|take|give|keep|hold|stay|make|run)\b",
    "subject first": r"(?:^|[.;:] )(?:Of|Beyond|Whoever|Who|Whose|What) (?:a|an|the|what|these|those|which|is|was|has|it|one)\b",
}
SKIPPED = re.compile(r"(^|/)testdata/|static/(marked|mediabunny)|SECURITY.md|package-lock\.json$|^scripts/prose\.py$")
COMMENTS = {"go": "//", "js": "//", "ts": "//", "mjs": "//", "py": "#", "sh": "#", "yaml": "#", "yml": "#"}


def sentences(path, kind):
    """Yields the number and the text of each line that is English."""
    mark, code, doc = COMMENTS.get(kind), False, False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if mark is None:
                code ^= line.lstrip().startswith("```")
                if not code:
                    yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "x", line)
                continue
            doc ^= kind == "py" and line.count('"""') == 1
            if comment := re.search(rf"(?:^|\s){mark} ?(?!go:|nolint|!)(.*)", line):
                yield number, comment[1]
            elif doc or (kind == "py" and '"""' in line):
                yield number, line


def main(paths):
    failed = 0
    for path in subprocess.check_output(["git", "ls-files", "--", *paths], text=True).splitlines():
        kind = path.rsplit(".", 1)[-1]
        if SKIPPED.search(path) or (kind != "md" and kind not in COMMENTS):
            continue
        words, hits = 0, []
        for number, text in sentences(path, kind):
            words += len(text.split())
            hits += [f"{path}:{number}: {name}: {text.strip()}" for name, phrase in PHRASES.items() if re.search(phrase, text)]
        above = len(hits) > 1 and len(hits) * 1000 > LIMIT * words
        failed += above
        if paths or above:
            print(*hits, sep="\n")
    if failed:
        sys.exit(f"{failed} files have more than {LIMIT} hard phrases per 1,000 words: see CONTRIBUTING.md")


main(sys.argv[1:])
