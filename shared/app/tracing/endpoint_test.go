package tracing

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func TestEndpointDependsOnTheRegion(t *testing.T) {
	for want, clients := range map[string]aws.Config{
		"https://xray.eu-central-1.amazonaws.com/v1/traces":  {Region: "eu-central-1"},
		"https://xray.cn-north-1.amazonaws.com.cn/v1/traces": {Region: "cn-north-1"},
		"http://127.0.0.1:4566/v1/traces":                    {Region: "eu-central-1", BaseEndpoint: aws.String("http://127.0.0.1:4566")},
	} {
		if got, err := endpointOf(t.Context(), clients); got != want || err != nil {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
