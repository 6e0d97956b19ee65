package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// minSecret is how short a secret may be, in bytes: nobody guesses a longer one.
const minSecret = 16

// ensureSecret gives the secret that seals cursors and signs URLs: the one that
// is set, else the one that the data folder keeps, else a new one. Another
// secret makes the cursors and URLs useless that are out.
func ensureSecret(c *devCommand) ([]byte, error) {
	if c.Secret != "" {
		return []byte(c.Secret), nil
	}
	path := filepath.Join(c.Data, "secret")
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	if secret := strings.TrimSpace(string(kept)); len(secret) >= minSecret {
		return []byte(secret), nil
	}
	secret := rand.Text()
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("keep the secret: %w", err)
	}
	return []byte(secret), nil
}
