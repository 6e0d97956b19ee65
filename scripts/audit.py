#!/usr/bin/env python3
"""Checks the pinned dependencies for vulnerabilities that the registries know.

Python requirement files are checked by pip-audit, npm lock files by npm audit. (A test,
scripts/dependencies_test.go, keeps the Go modules that read untrusted bytes at their
newest release.)

It fails, with different words, if a dependency is vulnerable, if a tool is missing, and if a
registry could not be reached in three tries. A registry without such data, like many mirrors, is
reported, and fails with AUDIT=strict.

audit.py PIP_AUDIT FOLDER checks everything below the folder"""

import json
import os
import re
import subprocess
import sys
import time

# Files that pin dependencies, relative to the folder.
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
    "infra",
    "clients/typescript",
    "cmd/cutroom/testdata/openai",
    "cmd/cutroom/testdata/clients",
    "cmd/cutroom/consoletest/testdata",
]

# Vulnerabilities that do not affect this project, by id, with the reason.
ACCEPTED: dict[str, str] = {}

TRIES = 3
# Time limit of one attempt, and the wait before the next, in seconds.
TRY_TIME = 120
PAUSE = 5.0


class Vulnerable(Exception):
    """Dependencies are vulnerable; the text names them."""


class Unreachable(Exception):
    """The registry could not be reached."""


class NotServed(Exception):
    """The registry responds, but has no vulnerability data."""


def output(command: list[str], folder: str) -> tuple[dict, str]:
    """Runs a program. Returns its JSON output, or {}, and the last line that it wrote to
    stderr."""
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
    """Checks a requirement file. PyPI's response for a version includes its vulnerabilities."""
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
    """Checks a lock file of npm."""
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
    # The registry rejects the request itself; this is not a temporary failure.
    if found.get("statusCode") in (403, 404, 405, 501) or re.search(r"\b(404|405|501)\b", message):
        raise NotServed("the npm registry")
    raise Unreachable(message)


def patiently(check, *arguments) -> None:
    """Runs a check, and retries if the registry cannot be reached."""
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
