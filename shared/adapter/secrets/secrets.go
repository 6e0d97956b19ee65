// Package secrets reads secrets from AWS Secrets Manager. A role needs secretsmanager:GetSecretValue on each secret.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"cutroom/shared/platform/awsclient"
)

// Secret is read on first use and cached for the lifetime of the process. If the secret is
// replaced, only new processes see the new value.
type Secret struct {
	client *secretsmanager.Client
	id     string

	mu    sync.Mutex
	value []byte
}

func NewSecret(config aws.Config, id string) *Secret {
	return &Secret{client: newClient(config), id: id}
}

func newClient(config aws.Config) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(config, func(o *secretsmanager.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, 0)
	})
}

// Value does not cache errors, so the next call tries again.
func (s *Secret) Value(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value == nil {
		text, err := read(ctx, s.client, s.id)
		if err != nil {
			return nil, err
		}
		s.value = []byte(text)
	}
	return s.value, nil
}

func read(ctx context.Context, client *secretsmanager.Client, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	got, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if err != nil {
		return "", fmt.Errorf("secretsmanager: read a secret: %w", err)
	}
	if aws.ToString(got.SecretString) == "" {
		return "", errors.New("secretsmanager: the secret has no text")
	}
	return *got.SecretString, nil
}
