// Package awsconfig configures the functions' AWS clients from the environment. The SDK's own loader would double a
// function's startup time and add a quarter to its size.
package awsconfig

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// FromEnvironment reads AWS_REGION, the credentials, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. It fails
// without a region or credentials.
func FromEnvironment(getenv func(string) string) (aws.Config, error) {
	credentials := aws.Credentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"),
		Source:       "environment",
	}
	region := getenv("AWS_REGION")
	if region == "" {
		return aws.Config{}, errors.New("AWS_REGION: not set")
	}
	if !credentials.HasKeys() {
		return aws.Config{}, errors.New("AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY: not set")
	}
	config := aws.Config{
		Region: region,
		// A function's credentials are valid for the lifetime of its process.
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials,
				nil
		}),
		ConfigSources: []any{endpoints{getenv}},
	}
	if url := getenv("AWS_ENDPOINT_URL"); url != "" {
		config.BaseEndpoint = &url
	}
	return config, nil
}

type endpoints struct{ getenv func(string) string }

// GetServiceBaseEndpoint is called by the SDK with a service name such as "DynamoDB" or "Secrets Manager".
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	url := e.getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return url, url != "", nil
}
