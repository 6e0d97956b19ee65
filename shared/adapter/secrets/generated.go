package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"cutroom/shared/platform/awsclient"
)

const Unset = "unset"

// firstVersion is the version id of the first value. Secrets Manager accepts only one value for it.
const firstVersion = "cutroom-the-first-one-that-fills-it-wins"

// Generated is a secret that is filled by the first program that needs it. A role needs
// secretsmanager:GetSecretValue and secretsmanager:PutSecretValue on it.
type Generated struct {
	client *secretsmanager.Client
	id     string
}

func NewGenerated(config aws.Config, id string) *Generated {
	return &Generated{client: newClient(config), id: id}
}

// LoadOrMake returns the secret's value. If the value is Unset, it stores the result of the function `make`. If
// several programs do so concurrently, all of them return the value of the first.
func (k *Generated) LoadOrMake(ctx context.Context, make func() ([]byte, error)) ([]byte, error) {
	text, err := read(ctx, k.client, k.id)
	if err != nil || text != Unset {
		return []byte(text), err
	}
	made, err := make()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err = k.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &k.id, ClientRequestToken: aws.String(firstVersion), SecretString: aws.String(string(made)),
	})
	var taken *types.ResourceExistsException
	if err != nil && !errors.As(err, &taken) {
		return nil, fmt.Errorf("secretsmanager: fill a secret: %w", err)
	}
	// Another program may have stored a value, so read the current value.
	if text, err = read(ctx, k.client, k.id); err == nil && text == Unset {
		err = errors.New("secretsmanager: a filled secret is unset again")
	}
	return []byte(text), err
}
