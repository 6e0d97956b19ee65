package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

const kind = "secretsmanager:"

type Others interface {
	Secret(ctx context.Context, reference string) (string, error)
}

// Upstreams resolves references (see catalog.Upstream): "secretsmanager:ARN#FIELD" is a field of
// the JSON object in a secret, and "secretsmanager:ARN" is the secret's entire value.
type Upstreams struct {
	client *secretsmanager.Client
	others Others
}

func NewUpstreams(config aws.Config, others Others) *Upstreams {
	return &Upstreams{newClient(config), others}
}

// Secret reads the secret on every call, because a key may be replaced.
func (u *Upstreams) Secret(ctx context.Context, reference string) (string, error) {
	name, here := strings.CutPrefix(reference, kind)
	if !here {
		return u.others.Secret(ctx, reference)
	}
	id, field, hasField := strings.Cut(name, "#")
	text, err := read(ctx, u.client, id)
	if err != nil || !hasField {
		return text, err
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		// Omit the decoder's error, because it would reveal part of the secret.
		return "", errors.New("secretsmanager: the secret is not a JSON object of strings")
	}
	if fields[field] == "" {
		return "", fmt.Errorf("secretsmanager: the secret has no field %q", field)
	}
	return fields[field], nil
}
