// Package signing makes the signer of results from the settings CUTROOM_C2PA_…, for programs that run a worker.
package signing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cutroom/shared/app/engineconfig"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/service/worker"
)

const (
	// Auto signs only the results of engines with trained models.
	Auto = "auto"
	On   = "on"
	Off  = "off"
)

type Settings struct {
	// An empty Mode means Auto.
	Mode string
	// If Library is "", [c2palib.Find] searches for libc2pa_c.
	Library string
	// Certificates and Key are PEM files. Both are "" to generate an identity.
	Certificates, Key string
}

var errKeyAlone = errors.New("CUTROOM_C2PA_CERTIFICATES, CUTROOM_C2PA_KEY: set both or neither")

func (s Settings) signs(engine string) (bool, error) {
	switch s.Mode {
	case "", Auto:
		return !engineconfig.Parse(engine).BuiltIn(), nil
	case On:
		return true, nil
	case Off:
		return false, nil
	}
	return false, fmt.Errorf("CUTROOM_C2PA: %q must be %s, %s or %s", s.Mode, Auto, On, Off)
}

type Config struct {
	Settings
	Engine  string
	Sandbox *sandbox.Sandbox
	Version string
	Now     func() time.Time
}

// With a nil Plan, results are not signed.
type Plan struct {
	config   Config
	library  *c2palib.Library
	identity *c2pa.Identity
}

// Find reads the settings, and locates the library and the deployer's own identity. It returns nil if signing is off.
//
// The error names the setting. The program must not start after an error, because its results would be unsigned.
func Find(ctx context.Context, c Config) (*Plan, error) {
	signs, err := c.signs(c.Engine)
	if err != nil {
		return nil, err
	}
	if (c.Certificates == "") != (c.Key == "") {
		return nil, errKeyAlone
	}
	if !signs {
		return nil, nil
	}
	p := &Plan{config: c}
	if p.library, err = c2palib.Find(ctx, c.Sandbox, c.Library); err != nil {
		return nil, fmt.Errorf("CUTROOM_C2PA: signing is on, but the library is missing: %w; "+
			"put libc2pa_c, from the PyPI package c2pa-python, next to the program, or set "+
			"CUTROOM_C2PA_LIBRARY to its path; CUTROOM_C2PA=off turns signing off", err)
	}
	if c.Certificates == "" {
		return p, nil
	}
	certificates, err := os.ReadFile(c.Certificates)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_C2PA_CERTIFICATES: %w", err)
	}
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_C2PA_KEY: %w", err)
	}
	if p.identity, err = c2pa.ParseIdentity(certificates, key, c.Now(), rand.Reader); err != nil {
		return nil, fmt.Errorf("CUTROOM_C2PA_CERTIFICATES, CUTROOM_C2PA_KEY: %w", err)
	}
	return p, nil
}

type Store interface {
	// LoadOrMake returns the stored identity. If no identity is stored, it stores the result of the function `make`.
	// Concurrent calls from several programs return the same identity.
	LoadOrMake(ctx context.Context, make func() ([]byte, error)) ([]byte, error)
}

const expiring = 30 * 24 * time.Hour

type Parts struct {
	// Store is nil if the deployer must provide an identity.
	Store  Store
	Folder string
	// Now returns the creation time to state in results.
	Now    func() time.Time
	Logger *slog.Logger
}

// Signer returns a signer, or nil if signing is off. It signs a test picture first.
func (p *Plan) Signer(ctx context.Context, parts Parts) (worker.Signer, error) {
	if p == nil {
		return nil, nil
	}
	signer, by, err := p.try(ctx, parts)
	if err != nil {
		return nil, err
	}
	parts.Logger.Info("results are signed", "by", by.Name, "until", by.Until, "library", by.Library)
	if by.Expiring {
		parts.Logger.Warn("the certificate that signs results expires soon", "at", by.Until)
	}
	return signer, nil
}

func (p *Plan) Certificates(ctx context.Context, store Store) (string, error) {
	identity, err := p.identityOf(ctx, store)
	if err != nil {
		return "", err
	}
	return identity.Chain(), nil
}

type By struct {
	// Name is the subject of the certificate; Until is its expiry.
	Name     string
	Until    time.Time
	Expiring bool
	Library  string
}

// Try signs a test picture and describes the signer. For a nil plan it returns nil.
func (p *Plan) Try(ctx context.Context, parts Parts) (*By, error) {
	if p == nil {
		return nil, nil
	}
	_, by, err := p.try(ctx, parts)
	if err != nil {
		return nil, err
	}
	return &by, nil
}

func (p *Plan) try(ctx context.Context, parts Parts) (*c2pa.Signer, By, error) {
	identity, err := p.identityOf(ctx, parts.Store)
	if err != nil {
		return nil, By{}, err
	}
	signer := c2pa.New(c2pa.Config{
		Library: p.library, Identity: identity, Generative: !engineconfig.Parse(p.config.Engine).BuiltIn(),
		Version: p.config.Version, Now: parts.Now, Logger: parts.Logger,
	})
	if err := signer.Check(ctx, parts.Folder); err != nil {
		return nil, By{}, fmt.Errorf("CUTROOM_C2PA: the signature of the test picture is invalid: %w", err)
	}
	return signer, By{
		Name: identity.Name(), Until: identity.Expires(), Library: p.library.String(),
		Expiring: identity.Expires().Sub(p.config.Now()) < expiring,
	}, nil
}

func (p *Plan) identityOf(ctx context.Context, store Store) (*c2pa.Identity, error) {
	switch {
	case p.identity != nil:
		return p.identity, nil
	case store == nil:
		return nil, errors.New("CUTROOM_C2PA: signing is on, but no signing identity is set: " +
			"set CUTROOM_C2PA_SECRET_ARN, or CUTROOM_C2PA_CERTIFICATES and CUTROOM_C2PA_KEY, or CUTROOM_C2PA=off")
	}
	text, err := store.LoadOrMake(ctx, func() ([]byte, error) { return c2pa.NewIdentity(p.config.Now(), rand.Reader) })
	if err != nil {
		return nil, fmt.Errorf("store the identity that signs results: %w", err)
	}
	identity, err := c2pa.ParseIdentity(text, text, p.config.Now(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("the generated identity that signs results (c2pa.pem in the data folder, "+
			"in AWS the secret of CUTROOM_C2PA_SECRET_ARN): %w; delete it to generate a new one", err)
	}
	return identity, nil
}
