// Package verifying creates the Content Credentials verifier for programs that offer verification.
package verifying

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/origin"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/service/api"
	"cutroom/shared/service/c2pa"
)

// readTime is about 50 times as long as a harmless small file needs.
const readTime = api.MaxTurn

type Config struct {
	// If Library is "", [c2palib.Find] searches for libc2pa_c.
	Library string
	// If Sandbox is nil, the first verification creates a sandbox.
	Sandbox *sandbox.Sandbox
	// Signers returns PEM certificates, one string for each current or earlier identity of the service.
	Signers      func(context.Context) ([]string, error)
	Certificates string
	// Time is the limit per file, in addition to an allowance for its size. 0 means readTime.
	Time time.Duration
	// Memory limits the address space of the process that reads a file, in bytes. 0 means c2pa's default.
	Memory int64
	Logger *slog.Logger
}

// The error omits the cause, which is only logged.
var errCertificates = fault.New(fault.Unavailable,
	"The certificates for verification cannot be read. The service's log has the reason.")

// Reader verifies files, whether or not results are signed. It looks for the library on each use
// until it finds it. It is safe for concurrent use.
type Reader struct {
	config Config

	mu      sync.Mutex
	library *c2palib.Library
	missed  bool
}

func NewReader(c Config) *Reader {
	if c.Time == 0 {
		c.Time = readTime
	}
	return &Reader{config: c}
}

// Errors: origin.ErrNoReader; errors of [c2pa.Reader.Verify]; fault.Unavailable if the certificates cannot be read.
// Without them, the service's own signatures would seem to come from another signer.
func (r *Reader) Verify(ctx context.Context, file *os.File) (origin.Report, error) {
	library, err := r.find(ctx)
	if err != nil {
		return origin.Report{}, err
	}
	reader := c2pa.Reader{Library: library, Time: r.config.Time, Logger: r.config.Logger}
	if reader.Own, reader.Trusted, err = r.certificates(ctx); err != nil {
		if ctx.Err() != nil {
			return origin.Report{}, ctx.Err()
		}
		r.config.Logger.Error("cannot verify files", "error", err)
		return origin.Report{}, errCertificates
	}
	return reader.Verify(ctx, file)
}

// find logs once if the library is missing, and once when it has been found.
func (r *Reader) find(ctx context.Context) (*c2palib.Library, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.library != nil {
		return r.library, nil
	}
	library, err := r.load(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		if !r.missed {
			r.config.Logger.Warn("Content Credentials cannot be verified; put libc2pa_c, from the PyPI package c2pa-python, "+
				"next to the program; no restart is needed", "error", err)
		}
		r.missed = true
		return nil, fmt.Errorf("%w: %w", origin.ErrNoReader, err)
	}
	r.config.Logger.Info("Content Credentials can be verified", "library", library.String())
	r.library = library
	return library, nil
}

func (r *Reader) load(ctx context.Context) (*c2palib.Library, error) {
	if r.config.Sandbox == nil {
		box, err := sandbox.New(ctx)
		if err != nil {
			return nil, err
		}
		box.LogLacks(r.config.Logger)
		r.config.Sandbox = box
	}
	library, err := c2palib.Find(ctx, r.config.Sandbox, r.config.Library)
	if err == nil && r.config.Memory > 0 {
		library = library.Within(r.config.Memory)
	}
	return library, err
}

// own holds the certificates of the service's generated identities, and trusted holds the deployer's.
func (r *Reader) certificates(ctx context.Context) (own, trusted string, err error) {
	texts, err := r.config.Signers(ctx)
	if err != nil {
		return "", "", fmt.Errorf("load the certificates of this service: %w", err)
	}
	if r.config.Certificates != "" {
		text, err := os.ReadFile(r.config.Certificates)
		if err != nil {
			return "", "", fmt.Errorf("CUTROOM_C2PA_CERTIFICATES: %w", err)
		}
		certificates, err := c2pa.Anchors(text)
		if err != nil {
			return "", "", fmt.Errorf("CUTROOM_C2PA_CERTIFICATES: %w", err)
		}
		texts = append(texts, certificates)
	}
	for _, text := range texts {
		if c2pa.SelfMade(text) {
			own += text
		} else {
			trusted += text
		}
	}
	return own, trusted, nil
}
