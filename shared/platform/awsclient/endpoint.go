package awsclient

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Endpoint returns a service's address in the region, without a trailing slash, for calls without an SDK client.
// id is the service's SDK id, such as "Lambda". A configured endpoint takes precedence.
func Endpoint(ctx context.Context, config aws.Config, id string) (string, error) {
	for _, source := range config.ConfigSources {
		if own, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
		}); ok {
			if endpoint, found, err := own.GetServiceBaseEndpoint(ctx, id); found || err != nil {
				return strings.TrimSuffix(endpoint, "/"), err
			}
		}
	}
	if config.BaseEndpoint != nil {
		return strings.TrimSuffix(*config.BaseEndpoint, "/"), nil
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(config.Region, "cn-") {
		domain += ".cn"
	}
	return "https://" + strings.ToLower(id) + "." + config.Region + "." + domain, nil
}
