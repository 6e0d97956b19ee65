package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"cutroom/shared/platform/durable"
	"cutroom/shared/service/c2pa"
)

// File keeps an identity in a file that only its owner can read. Only one program at a time may use it.
//
// A second file, with -signers in its name, holds the certificates of this and earlier identities, but no key.
// With it the service recognizes its own signatures even after a user has moved the first file away.
type File string

func (f File) LoadOrMake(_ context.Context, make func() ([]byte, error)) ([]byte, error) {
	text, kept, err := f.read(make)
	if err != nil {
		return text, err
	}
	if !kept {
		if err := durable.Write(string(f), bytes.NewReader(text), nil); err != nil {
			return text, err
		}
	}
	return text, f.addSigner(text)
}

// addSigner adds an identity's certificates to the second file. It ignores an invalid identity, which the next read
// reports.
func (f File) addSigner(identity []byte) error {
	certificates, err := c2pa.Anchors(identity)
	if err != nil {
		return nil
	}
	signers, err := f.signers()
	if err != nil || slices.Contains(signers, certificates) {
		return err
	}
	return durable.Write(f.signersFile(), strings.NewReader(strings.Join(append(signers, certificates), "")), nil)
}

func (f File) signersFile() string { return strings.TrimSuffix(string(f), ".pem") + "-signers.pem" }

func (f File) signers() ([]string, error) {
	text, err := os.ReadFile(f.signersFile())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(text)) == 0 {
		return nil, nil // no identity yet, or its files were removed
	}
	if err != nil {
		return nil, err
	}
	signers, err := c2pa.Identities(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.signersFile(), err)
	}
	return signers, nil
}

func (f File) read(make func() ([]byte, error)) (text []byte, kept bool, err error) {
	if text, err = os.ReadFile(string(f)); !errors.Is(err, fs.ErrNotExist) {
		return text, true, err
	}
	text, err = make()
	return text, false, err
}

// Certificates returns nothing until the first identity has been created.
func (f File) Certificates(context.Context) ([]string, error) {
	signers, err := f.signers()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return signers, nil
	}
	if err != nil {
		return nil, err
	}
	certificates, err := c2pa.Anchors(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f, err)
	}
	if !slices.Contains(signers, certificates) {
		signers = append(signers, certificates)
	}
	return signers, nil
}

// ReadOnly reads an identity, for trial runs. If the file does not exist, it makes an identity without storing it.
type ReadOnly File

func (f ReadOnly) LoadOrMake(_ context.Context, make func() ([]byte, error)) ([]byte, error) {
	text, _, err := File(f).read(make)
	return text, err
}
