"""Writes the table of third-party licenses from the output of go-licenses and pip:
licenses.py GO.tsv PIP.json."""

import json
import sys

# Maps license texts that some packages give to names.
TEXTS = {
    "The 3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# Code that was copied from modules which are no longer required. The license is next to the copy.
COPIED = [
    ("maragu.dev/goqite (the schema of its table)", "v0.4.0", "MIT"),
    ("marked (reads the Markdown of chats in the console)", "18.2.1", "MIT"),
    ("mediabunny (cuts videos in the console before they are uploaded)", "1.61.0", "MPL-2.0"),
    ("mediapipe (weights of its two selfie segmentations, SHA-256 in scripts/person-weights.py)", "0.10.14", "Apache-2.0"),
    ("scikit-image (two of its photographs, by Rachel Michetti and Stefan van der Walt, are the console's samples)", "0.26.0", "CC0-1.0"),
    ("tiktoken (the vocabulary cl100k_base of the tokenizer)", "0.14.0", "MIT"),
]

# Programs and libraries of Debian 12 in the images, and a library that programs load at run time.
LOADED = [
    ("dav1d (decodes AV1)", "1.0.0", "BSD-2-Clause"),
    ("FFmpeg, built with x264 and zimg", "5.1", "GPL-2.0-or-later"),
    ("libaom (of heif-convert)", "3.6.0", "BSD-2-Clause"),
    ("libde265 (of heif-convert)", "1.0.11", "LGPL-3.0-or-later"),
    ("libheif, and heif-convert of libheif-examples (MIT), which reads HEIC and AVIF", "1.15.1", "LGPL-3.0-or-later"),
    ("libvpx (reads VP8 and VP9)", "1.12.0", "BSD-3-Clause"),
    ("x265 (of heif-convert)", "3.5", "GPL-2.0-or-later"),
    ("libc2pa_c, of the package c2pa-python (writes and verifies Content Credentials)", "0.38.1", "Apache-2.0 (chosen; MIT is the other)"),
]


def licence(metadata: dict) -> str:
    """Returns a Python package's license, from the first of three metadata fields that has one."""
    if expression := metadata.get("license_expression"):
        return expression
    named = [c.rsplit(" :: ", 1)[1] for c in metadata.get("classifier", []) if c.startswith("License :: ")]
    if named := [TEXTS.get(name, name) for name in named if name != "OSI Approved"]:
        return ", ".join(dict.fromkeys(named))
    text = " ".join((metadata.get("license") or "").split())
    return TEXTS.get(text, text) if 0 < len(text) <= 60 else "see the package"


def lines(part: str, rows: list[tuple[str, str, str]]) -> list[str]:
    return [f"{part}\t{name}\t{version}\t{text}" for name, version, text in sorted(rows, key=lambda r: r[0].lower())]


def main(go: str, pip: str) -> None:
    with open(go, encoding="utf-8") as report:
        rows = [line.rstrip("\n").split("\t") for line in report if line.strip()]
    modules = sorted({(name, version, text) for name, version, text in rows})
    with open(pip, encoding="utf-8") as report:
        packages = [one["metadata"] for one in json.load(report)["install"]]
    python = [(p["name"], p["version"], licence(p)) for p in packages]
    print("part\tname\tversion\tlicence")
    print(*lines("Go module", modules), *lines("copied", COPIED), *lines("loaded", LOADED), sep="\n")
    print(*lines("Python package", python), sep="\n")


main(*sys.argv[1:])
