package room

import (
	"fmt"
	"log/slog"

	"github.com/pion/logging"
)

// logs makes loggers for the WebRTC library. What it finds wrong is nearly always
// something that a client or the network did, so it is all at debug.
type logs struct{ logger *slog.Logger }

func newLogs(logger *slog.Logger) *logs { return &logs{logger} }

// NewLogger is for the library.
func (l *logs) NewLogger(scope string) logging.LeveledLogger {
	return libraryLog{l.logger.With("scope", scope)}
}

type libraryLog struct{ logger *slog.Logger }

func (libraryLog) Trace(string)          {}
func (libraryLog) Tracef(string, ...any) {}
func (libraryLog) Debug(string)          {}
func (libraryLog) Debugf(string, ...any) {}
func (libraryLog) Info(string)           {}
func (libraryLog) Infof(string, ...any)  {}

// The library tells its levels apart by methods.

func (l libraryLog) Warn(text string)                   { l.logger.Debug("webrtc: " + text) }
func (l libraryLog) Warnf(format string, about ...any)  { l.Warn(fmt.Sprintf(format, about...)) }
func (l libraryLog) Error(text string)                  { l.logger.Debug("webrtc: " + text) }
func (l libraryLog) Errorf(format string, about ...any) { l.Error(fmt.Sprintf(format, about...)) }
