package main

import (
	"context"
	"crypto/rand"
	"cutroom/cmd/cutroom/command"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

const devAccount = "dev"

// ensureDevKey returns a working development key: the key from the setting, the key in the data
// folder or a new key. It replaces a revoked key in the data folder.
func ensureDevKey(ctx context.Context, c *devCommand, store credential.Store, now time.Time) (string, error) {
	if c.DevKey != "" {
		works, err := ensureKey(ctx, store, c.DevKey, now)
		if err == nil && !works {
			err = errors.New("the key was revoked: choose a different key")
		}
		if err != nil {
			return "", fmt.Errorf("CUTROOM_DEV_KEY: %w", err)
		}
		return c.DevKey, nil
	}
	path := command.DevKeyFile(c.Data)
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the development key: %w", err)
	}
	if secret := strings.TrimSpace(string(kept)); credential.CheckSecret(secret) == nil {
		if works, err := ensureKey(ctx, store, secret, now); err != nil || works {
			return secret, err
		}
	}
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the development key: %w", err)
	}
	_, err = ensureKey(ctx, store, secret, now)
	return secret, err
}

const (
	// If other machines can reach the server, a development key must be hard to guess. fewestCharacters is the
	// minimum length of its random part, and fewestKinds is the minimum number of different characters in it.
	fewestCharacters, fewestKinds = 20, 10
)

func isWeakKey(secret string) bool {
	random := strings.TrimPrefix(secret, "ck_")
	kinds := map[rune]bool{}
	for _, character := range random {
		kinds[character] = true
	}
	return len(random) < fewestCharacters || len(kinds) < fewestKinds
}

// warnOfKey logs a warning if the key is weak and other machines can reach the server.
func (s *server) warnOfKey(c *devCommand) {
	isOpen := !isLoopback(s.listener.Addr()) || !isLoopback(s.gateway.listener.Addr())
	if isOpen && c.DevKey != "" && isWeakKey(c.DevKey) {
		s.logger.Warn(
			"CUTROOM_DEV_KEY can be guessed and other machines can reach this server: unset it to generate a strong key")
	}
}

// ensureKey stores a development key if it does not exist yet. works is false if the key was revoked.
func ensureKey(ctx context.Context, store credential.Store, secret string, now time.Time) (works bool, err error) {
	key, err := credential.NewKey(secret, devAccount, credential.DevTier, "development key", now)
	if err != nil {
		return false, err
	}
	key.Admin = true
	// Look up the key first, because on a full disk a write would fail.
	known, err := store.FindKey(ctx, key.Hash)
	if fault.Is(err, fault.NotFound) {
		if err := store.CreateKey(ctx, audit.Operator(key.CreatedAt), key); !fault.Is(err, fault.Conflict) {
			return err == nil, err
		}
		known, err = store.FindKey(ctx, key.Hash)
	}
	if err == nil && known.Account != devAccount && known.Works(now) {
		err = fmt.Errorf("the key already belongs to the account %s: choose a different key", known.Account)
	}
	return err == nil && known.Works(now), err
}
