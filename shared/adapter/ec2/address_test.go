package ec2_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/ec2"
	"cutroom/shared/testkit/awstest"
)

// metadata is an example from the ECS Developer Guide.
const metadata = `{"DockerId": "cd189a933e5849daa93386466019ab50-2495160603", "Name": "realtime", "Networks": [
	{"NetworkMode": "awsvpc", "IPv4Addresses": ["10.0.0.61"], %s"AttachmentIndex": 0, "MACAddress": "0a:de:f6:10:51:e5"}]}`

// described returns EC2's response. Each interface has a hardware address, a private address and extra XML.
func described(interfaces ...[3]string) string {
	var items strings.Builder
	for _, one := range interfaces {
		fmt.Fprintf(&items, "<item><macAddress>%s</macAddress><privateIpAddress>%s</privateIpAddress>%s</item>",
			one[0], one[1], one[2])
	}
	return `<DescribeNetworkInterfacesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">` +
		`<networkInterfaceSet>` + items.String() + `</networkInterfaceSet></DescribeNetworkInterfacesResponse>`
}

func associated(address string) string {
	return "<association><publicIp>" + address + "</publicIp><ipOwnerId>amazon</ipOwnerId></association>"
}

// answer is a response, and a function to call before it is sent.
type answer struct {
	status int
	text   string
	before func()
}

// EC2 sends the answers in order and repeats the last one.
func inTask(t *testing.T, metadata string, answers ...answer) *ec2.TaskAddress {
	t.Helper()
	return inTaskThat(t, metadata, func() {}, answers...)
}

// inTaskThat is inTask with a function that is called on the second request for the metadata.
func inTaskThat(t *testing.T, metadata string, again func(), answers ...answer) *ec2.TaskAddress {
	t.Helper()
	mux, asked := http.NewServeMux(), 0
	mux.HandleFunc("GET /v4/5a1b", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			again()
		}
		_, _ = io.WriteString(w, metadata) // fails if the caller has disconnected
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked := []string{r.Form.Get("Action"), r.Form.Get("Filter.1.Value.1"), r.Form.Get("Filter.2.Value.1")}
		if !slices.Equal(asked, []string{"DescribeNetworkInterfaces", "0a:de:f6:10:51:e5", "10.0.0.61"}) {
			t.Errorf("EC2 received %v", asked)
		}
		if !strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/ec2/aws4_request") {
			t.Errorf("the request is signed by %q", r.Header.Get("Authorization"))
		}
		now := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		if now.before != nil {
			now.before()
		}
		w.WriteHeader(now.status)
		_, _ = io.WriteString(w, now.text) // fails if the caller has disconnected
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	found, err := ec2.NewTaskAddress(server.URL+"/v4/5a1b", awstest.ConfigFor(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	ec2.LookAgainAfter(found, time.Millisecond)
	return found
}

func TestTaskFindsItsPublicAddresses(t *testing.T) {
	const mac, private = "0A:de:f6:10:51:e5", "10.0.0.61"
	ok := func(text string) answer { return answer{status: http.StatusOK, text: text} }
	mine := ok(described([3]string{"0a:00:00:00:00:01", private, associated("198.51.100.9")},
		[3]string{mac, "10.0.0.62", associated("198.51.100.8")}, [3]string{mac, private, associated("203.0.113.7")}))
	none, bare := ok(described()), ok(described([3]string{mac, private, ""}))
	busy := answer{status: http.StatusServiceUnavailable, text: "<Response><Errors><Error>" +
		"<Code>RequestLimitExceeded</Code><Message>Slow down.</Message></Error></Errors></Response>"}
	for name, c := range map[string]struct {
		more    string
		answers []answer
		want    string
	}{
		"immediately":               {"", []answer{mine}, "[203.0.113.7]"},
		"after a while":             {"", []answer{busy, none, bare, ok("<oops"), mine}, "[203.0.113.7]"},
		"with an IPv6 address":      {`"IPv6Addresses": ["2001:db8::7"], `, []answer{mine}, "[203.0.113.7 2001:db8::7]"},
		"with local IPv6 addresses": {`"IPv6Addresses": ["fd00::7", "fe80::7"], `, []answer{mine}, "[203.0.113.7]"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := inTask(t, fmt.Sprintf(metadata, c.more), c.answers...).Find(t.Context())
			if err != nil || fmt.Sprint(found) != c.want {
				t.Errorf("%v, %v, want %s", found, err, c.want)
			}
		})
	}
}

func TestTaskWithoutIPv4NeedsNoCall(t *testing.T) {
	metadata := `{"Networks": [{"IPv6Addresses": ["2001:db8::7"], "MACAddress": "0a:de:f6:10:51:e5"}]}`
	found, err := inTask(t, metadata).Find(t.Context())
	if err != nil || !slices.Equal(found, []netip.Addr{netip.MustParseAddr("2001:db8::7")}) {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestTaskWithoutPublicAddressIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bare := answer{status: http.StatusOK, text: described([3]string{"0a:de:f6:10:51:e5", "10.0.0.61", ""})}
	last := bare
	last.before = cancel // simulates the timeout
	found, err := inTask(t, fmt.Sprintf(metadata, ""), bare, last).Find(ctx)
	if err == nil || !strings.Contains(err.Error(), "no public IPv4 address") {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestMissingPermissionIsReported(t *testing.T) {
	refused := answer{status: http.StatusForbidden, text: "<Response><Errors><Error><Code>UnauthorizedOperation</Code>" +
		"<Message>You are not authorized to perform this operation.</Message></Error></Errors></Response>"}
	found, err := inTask(t, fmt.Sprintf(metadata, ""), refused).Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "UnauthorizedOperation: You are not authorized") {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestInvalidMetadataIsReported(t *testing.T) {
	if _, err := ec2.NewTaskAddress("", aws.Config{}); err == nil {
		t.Error("a program outside ECS found an address")
	}
	for _, metadata := range []string{"", "[]", `{"Networks": []}`, strings.Repeat("{", 1<<17)} {
		// Find retries until the context ends, which here happens after the first response.
		ctx, cancel := context.WithCancel(t.Context())
		found, err := inTaskThat(t, metadata, cancel).Find(ctx)
		cancel()
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%.20q: %v, %v, want a description of the error", metadata, found, err)
		}
	}
}
