"""Configures the log: one line of JSON for each event, without prompts or paths."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_USUAL = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message"}


class JSONFormatter(logging.Formatter):
    """Formats a record as JSON, with all fields that were passed as extra."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "msg": record.getMessage(),
        }
        line |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure_logging() -> None:
    """Sends all logs to stdout."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
