package signing_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/service/c2pa"
)

// When an identity is replaced, its certificates are kept and its key is deleted.
func TestReplacedIdentitiesStayKnown(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "c2pa.pem")
	newIdentity := func() ([]byte, error) { return c2pa.NewIdentity(time.Now(), rand.Reader) }
	var made, want []string
	for range 3 {
		for range 2 { // the second start finds the first one's identity
			text, err := signing.File(path).LoadOrMake(t.Context(), newIdentity)
			if err != nil {
				t.Fatal(err)
			}
			if made = append(made, string(text)); len(made)%2 == 0 && made[len(made)-1] != made[len(made)-2] {
				t.Error("another start has another identity")
			}
		}
		certificates, err := c2pa.Anchors([]byte(made[len(made)-1]))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, certificates)
		wantCertificates(t, path, want)
		if err := os.Rename(path, filepath.Join(t.TempDir(), "away")); err != nil {
			t.Fatal(err)
		}
		wantCertificates(t, path, want) // signing is now off
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil || bytes.Contains(text, []byte("PRIVATE KEY")) {
			t.Errorf("%s holds a key: %v", entry.Name(), err)
		}
	}
}

func wantCertificates(t *testing.T, path string, want []string) {
	t.Helper()
	got, err := signing.File(path).Certificates(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the certificates are\n%s\n%v, want\n%s", strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
}

func TestIdentityFromEarlierVersionIsStillKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c2pa.pem")
	text, err := c2pa.NewIdentity(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	certificates, err := c2pa.Anchors(text)
	if err != nil {
		t.Fatal(err)
	}
	wantCertificates(t, path, []string{certificates})
	if _, err := signing.File(path).LoadOrMake(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wantCertificates(t, path, []string{certificates})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantCertificates(t, path, []string{certificates})
}

func TestDamagedSignersFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c2pa.pem")
	damaged := filepath.Join(filepath.Dir(path), "c2pa-signers.pem")
	if err := os.WriteFile(damaged, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := signing.File(path).Certificates(t.Context()); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("%v, %v, want an error with its path", got, err)
	}
	if err := os.WriteFile(damaged, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantCertificates(t, path, nil)
}
