package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cutroom/shared/platform/durable"
	"cutroom/shared/service/provenance"
)

// File keeps an identity in a file, which only its owner can read. One program uses it at
// a time.
type File string

// Kept implements [Keeper].
func (f File) Kept(_ context.Context, make func() ([]byte, error)) ([]byte, error) {
	text, kept, err := f.read(make)
	if err != nil || kept {
		return text, err
	}
	return text, durable.Write(string(f), bytes.NewReader(text), nil)
}

// read returns what is kept, and otherwise what make makes.
func (f File) read(make func() ([]byte, error)) (text []byte, kept bool, err error) {
	if text, err = os.ReadFile(string(f)); !errors.Is(err, fs.ErrNotExist) {
		return text, true, err
	}
	text, err = make()
	return text, false, err
}

// Certificates returns the certificates of the identity that is kept, in PEM; none if no
// identity was made yet.
func (f File) Certificates(context.Context) ([]string, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	certificates, err := provenance.Anchors(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f, err)
	}
	return []string{certificates}, nil
}

// ReadOnly is a file of which an identity is read. Where there is none, one is made and not
// kept, for who only tries what would be.
type ReadOnly File

// Kept implements [Keeper].
func (f ReadOnly) Kept(_ context.Context, make func() ([]byte, error)) ([]byte, error) {
	text, _, err := File(f).read(make)
	return text, err
}
