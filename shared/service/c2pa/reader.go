package c2pa

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cutroom/shared/domain/origin"
	"cutroom/shared/platform/c2pa"
)

// Reader verifies files for the service's clients. It is safe for concurrent use.
type Reader struct {
	Library *c2pa.Library
	// Own contains the PEM certificates of identities that this service created. Files signed with
	// them are recognized as this service's, although no authority vouches for the name.
	Own string
	// Trusted contains the PEM certificates of trusted authorities.
	Trusted string
	// Time is the time limit per file, in addition to an allowance for its size.
	Time   time.Duration
	Logger *slog.Logger
}

// Verify reports the state None for a file without credentials. It reports Unreadable for a
// damaged or hostile file, an unsupported format, or a link to credentials on a server.
func (r Reader) Verify(ctx context.Context, file *os.File) (origin.Report, error) {
	info, err := file.Stat()
	if err != nil {
		return origin.Report{}, fmt.Errorf("stat the file: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, r.Time+time.Duration(info.Size()/slowest)*time.Second)
	defer cancel()
	report, err := r.inspect(within, file)
	var refusal *c2pa.Refusal
	switch {
	case ctx.Err() != nil:
		return origin.Report{}, ctx.Err()
	case errors.Is(err, c2pa.ErrNone):
		return without(origin.None), nil
	case errors.Is(err, c2pa.ErrElsewhere):
		return without(origin.Unreadable, "The Content Credentials are on a remote server, which is not contacted."), nil
	case errors.Is(err, errNoMedia):
		return without(origin.Unreadable, "The file is neither an image nor a video."), nil
	case errors.As(err, &refusal):
		return without(origin.Unreadable, "The file is damaged, or C2PA does not support its format."), nil
	case errors.Is(err, c2pa.ErrLost), errors.Is(err, errBoxes), within.Err() != nil:
		r.Logger.Warn("cannot read Content Credentials", "error", err)
		return without(origin.Unreadable, "Reading the file needs more memory or time than its size justifies."), nil
	case err != nil:
		return origin.Report{}, err
	}
	return report, nil
}

func (r Reader) inspect(ctx context.Context, file *os.File) (origin.Report, error) {
	if err := checkBoxes(file); err != nil {
		return origin.Report{}, err
	}
	report, err := Inspect(ctx, r.Library, file, r.Trusted+r.Own)
	if err != nil || report.State != origin.Trusted || r.Own == "" {
		return report, err
	}
	if r.Trusted != "" {
		if own, err := Inspect(ctx, r.Library, file, r.Own); err != nil || own.State != origin.Trusted {
			return report, err
		}
	}
	// This service's authorities sign one certificate each, so a chain to r.Own proves that it signed the file.
	report.State, report.Own = origin.Valid, true
	return report, nil
}

func without(state string, problems ...string) origin.Report {
	return origin.Report{State: state, Problems: problems, Record: origin.Record{Actions: []origin.Action{}}}
}
