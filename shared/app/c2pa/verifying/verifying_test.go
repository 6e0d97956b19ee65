package verifying_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/app/c2pa/verifying"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/origin"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
)

func signed(t *testing.T, by *c2pa.Identity) *os.File {
	t.Helper()
	file, err := os.Open(c2patest.SignedPicture(t, by))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// The missing library is logged only once. Earlier signatures are recognized even when signing is off.
func TestReaderFindsTheLibraryLater(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	library, kept := filepath.Join(folder, "libc2pa_c.so"), signing.File(filepath.Join(folder, "c2pa.pem"))
	var log bytes.Buffer
	reader := verifying.NewReader(verifying.Config{
		Library: library, Signers: kept.Certificates, Time: await.Max, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	who, text := c2patest.NewIdentity(t)
	file := signed(t, who)
	for range 3 {
		if _, err := reader.Verify(t.Context(), file); !errors.Is(err, origin.ErrNoReader) {
			t.Errorf("without the library: %v", err)
		}
	}
	if logged := strings.Count(log.String(), "cannot be verified"); logged != 1 {
		t.Errorf("the missing library was logged %d times:\n%s", logged, &log)
	}
	if err := os.Symlink(c2patest.Path(t), library); err != nil {
		t.Fatal(err)
	}
	verify := func(file *os.File) origin.Report {
		t.Helper()
		report, err := reader.Verify(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := verify(file); r.State != origin.Valid || r.Own {
		t.Errorf("before an identity exists: %+v", r)
	}
	if err := os.WriteFile(string(kept), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(file); r.State != origin.Valid || !r.Own {
		t.Errorf("the service's own signature: %+v", r)
	}
	if err := os.WriteFile(string(kept), text[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Verify(t.Context(), file); !fault.Is(err, fault.Unavailable) || !strings.Contains(log.String(), string(kept)) {
		t.Errorf("with a damaged identity: %v; the log:\n%s", err, &log)
	}
	if err := os.WriteFile(string(kept), text, 0o600); err != nil {
		t.Fatal(err)
	}
	other, _ := c2patest.NewIdentity(t)
	if r := verify(signed(t, other)); r.State != origin.Valid || r.Own {
		t.Errorf("another's signature: %+v", r)
	}

	// The service gets another identity.
	if _, err := kept.LoadOrMake(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(string(kept)); err != nil {
		t.Fatal(err)
	}
	next, text := c2patest.NewIdentity(t)
	if _, err := kept.LoadOrMake(t.Context(), func() ([]byte, error) { return text, nil }); err != nil {
		t.Fatal(err)
	}
	for whose, who := range map[string]*c2pa.Identity{"the earlier": who, "the next": next} {
		if r := verify(signed(t, who)); r.State != origin.Valid || !r.Own {
			t.Errorf("the signature of %s identity: %+v", whose, r)
		}
	}
	if r := verify(signed(t, other)); r.State != origin.Valid || r.Own {
		t.Errorf("another service's signature, again: %+v", r)
	}
}

func TestReaderTrustsDeployerCertificates(t *testing.T) {
	t.Parallel()
	own, _ := c2patest.NewIdentity(t)
	deployer, _ := c2patest.NewIdentity(t)
	given := filepath.Join(t.TempDir(), "certificates.pem")
	reader := func(signers ...string) *verifying.Reader {
		return verifying.NewReader(verifying.Config{
			Library:      c2patest.Path(t),
			Signers:      func(context.Context) ([]string, error) { return signers, nil },
			Certificates: given, Time: await.Max, Logger: slog.New(slog.DiscardHandler),
		})
	}
	if err := os.WriteFile(given, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reader().Verify(t.Context(), signed(t, own)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a certificate in the file: %v", err)
	}
	authority := deployers(t)
	if err := os.WriteFile(given, []byte(authority.Chain()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by    *c2pa.Identity
		state string
		own   bool
	}{
		"the deployer": {authority, origin.Trusted, false}, "the service": {own, origin.Valid, true},
		"another": {deployer, origin.Valid, false},
	} {
		r, err := reader(own.Chain()).Verify(t.Context(), signed(t, c.by))
		if err != nil || r.State != c.state || r.Own != c.own {
			t.Errorf("signed by %s: %+v, %v", name, r, err)
		}
	}
}

func deployers(t *testing.T) *c2pa.Identity {
	t.Helper()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"An authority"}}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("an authority"),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{Organization: []string{"Studio"}, CommonName: "Studio"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection},
		SubjectKeyId: []byte("a studio"), BasicConstraintsValid: true,
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
	}
	var text bytes.Buffer
	for _, c := range []struct {
		what   *x509.Certificate
		public any
	}{{leaf, key.Public()}, {authority, authorityKey.Public()}} {
		der, err := x509.CreateCertificate(rand.Reader, c.what, authority, c.public, authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	_ = pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	who, err := c2pa.ParseIdentity(text.Bytes(), text.Bytes(), time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return who
}
