package secrets_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/service/gateway/upstream"
	"cutroom/shared/testkit/awstest"
)

func TestSecretIsReadOnce(t *testing.T) {
	cloud := awstest.Start(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	arn := cloud.MakeSecret(t, "cursors", "of the cursors")
	secret := secrets.NewSecret(proxy.Config(), arn)
	if calls := proxy.Calls(); len(calls) != 0 {
		t.Errorf("before it was asked for: %v", calls)
	}
	for range 3 {
		if value, err := secret.Value(t.Context()); err != nil || string(value) != "of the cursors" {
			t.Errorf("%q, %v", value, err)
		}
	}
	if calls := proxy.Calls(); len(calls) != 1 {
		t.Errorf("calls: %v", calls)
	}
	if value, err := secrets.NewSecret(cloud.Config(), "none").Value(t.Context()); err == nil {
		t.Errorf("a secret that is not there: %q", value)
	}
}

func TestUpstreamKeys(t *testing.T) {
	cloud := awstest.Start(t)
	keys := cloud.MakeSecret(t, "keys", `{"first": "key one", "second": "key two", "empty": ""}`)
	plain := cloud.MakeSecret(t, "plain", "key three")
	upstreams := secrets.NewUpstreams(cloud.Config(), upstream.LocalSecrets{})
	t.Setenv("SAMPLE_KEY", "key four")
	for reference, want := range map[string]string{
		"secretsmanager:" + keys + "#second": "key two", "secretsmanager:keys#first": "key one", "secretsmanager:" +
			plain: "key three", "env:SAMPLE_KEY": "key four",
		"secretsmanager:" + keys + "#third": "", "secretsmanager:" + keys + "#empty": "", "secretsmanager:" + plain +
			"#first": "", "secretsmanager:none": "",
	} {
		if key, err := upstreams.Secret(t.Context(), reference); key != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", reference, key, err, want)
		}
	}
	// A replaced key is read anew.
	_, err := secretsmanager.NewFromConfig(cloud.Config()).PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: &plain, SecretString: aws.String("key five"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if key, err := upstreams.Secret(t.Context(), "secretsmanager:"+plain); err != nil || key != "key five" {
		t.Errorf("exchanged: %q, %v", key, err)
	}
}
