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

// kind begins the references to secrets that are kept here.
const kind = "secretsmanager:"

// Others returns the keys that are kept elsewhere.
type Others interface {
	Secret(ctx context.Context, reference string) (string, error)
}

// Upstreams returns the keys of upstreams (see catalog.Upstream): a
// "secretsmanager:ARN#FIELD" is a field of the JSON in a secret, or all of its
// text where no field is named. What is kept elsewhere is asked for there.
type Upstreams struct {
	client *secretsmanager.Client
	others Others
}

// NewUpstreams returns one; others returns the keys that are not kept here.
func NewUpstreams(config aws.Config, others Others) *Upstreams {
	return &Upstreams{newClient(config), others}
}

// Secret returns what a reference stands for. It reads it anew each time, as a key
// may be exchanged.
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
		// The error itself would show a part of the secret.
		return "", errors.New("secretsmanager: the secret is no JSON object of texts")
	}
	if fields[field] == "" {
		return "", fmt.Errorf("secretsmanager: the secret has no field %q", field)
	}
	return fields[field], nil
}
