package main

import (
	"log/slog"
	"time"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/trace"
)

// newLogger logs to the session's stderr: all that there is to programs, which read
// it back, and what a person looks for to a person, who reads along.
func newLogger(out *command.Session, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if out.ShowsErr() {
		options.ReplaceAttr = brief
	}
	return slog.New(trace.Logger(slog.NewTextHandler(out.Err, options)))
}

// brief leaves out what is as it mostly is, and digits that nobody reads.
func brief(groups []string, attribute slog.Attr) slog.Attr {
	value := attribute.Value.Resolve()
	switch value.Kind() {
	case slog.KindTime:
		if len(groups) == 0 && attribute.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, value.Time().Local().Format(time.TimeOnly))
		}
	case slog.KindDuration:
		return slog.Duration(attribute.Key, legible(value.Duration()))
	case slog.KindString:
		if value.String() == "" {
			return slog.Attr{}
		}
	case slog.KindBool:
		if !value.Bool() {
			return slog.Attr{}
		}
	case slog.KindAny:
		switch held := value.Any().(type) {
		case slog.Level:
			if held == slog.LevelInfo {
				return slog.Attr{}
			}
		case map[string]time.Duration:
			rounded := make(map[string]time.Duration, len(held))
			for name, took := range held {
				rounded[name] = legible(took)
			}
			return slog.Any(attribute.Key, rounded)
		}
	}
	return attribute
}

// legible rounds a duration to tenths of a millisecond.
func legible(took time.Duration) time.Duration { return took.Round(100 * time.Microsecond) }
