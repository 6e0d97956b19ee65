package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// Secrets derives each account's signing secret from the service's own secret, so that signing
// secrets need not be stored.
type Secrets struct {
	service func(context.Context) ([]byte, error)
}

func NewSecrets(service []byte) Secrets {
	return Secrets{func(context.Context) ([]byte, error) { return service, nil }}
}

// NewSecretsFrom calls the function service on every use. The function should cache its result.
func NewSecretsFrom(service func(context.Context) ([]byte, error)) Secrets { return Secrets{service} }

const secretPrefix = "whsec_"

// Of returns a secret in the format of Standard Webhooks: "whsec_" followed by 32 bytes in Base64.
func (s Secrets) Of(ctx context.Context, account string) (string, error) {
	key, err := s.key(ctx, account)
	if err != nil {
		return "", err
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key), nil
}

func (s Secrets) key(ctx context.Context, account string) ([]byte, error) {
	service, err := s.service(ctx)
	if err != nil {
		return nil, fmt.Errorf("webhook: read the service's secret: %w", err)
	}
	mac := hmac.New(sha256.New, service)
	// The prefix separates this use of the service's secret from other uses.
	mac.Write([]byte("webhooks\x00" + account))
	return mac.Sum(nil), nil
}

// Sign returns "v1," followed by the HMAC-SHA256 of the message's id, its time in Unix seconds and
// its body, joined by dots.
func Sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
