// Package helper turns this program into a helper for package c2pa, or into the search for the
// library. It imports little, so that Go initializes it early; see package launcher.
package helper

import (
	"encoding/json"
	"errors"
	"os"

	"cutroom/shared/platform/c2pa/libc2pa"
	"cutroom/shared/platform/sandbox/libraries"
)

// These first arguments start a helper or a search. The library's path follows.
const (
	Name       = "cutroom-c2pa-helper"
	SearchName = "cutroom-c2pa-search"
)

// Any program becomes a helper if it is started with a helper's argument, even a test; see package launcher.
func init() {
	if len(os.Args) != 3 {
		return
	}
	switch os.Args[1] {
	case SearchName:
		libraries.Exit("c2pa", json.NewEncoder(os.Stdout).Encode(search(os.Args[2])))
	case Name:
		libraries.Exit("c2pa", help(os.Args[2]))
	}
}

// search loads the library and records which files and how much address space it needs.
func search(path string) libraries.Found {
	library, err := libc2pa.Load(path)
	if err != nil {
		return libraries.Found{Problem: err.Error()}
	}
	return libraries.Loaded(path, library.Version(), libc2pa.Name())
}

func help(path string) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var do Order
	if err := in.Decode(&do); err != nil {
		return err
	}
	library, err := libc2pa.Load(path)
	if err != nil {
		return err
	}
	answer := Answer{Done: true}
	if do.Sign {
		err = sign(library, do, in, out)
	} else {
		answer.Report, err = library.Read(do.Settings, do.MIME, descriptor(0))
	}
	if err != nil {
		answer = Answer{
			None: errors.Is(err, libc2pa.ErrNone), Elsewhere: errors.Is(err, libc2pa.ErrElsewhere), Problem: err.Error(),
		}
	}
	return out.Encode(answer)
}

func descriptor(number int) *os.File { return os.NewFile(uintptr(3+number), "inherited") }

// sign requests the signature through standard output.
func sign(library *libc2pa.Library, do Order, in *json.Decoder, out *json.Encoder) error {
	s := libc2pa.Signing{
		Settings: do.Settings, Manifest: do.Manifest, MIME: do.MIME, From: descriptor(0), To: descriptor(1),
		Algorithm: do.Algorithm, Chain: do.Chain,
		Sign: func(data []byte) (signature []byte, err error) {
			if err := out.Encode(Answer{ToSign: data}); err != nil {
				return nil, err
			}
			err = in.Decode(&signature)
			return signature, err
		},
	}
	for i, part := range do.Ingredients {
		s.Ingredients = append(s.Ingredients, libc2pa.Ingredient{JSON: part.JSON, MIME: part.MIME, File: descriptor(2 + i)})
	}
	return library.Sign(s)
}
