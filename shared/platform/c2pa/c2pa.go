// Package c2pa writes and verifies Content Credentials (c2pa.org), the signed record of a file's
// origin, with the library libc2pa_c.
//
// That library parses untrusted files. So every call starts a helper, which is this program in a
// [sandbox.Sandbox]. The helper loads the library, receives open files, and exits. The signing key stays in the
// server: a helper requests a signature through a pipe, and gets only one. This package never uses the network.
package c2pa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/platform/c2pa/helper"
	"cutroom/shared/platform/c2pa/libc2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/sandbox/libraries"
)

var (
	ErrNone = errors.New("c2pa: the file has no Content Credentials")
	// ErrElsewhere means that the credentials are not in the file but at an address that the file's creator chose.
	ErrElsewhere = errors.New("c2pa: the file's Content Credentials are on a server, which is not called")
	// ErrLost means that the file made the helper crash or use too much memory or time.
	ErrLost = errors.New("c2pa: the helper exited")
)

// Refusal is the library's message about why it rejects a file.
type Refusal struct{ Problem string }

func (e *Refusal) Error() string { return "c2pa: " + e.Problem }

// Library is this machine's libc2pa_c. It is safe for concurrent use.
type Library struct {
	box   *sandbox.Sandbox
	self  sandbox.Program
	found libraries.Found
	// spare is the address space available for a helper's work, in bytes.
	spare int64
}

// Find loads the library from the path. If that is "", it searches this program's folder, the
// folder lib next to that, and the system's library folders.
func Find(ctx context.Context, box *sandbox.Sandbox, path string) (*Library, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	self, err := sandbox.Self(ctx)
	if err != nil {
		return nil, err
	}
	if path == "" {
		path = libraryPath(os.Executable)
	} else if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("c2pa: %w", err)
	}
	l := &Library{box: box, self: self, spare: spareSpace}
	l.found, err = self.Search(ctx, environment(""), helper.SearchName, path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("c2pa: %w", err)
	case l.found.Problem != "":
		return nil, errors.New("c2pa: " + l.found.Problem)
	}
	return l, nil
}

// libraryPath returns the path of a library next to this program. If there is none, it returns only the name, for the
// system to search.
func libraryPath(executable func() (string, error)) string {
	program, err := executable()
	if err != nil {
		return libc2pa.Name()
	}
	folder := filepath.Dir(program)
	for _, path := range []string{folder, filepath.Join(folder, "..", "lib")} {
		path = filepath.Join(path, libc2pa.Name())
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return libc2pa.Name()
}

func (l *Library) String() string { return l.found.Version }

// Within sets the limit on a helper's address space, in bytes, for machines with less memory.
func (l *Library) Within(spare int64) *Library {
	bounded := *l
	bounded.spare = spare
	return &bounded
}

func environment(folder string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=2", "MALLOC_ARENA_MAX=2", "TMPDIR=" + folder}
}

// settings makes the library verify every file that it reads or signs, without network access. anchors is PEM, or "".
func settings(anchors string) string {
	all := map[string]any{
		"version": 1,
		"verify": map[string]any{
			"verify_after_reading": true, "verify_after_sign": true, "verify_trust": true, "ocsp_fetch": false,
			"remote_manifest_fetch": false,
		},
		"core":    map[string]any{"allowed_network_hosts": []string{}},
		"builder": map[string]any{"thumbnail": map[string]any{"enabled": false}},
	}
	if anchors != "" {
		all["trust"] = map[string]any{"user_anchors": anchors}
	}
	text, _ := json.Marshal(all) // encoding strings and bools cannot fail
	return string(text)
}

// Read verifies a file and returns the library's report, a JSON object as described in reports.md
// of c2pa-rs. anchors contains the trusted certificates in PEM. A file whose bytes were changed is
// not an error; the report shows it. Errors: ErrNone; ErrElsewhere; ErrLost; *Refusal.
func (l *Library) Read(ctx context.Context, file *os.File, mime, anchors string) ([]byte, error) {
	answer, err := l.run(ctx, call{
		order: helper.Order{Settings: settings(anchors), MIME: mime}, files: []*os.File{file},
	})
	return []byte(answer.Report), err
}

type Ingredient struct {
	// JSON describes the file as documented for c2pa-rs's manifest definition.
	JSON string
	MIME string
	// File is open for reading. Its Content Credentials become part of the new ones.
	File *os.File
}

type Signing struct {
	// Manifest is a c2pa-rs manifest definition in JSON.
	Manifest string
	MIME     string
	// From is open for reading. To is empty, and open for reading and writing.
	From, To    *os.File
	Ingredients []Ingredient
	// Folder is an empty folder for the helper's temporary files.
	Folder string
	Signer Signer
}

// A Signer's key never leaves the process.
type Signer interface {
	// Algorithm returns the algorithm's C2PA name, such as "es256".
	Algorithm() string
	// Chain returns the certificates in PEM, the signer's first.
	Chain() string
	// Sign returns the COSE signature (RFC 9053) for the data.
	Sign(data []byte) ([]byte, error)
}

// These are the library's numbers for the algorithms.
var algorithms = map[string]int32{"es256": 0, "es384": 1, "es512": 2, "ps256": 3, "ps384": 4, "ps512": 5, "ed25519": 6}

// Sign copies a file, adds Content Credentials and verifies them. Errors: ErrLost; *Refusal.
func (l *Library) Sign(ctx context.Context, s Signing) error {
	algorithm, known := algorithms[s.Signer.Algorithm()]
	if !known {
		return fmt.Errorf("c2pa: unknown algorithm %q", s.Signer.Algorithm())
	}
	from, err := s.From.Stat()
	if err != nil {
		return fmt.Errorf("c2pa: %w", err)
	}
	c := call{
		order: helper.Order{
			Sign: true, Settings: settings(""), MIME: s.MIME, Manifest: s.Manifest, Algorithm: algorithm,
			Chain: s.Signer.Chain(),
		},
		files: []*os.File{s.From, s.To}, folder: s.Folder, most: from.Size() + MaxGrowth, sign: s.Signer.Sign,
	}
	for _, part := range s.Ingredients {
		c.order.Ingredients = append(c.order.Ingredients, helper.Ingredient{JSON: part.JSON, MIME: part.MIME})
		c.files = append(c.files, part.File)
	}
	_, err = l.run(ctx, c)
	return err
}
