package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// secretTTL is how long an upstream's key is cached. A call that already has an old key waits for a new one for at
// most staleSecretWait.
const (
	secretTTL       = 5 * time.Minute
	secretTimeout   = 10 * time.Second
	staleSecretWait = time.Second
)

type Secrets interface {
	// Secret returns the secret of a catalog reference, such as "env:NAME"; see catalog.Upstream.
	Secret(ctx context.Context, reference string) (string, error)
}

type LocalSecrets struct{}

// Secret returns the value of the variable "env:NAME", or the trimmed content of "file:PATH".
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
		return "", fmt.Errorf("secrets of the kind %q are not supported here: use env:NAME or file:PATH", kind)
	}
	if secret == "" {
		return "", errors.New("the secret is empty")
	}
	return secret, nil
}

type cachedSecret struct {
	secrets   Secrets
	reference string
	now       func() time.Time

	mu    sync.Mutex
	value string
	until time.Time
	// fetching is closed when the running fetch has stored its result in value or err. It is nil if none is running.
	fetching chan struct{}
	err      error
}

// get returns the key, or "" if the upstream needs none. If fetching fails or is slow, it returns
// the old key. A fetch outlives the call that started it.
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
		return "", fmt.Errorf("the upstream's secret: %w", s.err)
	}
	return "", errors.New("timed out fetching the upstream's secret")
}

// current returns the key, if any. If fetching is not nil, it is closed when a new key has been fetched.
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
