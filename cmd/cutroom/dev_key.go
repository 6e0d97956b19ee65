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

// devAccount is the account of the development key.
const devAccount = "dev"

// ensureDevKey returns a development key that works: the one of the setting, or the one in the data folder,
// or a new one. A key in the data folder that was revoked is replaced.
func ensureDevKey(ctx context.Context, c *devCommand, store credential.Store, now time.Time) (string, error) {
	if c.DevKey != "" {
		works, err := ensureKey(ctx, store, c.DevKey, now)
		if err == nil && !works {
			err = errors.New("the key was revoked; choose another")
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
		return "", fmt.Errorf("keep the development key: %w", err)
	}
	_, err = ensureKey(ctx, store, secret, now)
	return secret, err
}

const (
	// fewestCharacters is the least length of the random part of a development key
	// if other machines reach the server, and fewestKinds the least number of
	// different characters in it. Anything below is a word rather than a key.
	fewestCharacters, fewestKinds = 20, 10
)

// isWeakKey reports whether a development key can be guessed.
func isWeakKey(secret string) bool {
	random := strings.TrimPrefix(secret, "ck_")
	kinds := map[rune]bool{}
	for _, character := range random {
		kinds[character] = true
	}
	return len(random) < fewestCharacters || len(kinds) < fewestKinds
}

// warnOfKey warns of a weak key if other machines reach the server.
func (s *server) warnOfKey(c *devCommand) {
	isOpen := !isLoopback(s.listener.Addr()) || !isLoopback(s.gateway.listener.Addr())
	if isOpen && c.DevKey != "" && isWeakKey(c.DevKey) {
		s.logger.Warn(
			"CUTROOM_DEV_KEY can be guessed, and other machines reach this server: leave it out, and a strong one is made")
	}
}

// ensureKey stores a development key if it is not there yet, and reports whether it
// works: a revoked key stays revoked.
func ensureKey(ctx context.Context, store credential.Store, secret string, now time.Time) (works bool, err error) {
	key, err := credential.NewKey(secret, devAccount, credential.DevTier, "development key", now)
	if err != nil {
		return false, err
	}
	key.Admin = true
	// It is looked up first, because nothing can be written to a full disk.
	known, err := store.FindKey(ctx, key.Hash)
	if fault.Is(err, fault.NotFound) {
		if err := store.CreateKey(ctx, audit.Operator(key.CreatedAt), key); !fault.Is(err, fault.Conflict) {
			return err == nil, err
		}
		known, err = store.FindKey(ctx, key.Hash)
	}
	if err == nil && known.Account != devAccount {
		err = fmt.Errorf("the key is the account %s's already; choose another", known.Account)
	}
	return err == nil && known.Works(now), err
}
