package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// maxExportedKey is the maximum length, in bytes, of a line that `keys import` reads.
const maxExportedKey = 1 << 20

const maxExportedModel = 128

// exportedKey is a key as `keys export` prints it, one JSON object per line. It contains the key's SHA-256 in hex,
// not the key itself.
type exportedKey struct {
	Hash      string                  `json:"hash"`
	Account   string                  `json:"account"`
	Tier      string                  `json:"tier"`
	Label     string                  `json:"label,omitempty"`
	Admin     bool                    `json:"admin,omitempty"`
	CreatedAt time.Time               `json:"created_at"`
	ExpiresAt time.Time               `json:"expires_at,omitzero"`
	Models    []string                `json:"models,omitempty"`
	Routes    []credential.RouteGroup `json:"routes,omitempty"`
}

type keysExport struct {
	keysFlags
	Account string `help:"Export only keys of this account."`
}

func (keysExport) Help() string {
	return "Prints one JSON object per key: its hash, account, tier and limits. Revoked and expired keys are omitted. " +
		"Clients can keep their keys when you import the list into another data folder or deployment."
}

func (c *keysExport) Run(ctx context.Context, out *command.Invocation) error {
	return c.withStore(ctx, func(store credential.Store) error {
		keys, err := store.ListKeys(ctx, c.Account)
		if err != nil {
			return err
		}
		encoder := json.NewEncoder(out.Out)
		for _, key := range keys {
			if !key.Works(time.Now()) {
				continue
			}
			if err := encoder.Encode(exportedKey{
				Hash: key.Hash.String(), Account: key.Account, Tier: key.Tier, Label: key.Label, Admin: key.Admin,
				CreatedAt: key.CreatedAt.UTC(), ExpiresAt: key.ExpiresAt.UTC(), Models: key.Limits.Models,
				Routes: key.Limits.Routes,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

type keysImport struct {
	keysFlags
	tiersFlag
	File string `arg:"" help:"File that keys export wrote."`
}

func (keysImport) Help() string {
	return "Adds the keys from a file that keys export wrote. If a line is invalid, it adds no key. It leaves existing " +
		"keys unchanged, so you can repeat the command."
}

func (c *keysImport) Run(ctx context.Context, out *command.Invocation) error {
	keys, err := c.read()
	if err != nil {
		return err
	}
	if c.Stage == "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return fmt.Errorf("CUTROOM_DATA: %w", err)
		}
	}
	return c.withStore(ctx, func(store credential.Store) error {
		added := 0
		for _, key := range keys {
			there, err := store.FindKey(ctx, key.Hash)
			switch {
			case fault.Is(err, fault.NotFound):
				if err = store.CreateKey(ctx, audit.Operator(time.Now().UTC()), key); err == nil {
					added++
				}
			case err == nil:
				err = same(there, key)
			}
			if err != nil {
				return fmt.Errorf("%s: %w; %d keys were added before the error", key.ID, err, added)
			}
		}
		fmt.Fprintf(out.Err, "Added %d keys. %d existed already.\n", added, len(keys)-added)
		return nil
	})
}

// same returns an error unless the existing key is valid and equals the imported key.
func same(there, key credential.Key) error {
	if there.Account != key.Account || there.Tier != key.Tier || there.Admin != key.Admin ||
		!there.ExpiresAt.Equal(key.ExpiresAt) || !reflect.DeepEqual(there.Limits, key.Limits) {
		return errors.New("the key already exists with a different account, tier, expiry or limits")
	}
	if !there.RevokedAt.IsZero() {
		return errors.New("the key exists and is revoked")
	}
	return nil
}

func (c *keysImport) read() ([]credential.Key, error) {
	tiers, err := c.table()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return nil, err
	}
	// Accept no pipe except standard input, because opening any other pipe could block forever.
	if stdin, err := os.Stdin.Stat(); !info.Mode().IsRegular() && (err != nil || !os.SameFile(info, stdin)) {
		return nil, fmt.Errorf("%s is not a regular file: name a file that keys export wrote, or /dev/stdin", c.File)
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var keys []credential.Key
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxExportedKey)
	for number := 1; lines.Scan(); number++ {
		key, err := parseExportedKey(lines.Bytes())
		if _, known := tiers[key.Tier]; err == nil && !known {
			err = fmt.Errorf("unknown tier %q; set --tiers to a file that contains it", key.Tier)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", c.File, number, err)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", c.File, len(keys)+1, err)
	}
	return keys, nil
}

func parseExportedKey(line []byte) (key credential.Key, err error) {
	var read exportedKey
	if err := json.Unmarshal(line, &read); err != nil {
		return key, fmt.Errorf("not a line written by keys export: %w", err)
	}
	hash, err := hex.DecodeString(read.Hash)
	if err != nil || copy(key.Hash[:], hash) != len(key.Hash) || len(hash) != len(key.Hash) {
		return key, errors.New("hash: must be 64 hex digits")
	}
	if err := credential.CheckAccount(read.Account); err != nil {
		return key, err
	}
	if err := checkModelNames(read.Models); err != nil {
		return key, err
	}
	if err := checkLabel(read.Label); err != nil {
		return key, err
	}
	if read.CreatedAt.IsZero() {
		return key, errors.New("created_at: missing, must be a time such as 2027-01-31T12:00:00Z")
	}
	for _, at := range []time.Time{read.CreatedAt, read.ExpiresAt} {
		if year := at.UTC().Year(); year < 1 || year > 9999 { // the audit log cannot show it
			return key, fmt.Errorf("%v: the year must be from 1 to 9999", at)
		}
	}
	for _, name := range read.Routes {
		if !slices.Contains(credential.RouteGroups(), name) {
			return key, fmt.Errorf("routes: unknown group %q: must be one of %s", name, routeGroups())
		}
	}
	return credential.Key{
		ID: credential.KeyID(key.Hash), Hash: key.Hash, Account: read.Account, Tier: read.Tier, Label: read.Label,
		Admin: read.Admin, CreatedAt: read.CreatedAt.UTC(), ExpiresAt: read.ExpiresAt.UTC(),
		Limits: credential.Limits{Models: read.Models, Routes: read.Routes},
	}, nil
}

// checkModelNames checks the model names of an exported key. It does not look them up, because the
// server may have different models from this machine.
func checkModelNames(names []string) error {
	if len(names) > credential.MaxKeyModels {
		return fmt.Errorf("models: must name at most %d models", credential.MaxKeyModels)
	}
	for _, name := range names {
		if name == "" || len(name) > maxExportedModel || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("models: invalid name %.50q; want 1 to %d printable characters", name, maxExportedModel)
		}
	}
	return nil
}
