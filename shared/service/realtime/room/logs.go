package room

import (
	"fmt"
	"log/slog"

	"github.com/pion/logging"
)

// logs logs the WebRTC library's messages at debug level, because nearly all of them are caused by clients.
type logs struct{ logger *slog.Logger }

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

// The library has a method for each level.

func (l libraryLog) Warn(text string)                   { l.logger.Debug("webrtc: " + text) }
func (l libraryLog) Warnf(format string, about ...any)  { l.Warn(fmt.Sprintf(format, about...)) }
func (l libraryLog) Error(text string)                  { l.logger.Debug("webrtc: " + text) }
func (l libraryLog) Errorf(format string, about ...any) { l.Error(fmt.Sprintf(format, about...)) }
