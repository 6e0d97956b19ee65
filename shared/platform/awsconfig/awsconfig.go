// Package awsconfig configures the AWS clients of functions. Lambda puts the region and the role's
// credentials into the environment, and this package reads nothing else. The SDK's loader also
// looks for profiles, metadata services and single sign-on, which a function never has: it doubles
// a function's start time, and adds a quarter to the size of its program.
package awsconfig

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// FromEnvironment reads AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN,
// and the endpoints of a local AWS, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. It fails
// without a region or credentials.
func FromEnvironment(getenv func(string) string) (aws.Config, error) {
	credentials := aws.Credentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"),
		Source:       "environment",
	}
	region := getenv("AWS_REGION")
	if region == "" {
		return aws.Config{}, errors.New("AWS_REGION: it is not set")
	}
	if !credentials.HasKeys() {
		return aws.Config{}, errors.New("AWS_ACCESS_KEY_ID: it is not set, or AWS_SECRET_ACCESS_KEY is not")
	}
	config := aws.Config{
		Region: region,
		// The credentials of a function are valid for the life of its process.
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

// endpoints looks up the endpoints of single services for the SDK's clients.
type endpoints struct{ getenv func(string) string }

// GetServiceBaseEndpoint returns the endpoint of a service, such as "DynamoDB" or
// "Secrets Manager". The SDK calls it.
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	url := e.getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return url, url != "", nil
}
