// Package signing makes the signer of results from the settings CUTROOM_C2PA…, for the programs that
// run a worker.
package signing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cutroom/shared/app/engines"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/service/worker"
)

// The values of CUTROOM_C2PA.
const (
	// Auto signs results of engines with trained models.
	Auto = "auto"
	On   = "on"
	Off  = "off"
)

type Settings struct {
	// Mode is Auto, On or Off; "" is Auto.
	Mode string
	// Library is the path of libc2pa_c; "" looks for it (see [c2palib.Find]).
	Library string
	// Certificates and Key are files in PEM; both are "" for an identity that the service makes for itself.
	Certificates, Key string
}

// errKeyAlone means that only one of the two settings is set.
var errKeyAlone = errors.New("CUTROOM_C2PA_CERTIFICATES, CUTROOM_C2PA_KEY: both are needed, or neither")

// signs reports whether results of the engine, as CUTROOM_ENGINE names it, are signed.
func (s Settings) signs(engine string) (bool, error) {
	switch s.Mode {
	case "", Auto:
		return !engines.Parse(engine).BuiltIn(), nil
	case On:
		return true, nil
	case Off:
		return false, nil
	}
	return false, fmt.Errorf("CUTROOM_C2PA: %q is not one of %s, %s and %s", s.Mode, Auto, On, Off)
}

type Config struct {
	Settings
	Engine  string
	Sandbox *sandbox.Sandbox
	// Version is the program's version, "" if unknown.
	Version string
	// Now returns the time for checks of certificates.
	Now func() time.Time
}

// Plan is how results will be signed. A nil plan signs none.
type Plan struct {
	config   Config
	library  *c2palib.Library
	identity *c2pa.Identity
}

// Find reads the settings, and finds the library and a deployer's own identity. It returns nil if
// signing is off.
//
// Errors name the setting. After an error no result is left unsigned; the program must not start.
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
			"put libc2pa_c, which the package c2pa-python of PyPI contains, next to the program, or set "+
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

// Keeper keeps the identity that a service makes for itself, in PEM.
type Keeper interface {
	// Kept returns the stored identity. On the first call it stores the result of make. Programs
	// that call it at the same time all get the same identity.
	Kept(ctx context.Context, make func() ([]byte, error)) ([]byte, error)
}

// expiring is how long before its end a certificate is warned of.
const expiring = 30 * 24 * time.Hour

type Parts struct {
	// Keeper is nil if the deployer must provide an identity.
	Keeper Keeper
	// Folder is for scratch files.
	Folder string
	// Now is the time that results are said to be made at.
	Now    func() time.Time
	Logger *slog.Logger
}

// Signer returns the signer, nil if signing is off. It first signs a picture as a test.
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

// Certificates returns the certificates that results are signed by, in PEM.
func (p *Plan) Certificates(ctx context.Context, keeper Keeper) (string, error) {
	identity, err := p.identityOf(ctx, keeper)
	if err != nil {
		return "", err
	}
	return identity.Chain(), nil
}

// By names the signer of results and its library.
type By struct {
	// Name is the subject of the certificate, Until its expiry.
	Name  string
	Until time.Time
	// Expiring reports whether that is within a month.
	Expiring bool
	Library  string
}

// Try signs a picture, and returns its signer. A nil plan returns nil.
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
	identity, err := p.identityOf(ctx, parts.Keeper)
	if err != nil {
		return nil, By{}, err
	}
	signer := c2pa.New(c2pa.Config{
		Library: p.library, Identity: identity, Generative: !engines.Parse(p.config.Engine).BuiltIn(),
		Version: p.config.Version, Now: parts.Now, Logger: parts.Logger,
	})
	if err := signer.Check(ctx, parts.Folder); err != nil {
		return nil, By{}, fmt.Errorf("CUTROOM_C2PA: a picture that was signed to try it is not valid: %w", err)
	}
	return signer, By{
		Name: identity.Name(), Until: identity.Expires(), Library: p.library.String(),
		Expiring: identity.Expires().Sub(p.config.Now()) < expiring,
	}, nil
}

// identityOf returns the deployer's identity, or the keeper's.
func (p *Plan) identityOf(ctx context.Context, keeper Keeper) (*c2pa.Identity, error) {
	switch {
	case p.identity != nil:
		return p.identity, nil
	case keeper == nil:
		return nil, errors.New("CUTROOM_C2PA: signing is on, but there is no signing identity: " +
			"set CUTROOM_C2PA_SECRET_ARN, or CUTROOM_C2PA_CERTIFICATES and CUTROOM_C2PA_KEY, or CUTROOM_C2PA=off")
	}
	text, err := keeper.Kept(ctx, func() ([]byte, error) { return c2pa.NewIdentity(p.config.Now(), rand.Reader) })
	if err != nil {
		return nil, fmt.Errorf("keep the identity that signs results: %w", err)
	}
	identity, err := c2pa.ParseIdentity(text, text, p.config.Now(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("the identity that the service made to sign results and keeps (c2pa.pem in the data folder, "+
			"in AWS the secret of CUTROOM_C2PA_SECRET_ARN): %w; delete it to begin with another", err)
	}
	return identity, nil
}
