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

// ensureSecret returns the secret that seals cursors and signs URLs. Another secret
// makes the cursors and URLs useless that are out.
func ensureSecret(c *devCommand) ([]byte, error) {
	secret, err := kept(c.Secret, secretFile(c.Data))
	return []byte(secret), err
}

// secretFile is where that secret is kept, in the data folder.
func secretFile(data string) string { return filepath.Join(data, "secret") }

// ensureMetricsKey returns the key that reads /metrics.
func ensureMetricsKey(c *devCommand) (string, error) {
	return kept(c.MetricsKey, metricsKeyFile(c.Data))
}

// metricsKeyFile is where the key of /metrics is kept that was made, in the data
// folder.
func metricsKeyFile(data string) string { return filepath.Join(data, "metrics-key") }

// kept returns the secret that is set, else the one that the file keeps, else a new
// one, which the file keeps from then on.
func kept(set, path string) (string, error) {
	if set != "" {
		return set, nil
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	if secret := strings.TrimSpace(string(content)); len(secret) >= minSecret {
		return secret, nil
	}
	secret := rand.Text()
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep a secret: %w", err)
	}
	return secret, nil
}
