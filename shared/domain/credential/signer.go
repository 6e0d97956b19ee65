package credential

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// signerLife is how long a key signs JWTs. All instances change keys at the same time, because the keys are derived
// from the service's secret and the time.
const signerLife = 30 * 24 * time.Hour

// JWK is the public part of a signing key (RFC 8037).
type JWK struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// newJWK names the key by its thumbprint (RFC 7638).
func newJWK(key ed25519.PublicKey) JWK {
	x := base64.RawURLEncoding.EncodeToString(key)
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return JWK{"OKP", "Ed25519", x, base64.RawURLEncoding.EncodeToString(thumbprint[:]), "sig", "EdDSA"}
}

func (m *Minter) period() int64 { return m.Now().Unix() / int64(signerLife/time.Second) }

func (m *Minter) signer(ctx context.Context, period int64) (ed25519.PrivateKey, error) {
	secret, err := m.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("credential: read the secret of signing keys: %w", err)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "JWT of client tokens, "+strconv.FormatInt(period, 10), ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("credential: derive a signing key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// KeySet returns the public keys that verify JWTs: the current key, and its neighbors for verifiers that cache the
// set and for instances whose clock differs.
func (m *Minter) KeySet(ctx context.Context) ([]JWK, error) {
	var keys []JWK
	for _, shift := range []int64{0, -1, 1} {
		signer, err := m.signer(ctx, m.period()+shift)
		if err != nil {
			return nil, err
		}
		keys = append(keys, newJWK(signer.Public().(ed25519.PublicKey)))
	}
	return keys, nil
}
