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

// minSecret is the least length of a secret in bytes; it cannot be guessed.
const minSecret = 16

// ensureSecret returns the secret that seals cursors and signs URLs. A new secret invalidates all
// earlier ones.
func ensureSecret(c *devCommand) ([]byte, error) {
	secret, err := kept(c.Secret, secretFile(c.Data))
	return []byte(secret), err
}

func secretFile(data string) string { return filepath.Join(data, "secret") }

// signerName is the file of the signing identity in the data folder. signersName holds its certificates
// and earlier ones (see signing.File).
const signerName, signersName = "c2pa.pem", "c2pa-signers.pem"

// ensureMetricsKey returns the key that reads /metrics.
func ensureMetricsKey(c *devCommand) (string, error) {
	return kept(c.MetricsKey, metricsKeyFile(c.Data))
}

// metricsKeyFile returns the path of the generated key of /metrics in the data folder.
func metricsKeyFile(data string) string { return filepath.Join(data, "metrics-key") }

// kept returns the secret of the setting, or else the one in the file, or else a
// new one, which it writes to the file.
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
