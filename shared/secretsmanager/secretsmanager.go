// Package secretsmanager reads secrets from AWS Secrets Manager. A role needs
// secretsmanager:GetSecretValue on each secret that it reads.
package secretsmanager

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"cutroom/shared/awsclient"
)

// Secret is one secret, which is read when it is first asked for and then kept
// for the life of the process: reading it earlier would lengthen every start, and
// a secret that is replaced must be taken up by new processes.
type Secret struct {
	client *secretsmanager.Client
	id     string

	mu    sync.Mutex
	value []byte
}

// NewSecret makes a secret from its ARN or name.
func NewSecret(config aws.Config, id string) *Secret {
	return &Secret{id: id, client: secretsmanager.NewFromConfig(config, func(o *secretsmanager.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(0)
	})}
}

// Value gives the secret's text. A failure is not kept: the next call tries again.
func (s *Secret) Value(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != nil {
		return s.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	got, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.id})
	if err != nil {
		return nil, fmt.Errorf("secretsmanager: read a secret: %w", err)
	}
	if aws.ToString(got.SecretString) == "" {
		return nil, errors.New("secretsmanager: the secret has no text")
	}
	s.value = []byte(*got.SecretString)
	return s.value, nil
}
