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

// Reader verifies files for people who ask a service about them. It is safe for concurrent
// use.
type Reader struct {
	Library *c2pa.Library
	// Own are the certificates, in PEM, of the identities that this service made for itself:
	// a reader then knows that a file is this service's, and nobody vouches for its name.
	Own string
	// Trusted are those of authorities that vouch for signers, in PEM.
	Trusted string
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
	info, err := file.Stat()
	if err != nil {
		return origin.Report{}, fmt.Errorf("look at the file: %w", err)
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
		return without(origin.Unreadable, "Its Content Credentials are on a server, and no server is asked for them."), nil
	case errors.Is(err, errNoMedia):
		return without(origin.Unreadable, "It is neither a picture nor a video."), nil
	case errors.As(err, &refusal):
		return without(origin.Unreadable, "It is damaged, or of a format that C2PA does not have."), nil
	case errors.Is(err, c2pa.ErrLost), errors.Is(err, errBoxes), within.Err() != nil:
		r.Logger.Warn("read Content Credentials", "error", err)
		return without(origin.Unreadable, "To read it takes more memory or time than its size explains."), nil
	case err != nil:
		return origin.Report{}, err
	}
	return report, nil
}

// inspect verifies a file, and tells the service's own signature from those that others vouch
// for.
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
	// The authority of a certificate that the service made has signed no other.
	report.State, report.Own = origin.Valid, true
	return report, nil
}

// without is the report on a file of which no credentials were read.
func without(state string, problems ...string) origin.Report {
	return origin.Report{State: state, Problems: problems, Record: origin.Record{Actions: []origin.Action{}}}
}
