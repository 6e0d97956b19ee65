package functions_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/awstest"
)

func md5Of(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}

func makeSecret(t *testing.T, cloud *awstest.Cloud) string {
	t.Helper()
	made, err := secretsmanager.NewFromConfig(cloud.Config()).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("cursors"), SecretString: aws.String("the secret of these tests"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return *made.ARN
}

// store writes a blob to the bucket.
func (w *world) store(t *testing.T, name string, content []byte) {
	t.Helper()
	if _, err := w.bucket.Put(t.Context(), name, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// stored returns a blob; nil if there is none.
func (w *world) stored(t *testing.T, name string) []byte {
	t.Helper()
	r, err := w.bucket.Open(t.Context(), name, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
