package secrets_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
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
		t.Errorf("before the first use: %v", calls)
	}
	for range 3 {
		if value, err := secret.Value(t.Context()); err != nil || string(value) != "of the cursors" {
			t.Errorf("got %q, %v", value, err)
		}
	}
	if calls := proxy.Calls(); len(calls) != 1 {
		t.Errorf("calls: %v", calls)
	}
	if value, err := secrets.NewSecret(cloud.Config(), "none").Value(t.Context()); err == nil {
		t.Errorf("a missing secret: %q", value)
	}
}

func TestUpstreamKeysAreResolved(t *testing.T) {
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
	// After a key is replaced, the new key is read.
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

// If several programs fill a secret concurrently, they all use the same version id, so AWS lets only one of them win.
// The local AWS does not enforce this.
func TestSecretIsFilledOnce(t *testing.T) {
	cloud := awstest.Start(t)
	arn := cloud.MakeSecret(t, "identity", secrets.Unset)
	for _, made := range []string{"an identity", "another"} {
		secret := secrets.NewGenerated(cloud.Config(), arn)
		text, err := secret.LoadOrMake(t.Context(), func() ([]byte, error) { return []byte(made), nil })
		if err != nil || string(text) != "an identity" {
			t.Errorf("got %q, %v", text, err)
		}
	}
}

func TestSecondProgramGetsFirstSecret(t *testing.T) {
	text, version := secrets.Unset, ""
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetSecretValue") {
			_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": text}) // fails after a disconnect
			return
		}
		var put struct{ ClientRequestToken string }
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			t.Error(err)
		}
		text, version = "the first one's", put.ClientRequestToken
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type": "ResourceExistsException", "message": "A resource with that ID already exists."}`)
	}))
	defer manager.Close()
	config := aws.Config{Region: "eu-central-1", BaseEndpoint: &manager.URL,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
	secret := secrets.NewGenerated(config, "identity")
	got, err := secret.LoadOrMake(t.Context(), func() ([]byte, error) { return []byte("mine"), nil })
	if err != nil || string(got) != "the first one's" {
		t.Errorf("got %q, %v", got, err)
	}
	// AWS accepts 32 to 64 characters.
	if len(version) < 32 || len(version) > 64 {
		t.Errorf("the version is %q", version)
	}
}
