package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// secretAge is how long an upstream's key is used before it is asked for again,
// so that a key that was exchanged comes into use. The asking may take secretTime,
// and where there is an old key it is waited for secretSoon.
const (
	secretAge  = 5 * time.Minute
	secretTime = 10 * time.Second
	secretSoon = time.Second
)

// Secrets gives the keys of upstreams.
type Secrets interface {
	// Secret gives what a reference of the catalog stands for, such as
	// "env:NAME"; see catalog.Upstream.
	Secret(ctx context.Context, reference string) (string, error)
}

// LocalSecrets takes keys from the environment and from files of this machine.
type LocalSecrets struct{}

// Secret gives the variable of an "env:NAME", or the content of a "file:PATH"
// without the space around it.
func (LocalSecrets) Secret(_ context.Context, reference string) (string, error) {
	kind, name, _ := strings.Cut(reference, ":")
	var secret string
	switch kind {
	case "env":
		secret = os.Getenv(name)
	case "file":
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		secret = strings.TrimSpace(string(content))
	default:
		return "", fmt.Errorf("a secret of the kind %q cannot be read here", kind)
	}
	if secret == "" {
		return "", errors.New("the secret is empty")
	}
	return secret, nil
}

// cachedSecret is an upstream's key.
type cachedSecret struct {
	secrets   Secrets
	reference string
	now       func() time.Time

	mu    sync.Mutex
	value string
	until time.Time
	// asking is closed when the key that is being asked for is there, or err says
	// why it is not; nil while nobody asks.
	asking chan struct{}
	err    error
}

// get gives the key, empty where the upstream needs none. One that cannot be
// asked for again, or not soon, is used on. However long the asking takes, and
// whoever leaves meanwhile, no other call waits for it longer than for its own.
func (s *cachedSecret) get(ctx context.Context) (string, error) {
	if s.reference == "" {
		return "", nil
	}
	value, asking := s.current(ctx)
	if asking == nil {
		return value, nil
	}
	patience := secretTime
	if value != "" {
		patience = secretSoon
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-asking:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.value != "":
		return s.value, nil
	case s.err != nil:
		return "", fmt.Errorf("gateway: the upstream's secret: %w", s.err)
	}
	return "", errors.New("gateway: the upstream's secret is long in coming")
}

// current gives the key that there is, and where it is an old one or none, what
// ends with the asking for a new one.
func (s *cachedSecret) current(ctx context.Context) (value string, asking <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != "" && s.now().Before(s.until) {
		return s.value, nil
	}
	if s.asking == nil {
		s.asking = make(chan struct{})
		go s.ask(context.WithoutCancel(ctx))
	}
	return s.value, s.asking
}

// ask asks for the key once.
func (s *cachedSecret) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	value, err := s.secrets.Secret(ctx, s.reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.value = value
	}
	if s.value != "" {
		s.until = s.now().Add(secretAge)
	}
	close(s.asking)
	s.asking = nil
}
