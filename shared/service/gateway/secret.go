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
// so that a key that was exchanged comes into use.
const secretAge = 5 * time.Minute

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
}

// get gives the key, empty where the upstream needs none. One that cannot be
// asked for again is used on.
func (s *cachedSecret) get(ctx context.Context) (string, error) {
	if s.reference == "" {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.until) {
		return s.value, nil
	}
	value, err := s.secrets.Secret(ctx, s.reference)
	if err != nil && s.value == "" {
		return "", fmt.Errorf("gateway: the upstream's secret: %w", err)
	}
	if err == nil {
		s.value = value
	}
	s.until = now.Add(secretAge)
	return s.value, nil
}
