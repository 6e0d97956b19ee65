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

const minSecret = 16

// ensureSecret returns the secret that encrypts cursors and signs URLs. A new secret invalidates
// all earlier cursors and URLs.
func ensureSecret(c *devCommand) ([]byte, error) {
	secret, err := kept(c.Secret, secretFile(c.Data))
	return []byte(secret), err
}

func secretFile(data string) string { return filepath.Join(data, "secret") }

// tokenKeyName is the file in the data folder with the secret from which the keys that sign client tokens are
// derived. Those keys' public parts are served to anyone, so the secret is always random, unlike CUTROOM_SECRET.
const tokenKeyName = "token-key"

// signerName is the file in the data folder with the signing identity. signersName is the file with
// its current and earlier certificates (see signing.File).
const signerName, signersName = "c2pa.pem", "c2pa-signers.pem"

func ensureMetricsKey(c *devCommand) (string, error) {
	return kept(c.MetricsKey, metricsKeyFile(c.Data))
}

func metricsKeyFile(data string) string { return filepath.Join(data, "metrics-key") }

// kept returns the secret from the setting or from the file. If neither exists, it creates a secret
// and writes it to the file.
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
		return "", fmt.Errorf("write a secret: %w", err)
	}
	return secret, nil
}
