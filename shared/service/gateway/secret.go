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

// secretTTL is how long an upstream's key is used before it is asked for again,
// so that a key that was exchanged comes into use. The fetching may take secretTimeout,
// and where there is an old key it is waited for staleSecretWait.
const (
	secretTTL       = 5 * time.Minute
	secretTimeout   = 10 * time.Second
	staleSecretWait = time.Second
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
	// fetching is closed when the key that is being asked for is there, or err says
	// why it is not; nil while nobody asks.
	fetching chan struct{}
	err      error
}

// get gives the key, empty where the upstream needs none. One that cannot be
// asked for again, or not soon, is used on. However long the fetching takes, and
// whoever leaves meanwhile, no other call waits for it longer than for its own.
func (s *cachedSecret) get(ctx context.Context) (string, error) {
	if s.reference == "" {
		return "", nil
	}
	value, fetching := s.current(ctx)
	if fetching == nil {
		return value, nil
	}
	wait := secretTimeout
	if value != "" {
		wait = staleSecretWait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-fetching:
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
// ends with the fetching for a new one.
func (s *cachedSecret) current(ctx context.Context) (value string, fetching <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != "" && s.now().Before(s.until) {
		return s.value, nil
	}
	if s.fetching == nil {
		s.fetching = make(chan struct{})
		go s.fetch(context.WithoutCancel(ctx))
	}
	return s.value, s.fetching
}

// fetch asks for the key once.
func (s *cachedSecret) fetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	value, err := s.secrets.Secret(ctx, s.reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.value = value
	}
	if s.value != "" {
		s.until = s.now().Add(secretTTL)
	}
	close(s.fetching)
	s.fetching = nil
}
