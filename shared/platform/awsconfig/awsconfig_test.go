package awsconfig_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/platform/awsconfig"
)

func TestClientsFollowTheEnvironment(t *testing.T) {
	var asked []*http.Request
	serve := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Server", name)
			asked = append(asked, r)
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			fmt.Fprint(w, "{}")
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	all, one := serve("all"), serve("one")
	for _, c := range []struct{ server, endpoint string }{
		{"all", "AWS_ENDPOINT_URL=" + all}, {"one", "AWS_ENDPOINT_URL_DYNAMODB=" + one},
	} {
		config, err := awsconfig.FromEnvironment(environment(
			"AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
			"AWS_SESSION_TOKEN=session", c.endpoint))
		if err != nil {
			t.Fatal(err)
		}
		asked = nil
		if _, err := dynamodb.NewFromConfig(config).ListTables(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || asked[0].Header.Get("X-Server") != c.server ||
			asked[0].Header.Get("X-Amz-Security-Token") != "session" {
			t.Fatalf("%s: called %v", c.endpoint, asked)
		}
		if signed := asked[0].Header.Get("Authorization"); !strings.Contains(signed, "Credential=AKIDEXAMPLE/") ||
			!strings.Contains(signed, "/eu-north-1/dynamodb/") {
			t.Errorf("%s: signed %s", c.endpoint, signed)
		}
	}
}

func TestIncompleteEnvironmentIsRejected(t *testing.T) {
	for _, c := range []struct{ variables, err string }{
		{"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b", "AWS_REGION: not set"},
		{"AWS_REGION=a AWS_SECRET_ACCESS_KEY=b", "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY: not set"},
	} {
		if _, err := awsconfig.FromEnvironment(environment(strings.Fields(c.variables)...)); err == nil ||
			err.Error() != c.err {
			t.Errorf("%s: %v", c.variables, err)
		}
	}
}

func environment(variables ...string) func(string) string {
	return func(name string) string {
		for _, variable := range variables {
			if value, found := strings.CutPrefix(variable, name+"="); found {
				return value
			}
		}
		return ""
	}
}
