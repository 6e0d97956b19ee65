#!/usr/bin/env python3
"""Checks the pinned dependencies for vulnerabilities that their registries know of.

pip-audit checks Python requirement files, and npm audit checks npm lock files. (For Go, the test
scripts/dependencies_test.go checks that modules which read untrusted bytes are up to date.)

The check fails if a dependency is vulnerable, if a tool is missing, or if a registry could not be reached in three
tries; the message says which. If a registry has no vulnerability data, as many mirrors do not, that is only reported,
unless AUDIT=strict is set.

Usage: audit.py PIP_AUDIT FOLDER checks all files below the folder.
"""

import json
import os
import re
import subprocess
import sys
import time

# The files that pin dependencies, relative to the folder.
REQUIREMENTS = [
    "scripts/requirements.txt",
    "scripts/requirements-template.txt",
    "scripts/requirements-clients.txt",
    "scripts/requirements-docker.txt",
    "scripts/requirements-c2pa.txt",
    "scripts/requirements-c2pa-test.txt",
    "scripts/requirements-audit.txt",
    "scripts/llm-requirements.txt",
    "scripts/tools/lint/requirements.txt",
    "gpu/requirements.txt",
    "gpu/requirements-test.txt",
]
LOCKS = [
    ".",
    "clients/typescript",
    "cmd/cutroom/testdata/openai",
    "cmd/cutroom/testdata/clients",
    "cmd/cutroom/consoletest/testdata",
]

# Vulnerabilities that do not affect this project: the id of each, and the reason.
ACCEPTED: dict[str, str] = {}

TRIES = 3
# How long one attempt may take, and how long to wait before the next, in seconds.
TRY_TIME = 120
PAUSE = 5.0


class Vulnerable(Exception):
    """A dependency is vulnerable. The message names it."""


class Unreachable(Exception):
    """The registry could not be reached."""


class NotServed(Exception):
    """The registry responds, but it has no data on vulnerabilities."""


def output(command: list[str], folder: str) -> tuple[dict, str]:
    """Runs a program. Returns the JSON that it prints, or {}, and the last line of its stderr."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TRY_TIME, check=False)
    except FileNotFoundError:
        sys.exit(f"missing tool: {command[0]}")
    except subprocess.TimeoutExpired:
        return {}, f"no response within {TRY_TIME} s"
    said = done.stderr.strip().splitlines() or ["nothing"]
    try:
        return json.loads(done.stdout), said[-1]
    except ValueError:
        return {}, said[-1]


def audit_python(pip_audit: str, folder: str, path: str) -> None:
    """Checks a requirements file. PyPI lists the known vulnerabilities of each version."""
    found, said = output(
        [pip_audit, "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json", "--requirement", path], folder
    )
    if "dependencies" not in found:
        raise Unreachable(said)
    dependencies = found["dependencies"]
    unknown = [d["name"] for d in dependencies if "skip_reason" in d]
    bad = [
        f"{d['name']} {d['version']}: {v['id']}, fixed in {', '.join(v['fix_versions']) or 'no version yet'}"
        for d in dependencies
        for v in d.get("vulns", [])
        if not {v["id"], *v.get("aliases", [])} & ACCEPTED.keys()
    ]
    if bad:
        raise Vulnerable("\n  ".join(bad))
    if len(unknown) == len(dependencies):
        raise NotServed("PyPI")
    if unknown:
        raise Unreachable("PyPI has no data for " + ", ".join(unknown))


def audit_npm(folder: str) -> None:
    """Checks an npm lock file."""
    found, said = output(["npm", "audit", "--json"], folder)
    if "vulnerabilities" in found:
        bad = [
            f"{name}: {cause.get('title', '?')} {cause.get('url', '')}"
            for name, package in found["vulnerabilities"].items()
            for cause in package["via"]
            if isinstance(cause, dict) and not any(known in cause.get("url", "") for known in ACCEPTED)
        ]
        if bad:
            raise Vulnerable("\n  ".join(bad))
        return
    message = str(found.get("message") or said)
    # The registry rejects such requests altogether, so trying again would not help.
    if found.get("statusCode") in (403, 404, 405, 501) or re.search(r"\b(404|405|501)\b", message):
        raise NotServed("the npm registry")
    raise Unreachable(message)


def patiently(check, *arguments) -> None:
    """Runs a check, and tries again if the registry cannot be reached."""
    for left in reversed(range(TRIES)):
        try:
            return check(*arguments)
        except Unreachable:
            if left == 0:
                raise
            time.sleep(PAUSE)


def main() -> int:
    pip_audit, folder = sys.argv[1:]
    failed = False
    checks = [(path, audit_python, (pip_audit, folder, path)) for path in REQUIREMENTS]
    checks += [(path, audit_npm, (os.path.join(folder, path),)) for path in LOCKS]
    for path, check, arguments in checks:
        try:
            patiently(check, *arguments)
            print(f"{path}: no known vulnerability")
        except Vulnerable as found:
            failed = True
            print(f"{path}: VULNERABLE\n  {found}", file=sys.stderr)
        except Unreachable as why:
            failed = True
            print(f"{path}: not checked: the registry could not be queried (no vulnerability is known): {why}", file=sys.stderr)
        except NotServed as who:
            failed = failed or os.environ.get("AUDIT") == "strict"
            print(f"{path}: not checked, as {who} serves no vulnerabilities here (a mirror?)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
