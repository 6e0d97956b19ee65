"""Prepares the service's OpenAPI document for client generators.

prepare.py DOCUMENT reads a file or a URL and prints the document without HTML pages, deprecated routes and model
aliases. Clients do not need them: an alias accepts the same fields as its model.
"""

import json
import sys
import urllib.request

METHODS = {"get", "put", "post", "delete"}
PAGES = {"Service"}


def is_called(operation: dict) -> bool:
    page = "text/html; charset=utf-8" in operation["responses"].get("200", {}).get("content", {})
    other = "x-alias-of" in operation or operation.get("deprecated", False)
    return not (page or other or PAGES & set(operation.get("tags", [])))


def main(source: str) -> None:
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source, timeout=60) as answer:
            document = json.load(answer)
    else:
        with open(source, encoding="utf-8") as file:
            document = json.load(file)
    paths = {}
    for path, item in document["paths"].items():
        kept = {name: value for name, value in item.items() if name not in METHODS or is_called(value)}
        if METHODS & kept.keys():
            paths[path] = kept
    json.dump(document | {"paths": paths}, sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
