package main

import (
	"log/slog"
	"time"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/platform/trace"
)

// newLogger returns a logger that writes to stderr. It writes fewer attributes if stderr is a terminal.
func newLogger(out *command.Invocation, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if out.ShowsErr() {
		options.ReplaceAttr = brief
	}
	return slog.New(trace.Logger(slog.NewTextHandler(out.Err, options)))
}

// brief omits attributes with default values and rounds off insignificant digits.
func brief(groups []string, attribute slog.Attr) slog.Attr {
	value := attribute.Value.Resolve()
	switch value.Kind() {
	case slog.KindTime:
		if len(groups) == 0 && attribute.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, value.Time().Local().Format(time.TimeOnly))
		}
	case slog.KindDuration:
		return slog.Duration(attribute.Key, value.Duration().Round(100*time.Microsecond))
	case slog.KindString:
		if value.String() == "" {
			return slog.Attr{}
		}
	case slog.KindBool:
		if !value.Bool() {
			return slog.Attr{}
		}
	case slog.KindAny:
		if level, ok := value.Any().(slog.Level); ok && level == slog.LevelInfo {
			return slog.Attr{}
		}
	}
	return attribute
}
