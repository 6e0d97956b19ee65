package c2pa_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/c2patest"
)

// made returns a PEM certificate for the key, signed by an authority or by the key itself.
func made(t *testing.T, key crypto.Signer, from, to time.Time, bySelf bool) []byte {
	t.Helper()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"An authority"}}, NotBefore: from, NotAfter: to,
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("an authority"),
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{Organization: []string{"A studio"}}, NotBefore: from, NotAfter: to,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, SubjectKeyId: []byte("a studio"),
		ExtKeyUsage:        []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection},
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{{1, 3, 6, 1, 4, 1, 62558, 2, 1}},
	}
	parent, parentKey := authority, crypto.Signer(authorityKey)
	if bySelf {
		parent, parentKey = leaf, key
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSupportedIdentitiesSign(t *testing.T) {
	t.Parallel()
	library := c2patest.Library(t)
	edwards, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, twisted, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		key      crypto.Signer
		bySelf   bool
		accepted bool
	}{
		"P-256": {newKey(t, elliptic.P256()), false, true}, "P-384": {newKey(t, elliptic.P384()), false, true},
		"Ed25519": {twisted, false, true}, "RSA": {edwards, false, true},
		"signed by itself": {newKey(t, elliptic.P256()), true, false},
	} {
		text := made(t, c.key, now.Add(-time.Hour), now.Add(time.Hour), c.bySelf)
		who, err := c2pa.ParseIdentity(text, text, now, rand.Reader)
		if err != nil || who.Name() != "A studio" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		signer := c2pa.New(c2pa.Config{
			Library: library, Identity: who, Now: time.Now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err := signer.Check(t.Context(), t.TempDir()); (err == nil) != c.accepted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error does not reveal the key.
func TestInvalidIdentityIsRejected(t *testing.T) {
	t.Parallel()
	now := time.Now()
	key := newKey(t, elliptic.P256())
	good := made(t, key, now.Add(-time.Hour), now.Add(time.Hour), false)
	other := made(t, newKey(t, elliptic.P256()), now.Add(-time.Hour), now.Add(time.Hour), false)
	for name, c := range map[string]struct {
		certificates, key []byte
		want              string
	}{
		"none":                   {nil, good, "no PEM certificate"},
		"no key":                 {good, []byte("ck_secret"), "no PEM private key"},
		"another identity's key": {good, other, "does not match the first certificate"},
		"expired":                {made(t, key, now.Add(-2*time.Hour), now.Add(-time.Hour), false), good, "expired at"},
		"early":                  {made(t, key, now.Add(time.Hour), now.Add(2*time.Hour), false), good, "not valid before"},
		"a broken key":           {good, []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"), "invalid private key"},
		"a weak curve":           {made(t, newKey(t, elliptic.P224()), now, now, false), good, "does not match"},
		"a broken anchor":        {[]byte("-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n"), good, "invalid certificate"},
	} {
		_, err := c2pa.ParseIdentity(c.certificates, c.key, now, rand.Reader)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The file was signed while the certificate was still valid.
func TestExpiredCertificateIsReported(t *testing.T) {
	t.Parallel()
	now := time.Now()
	text := made(t, newKey(t, elliptic.P256()), now.Add(-2*time.Hour), now.Add(-time.Hour), false)
	who, err := c2pa.ParseIdentity(text, text, now.Add(-90*time.Minute), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := c2pa.New(c2pa.Config{
		Library: c2patest.Library(t), Identity: who, Now: time.Now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err := signer.Check(t.Context(), t.TempDir()); err == nil {
		t.Error("an image with invalid credentials was signed")
	}
}
