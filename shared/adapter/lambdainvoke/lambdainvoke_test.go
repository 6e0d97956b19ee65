package lambdainvoke_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"cutroom/shared/adapter/lambdainvoke"
	"cutroom/shared/platform/awsclient"
)

// answers is a fake Lambda that sends its responses in order.
type answers struct {
	codes []string // error codes, or "" to start the function
	asked []string
}

var statuses = map[string]int{
	"": http.StatusAccepted, "TooManyRequestsException": http.StatusTooManyRequests,
	"ServiceException":          http.StatusInternalServerError,
	"ResourceNotFoundException": http.StatusNotFound,
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	signed, _, _ := strings.Cut(r.Header.Get("Authorization"), ", SignedHeaders=")
	a.asked = append(a.asked, strings.Join([]string{
		r.Method, r.RequestURI, r.Header.Get("X-Amz-Invocation-Type"), r.Header.Get("X-Amz-Security-Token"), signed,
		string(body),
	}, " "))
	code := ""
	if len(a.codes) > 0 {
		code, a.codes = a.codes[0], a.codes[1:]
	}
	if code != "" {
		w.Header().Set("X-Amzn-Errortype", code+":http://internal.amazon.com/")
	}
	w.WriteHeader(statuses[code])
}

func config(t *testing.T, handler http.Handler) aws.Config {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-north-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "session"),
		BaseEndpoint: &server.URL,
	}
}

func TestRequestMatchesSDKRequest(t *testing.T) {
	for _, name := range []string{"cutroom-dev-wake", "arn:aws:lambda:eu-north-1:123456789012:function:cutroom-dev-wake"} {
		got, want := &answers{}, &answers{}
		if err := lambdainvoke.NewFunction(config(t, got), name, time.Now).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := sdk.NewFromConfig(config(t, want)).Invoke(t.Context(),
			&sdk.InvokeInput{FunctionName: &name, InvocationType: types.InvocationTypeEvent}); err != nil {
			t.Fatal(err)
		}
		if decoded(got.asked[0]) != decoded(want.asked[0]) {
			t.Errorf("sent %s\nthe SDK sent %s", got.asked[0], want.asked[0])
		}
	}
}

func decoded(request string) string { return strings.ReplaceAll(request, "%3A", ":") }

func TestStartIsRetried(t *testing.T) {
	for _, c := range []struct {
		codes string
		asked int
		err   string
	}{
		{"", 1, ""},
		{"TooManyRequestsException", 2, ""},
		{"ServiceException ServiceException", 3, ""},
		{"ResourceNotFoundException", 1, "ResourceNotFoundException"},
		{strings.Repeat("ServiceException ", 10), awsclient.Attempts, "ServiceException"},
	} {
		t.Run(c.codes, func(t *testing.T) {
			t.Parallel()
			cloud := &answers{codes: strings.Fields(c.codes)}
			err := lambdainvoke.NewFunction(config(t, cloud), "wake", time.Now).Start(t.Context())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) ||
				len(cloud.asked) != c.asked {
				t.Errorf("%v after %d attempts, want %q after %d", err, len(cloud.asked), c.err, c.asked)
			}
		})
	}
}

func TestStartEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cloud := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusInternalServerError)
	})
	if err := lambdainvoke.NewFunction(config(t, cloud), "wake", time.Now).Start(ctx); err == nil {
		t.Error("the function was started")
	}
}
