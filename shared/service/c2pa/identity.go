package c2pa

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	_ "crypto/sha512" // for 384-bit and 521-bit keys
)

// SelfMadeAge is how long self-made certificates are valid. A signature expires with its
// certificate, unless an authority has timestamped it.
const SelfMadeAge = 10 * 365 * 24 * time.Hour

// C2PA specification, 14.5.1.
var claimSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 62558, 2, 1}

// An Identity is safe for concurrent use.
type Identity struct {
	key       crypto.Signer
	leaf      *x509.Certificate
	chain     string
	algorithm string
	hash      crypto.Hash
	random    io.Reader
}

// ParseIdentity reads PEM certificates and a PEM private key (PKCS #8 or SEC 1), which may be in the same file. The
// signer's certificate must be first, and each certificate must be followed by its issuer's. It fails if the key or a
// certificate is missing, does not match, is not currently valid, or is not supported by C2PA.
func ParseIdentity(certificates, key []byte, now time.Time, random io.Reader) (*Identity, error) {
	chain, leaf, err := parseChain(certificates)
	if err != nil {
		return nil, err
	}
	i := &Identity{leaf: leaf, chain: chain, random: random}
	if i.key, err = parseKey(key); err != nil {
		return nil, err
	}
	if i.algorithm, i.hash, err = algorithmOf(i.key); err != nil {
		return nil, err
	}
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(i.key.Public()) {
		return nil, errors.New("the key does not match the first certificate")
	}
	switch {
	case leaf.IsCA:
		return nil, errors.New(
			"the first certificate is an authority's; put a signer's certificate, signed by the authority, first")
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("the certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return i, nil
}

func parseChain(text []byte) (string, *x509.Certificate, error) {
	var chain bytes.Buffer
	var leaf *x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", nil, errors.New("invalid certificate")
		}
		if leaf == nil {
			leaf = certificate
		}
		_ = pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}) // writing to a buffer cannot fail
	}
	if leaf == nil {
		return "", nil, errors.New("no PEM certificate found")
	}
	return chain.String(), leaf, nil
}

// Anchors returns the certificates in PEM data. It fails if a certificate is invalid or missing.
func Anchors(text []byte) (string, error) {
	chain, _, err := parseChain(text)
	return chain, err
}

// Identities returns each identity's certificate chain in PEM data: the signer's certificate,
// followed by its authorities. It fails if a certificate is invalid or missing.
func Identities(text []byte) (chains []string, err error) {
	certificates, _, err := parseChain(text)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode([]byte(certificates)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("invalid certificate")
		}
		if len(chains) == 0 || !certificate.IsCA {
			chains = append(chains, "")
		}
		chains[len(chains)-1] += string(pem.EncodeToMemory(block))
	}
	return chains, nil
}

// SelfMade reports whether NewIdentity created the PEM certificates.
func SelfMade(certificates string) bool {
	_, leaf, err := parseChain([]byte(certificates))
	return err == nil && leaf.Issuer.CommonName == authorityName
}

const authorityName = "Self-made authority for Content Credentials"

// parseKey's errors do not reveal the key.
func parseKey(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if signer, ok := key.(crypto.Signer); ok && err == nil {
				return signer, nil
			}
			return nil, errors.New("invalid private key")
		case "EC PRIVATE KEY":
			key, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("invalid private key")
			}
			return key, nil
		}
	}
	return nil, errors.New("no PEM private key found (must be PKCS #8, without a password)")
}

func algorithmOf(key crypto.Signer) (name string, hash crypto.Hash, err error) {
	switch public := key.Public().(type) {
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			return "es256", crypto.SHA256, nil
		case elliptic.P384():
			return "es384", crypto.SHA384, nil
		case elliptic.P521():
			return "es512", crypto.SHA512, nil
		}
	case ed25519.PublicKey:
		return "ed25519", 0, nil
	case *rsa.PublicKey:
		return "ps256", crypto.SHA256, nil
	}
	return "", 0, errors.New("C2PA does not support this type of key; use a P-256 key")
}

func (i *Identity) Name() string {
	if len(i.leaf.Subject.Organization) > 0 {
		return i.leaf.Subject.Organization[0]
	}
	return i.leaf.Subject.CommonName
}

func (i *Identity) Expires() time.Time { return i.leaf.NotAfter }
func (i *Identity) Algorithm() string  { return i.algorithm }

func (i *Identity) Chain() string { return i.chain }

// Sign returns a signature in COSE format (RFC 9053).
func (i *Identity) Sign(data []byte) ([]byte, error) {
	digest := data
	var options crypto.SignerOpts = i.hash
	if i.hash != 0 {
		sum := i.hash.New()
		sum.Write(data)
		digest = sum.Sum(nil)
	}
	switch key := i.key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(i.random, key, digest)
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		size := (key.Curve.Params().BitSize + 7) / 8
		signature := make([]byte, 2*size)
		r.FillBytes(signature[:size])
		s.FillBytes(signature[size:])
		return signature, nil
	case *rsa.PrivateKey:
		options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: i.hash}
	}
	signature, err := i.key.Sign(i.random, digest, options)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return signature, nil
}

// NewIdentity creates an identity for operators without a certificate. It discards the authority's key
// immediately. Verifiers can see that the same service signed two files, but not who operates it.
func NewIdentity(now time.Time, random io.Reader) ([]byte, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	authority, err := template(now, random, authorityName)
	if err != nil {
		return nil, err
	}
	authority.IsCA, authority.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	leaf, err := template(now, random, "Self-made key for Content Credentials")
	if err != nil {
		return nil, err
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} // accepted by every verifier
	leaf.UnknownExtKeyUsage = []asn1.ObjectIdentifier{claimSigning}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	id := sha256.Sum256(public)
	leaf.SubjectKeyId = id[:20]
	authorityDER, err := x509.CreateCertificate(random, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	if authority, err = x509.ParseCertificate(authorityDER); err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	leafDER, err := x509.CreateCertificate(random, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	var out bytes.Buffer
	for _, block := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: leafDER}, {Type: "CERTIFICATE", Bytes: authorityDER},
		{Type: "PRIVATE KEY", Bytes: secret},
	} {
		_ = pem.Encode(&out, block) // writing to a buffer cannot fail
	}
	return out.Bytes(), nil
}

func template(now time.Time, random io.Reader, name string) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, fmt.Errorf("generate a serial number: %w", err)
	}
	serial[0] &= 0x7f // keep the serial number positive
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{Organization: []string{"Cutroom"}, CommonName: name},
		// Verifiers' clocks may be slow.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(SelfMadeAge), BasicConstraintsValid: true,
	}, nil
}
