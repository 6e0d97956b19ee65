package provenance

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

// Reader verifies files for people who ask a service about them. It is safe for concurrent
// use.
type Reader struct {
	Library *c2pa.Library
	// Own is whom this service signs by; nil if it signs nothing.
	Own *Identity
	// SelfMade is true if the service made that identity: a reader then knows that it is
	// this service's, and nobody vouches for its name.
	SelfMade bool
	// Time is how long a file may take, beside the time for its size.
	Time   time.Duration
	Logger *slog.Logger
}

// Verify returns what the Content Credentials of a file say, and whether that holds. A file
// without them is None, and one that was damaged, was made to harm the reader, is of no format
// of C2PA or only names a server that has them is Unreadable.
//
// Errors: the context's; what keeps the machine from reading it.
func (r Reader) Verify(ctx context.Context, file *os.File) (origin.Report, error) {
	anchors := ""
	if r.Own != nil {
		anchors = r.Own.Chain()
	}
	info, err := file.Stat()
	if err != nil {
		return origin.Report{}, fmt.Errorf("look at the file: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, r.Time+time.Duration(info.Size()/slowest)*time.Second)
	defer cancel()
	report, err := Inspect(within, r.Library, file, anchors)
	var refusal *c2pa.Refusal
	switch {
	case ctx.Err() != nil:
		return origin.Report{}, ctx.Err()
	case errors.Is(err, c2pa.ErrNone):
		return without(origin.None), nil
	case errors.Is(err, c2pa.ErrElsewhere):
		return without(origin.Unreadable, "Its Content Credentials are on a server, and no server is asked for them."), nil
	case errors.Is(err, errNoMedia):
		return without(origin.Unreadable, "It is neither a picture nor a video."), nil
	case errors.As(err, &refusal):
		return without(origin.Unreadable, "It is damaged, or of a format that C2PA does not have."), nil
	case errors.Is(err, c2pa.ErrLost), within.Err() != nil:
		r.Logger.Warn("read Content Credentials", "error", err)
		return without(origin.Unreadable, "To read it takes more memory or time than its size explains."), nil
	case err != nil:
		return origin.Report{}, err
	}
	if r.SelfMade && report.State == origin.Trusted {
		// The authority of a certificate that the service made has signed no other.
		report.State, report.Own = origin.Valid, true
	}
	return report, nil
}

// without is the report on a file of which no credentials were read.
func without(state string, problems ...string) origin.Report {
	return origin.Report{State: state, Problems: problems, Record: origin.Record{Actions: []origin.Action{}}}
}
