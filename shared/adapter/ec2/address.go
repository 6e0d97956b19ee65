// Package ec2 finds a task's public addresses. Unlike package ecs, it does not link the SDK's ECS client, which would
// add 1 ms to a program's startup.
package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"cutroom/shared/platform/awsclient"
)

const (
	// addressTime is the timeout of Find. AWS associates a public address at about the time the containers start.
	addressTime  = time.Minute
	addressAgain = 2 * time.Second
	callTime     = 10 * time.Second
	// These are the maximum sizes of the task's metadata and of EC2's response, in bytes.
	longestMetadata   = 64 << 10
	longestInterfaces = 1 << 20
)

var errNoPublic = errors.New("the task's interface has no public IPv4 address: " +
	"its subnet must be public, and its service must assign an address")

// TaskAddress finds the public addresses of the task that runs this program. ECS reports only the
// private address, so TaskAddress asks EC2. The task's role needs ec2:DescribeNetworkInterfaces,
// which AWS cannot restrict to specific interfaces.
//
// It builds its only request itself, because the SDK's EC2 client takes longer to compile than the
// programs that would link it.
type TaskAddress struct {
	metadata string
	config   aws.Config
	now      func() time.Time
	again    time.Duration
	signer   *v4.Signer
	client   aws.HTTPClient
}

// NewTaskAddress takes the value of ECS_CONTAINER_METADATA_URI_V4. now is the clock for request signatures.
func NewTaskAddress(metadataURI string, config aws.Config, now func() time.Time) (*TaskAddress, error) {
	base, err := url.Parse(metadataURI)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("ec2: %q is not the URI of a task's metadata", metadataURI)
	}
	return &TaskAddress{
		metadata: base.String(), config: config, now: now, again: addressAgain, signer: v4.NewSigner(),
		client: awsclient.HTTPClient(config, 0),
	}, nil
}

// Find returns the task's IPv4 address, and its IPv6 addresses if it has any. It waits up to a minute.
func (a *TaskAddress) Find(ctx context.Context) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	var last error
	for {
		found, err := a.find(ctx)
		var refused *refusedError
		if err == nil || errors.As(err, &refused) {
			return found, err
		}
		if ctx.Err() == nil || last == nil {
			last = err // an earlier error is more useful than the timeout
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(a.again):
		}
	}
}

// network is part of a container's metadata ("Amazon ECS task metadata endpoint version 4").
type network struct {
	IPv4Addresses, IPv6Addresses []string
	MACAddress                   string
}

func (a *TaskAddress) find(ctx context.Context) (found []netip.Addr, err error) {
	own, err := a.network(ctx)
	if err != nil {
		return nil, err
	}
	if len(own.IPv4Addresses) > 0 {
		public, err := a.public(ctx, own)
		if err != nil {
			return nil, err
		}
		found = append(found, public)
	}
	for _, text := range own.IPv6Addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("ec2: the task's metadata has an invalid address %q", text)
		}
		if address.IsGlobalUnicast() && !address.IsPrivate() {
			found = append(found, address)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("ec2: %w", errNoPublic)
	}
	return found, nil
}

func (a *TaskAddress) network(ctx context.Context) (network, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.metadata, nil)
	if err != nil {
		return network{}, fmt.Errorf("ec2: read the task's metadata: %w", err)
	}
	text, status, err := a.send(request, longestMetadata)
	if err != nil {
		return network{}, fmt.Errorf("ec2: read the task's metadata: %w", err)
	}
	var answer struct{ Networks []network }
	if err := json.Unmarshal(text, &answer); err != nil || status != http.StatusOK || len(answer.Networks) != 1 {
		return network{}, fmt.Errorf("ec2: the task's metadata does not describe exactly one network: status %d", status)
	}
	return answer.Networks[0], nil
}

// interfaces is EC2's response to DescribeNetworkInterfaces (Amazon EC2 API reference).
type interfaces struct {
	Found []struct {
		MAC         string `xml:"macAddress"`
		Private     string `xml:"privateIpAddress"`
		Association struct {
			Public string `xml:"publicIp"`
		} `xml:"association"`
	} `xml:"networkInterfaceSet>item"`
}

// public returns the public address of a network interface. It filters by both private address and
// hardware address, because either may occur more than once in an account.
func (a *TaskAddress) public(ctx context.Context, own network) (netip.Addr, error) {
	text, err := a.ask(ctx, url.Values{
		"Action": {"DescribeNetworkInterfaces"}, "Version": {"2016-11-15"},
		"Filter.1.Name": {"mac-address"}, "Filter.1.Value.1": {own.MACAddress},
		"Filter.2.Name": {"private-ip-address"}, "Filter.2.Value.1": {own.IPv4Addresses[0]},
	})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ec2: describe the task's interface: %w", err)
	}
	var answer interfaces
	if err := xml.Unmarshal(text, &answer); err != nil {
		return netip.Addr{}, fmt.Errorf("ec2: describe the task's interface: %w", err)
	}
	for _, one := range answer.Found {
		if !strings.EqualFold(one.MAC, own.MACAddress) || one.Private != own.IPv4Addresses[0] {
			continue
		}
		if address, err := netip.ParseAddr(one.Association.Public); err == nil {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("ec2: %w", errNoPublic)
}

// refusedError means that the task's role lacks a permission.
type refusedError struct{ code, message string }

func (e *refusedError) Error() string { return e.code + ": " + e.message }

func (a *TaskAddress) ask(ctx context.Context, parameters url.Values) ([]byte, error) {
	endpoint, err := awsclient.Endpoint(ctx, a.config, "EC2")
	if err != nil {
		return nil, err
	}
	body := parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	credentials, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(body))
	err = a.signer.SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), "ec2", a.config.Region, a.now())
	if err != nil {
		return nil, err
	}
	text, status, err := a.send(request, longestInterfaces)
	if err != nil || status == http.StatusOK {
		return text, err
	}
	var failure struct {
		Code    string `xml:"Errors>Error>Code"`
		Message string `xml:"Errors>Error>Message"`
	}
	_ = xml.Unmarshal(text, &failure) // if the body is not XML, report only the status
	if status == http.StatusForbidden || status == http.StatusUnauthorized {
		return nil, &refusedError{failure.Code, failure.Message}
	}
	return nil, fmt.Errorf("status %d: %s %s", status, failure.Code, failure.Message)
}

func (a *TaskAddress) send(request *http.Request, longest int64) (text []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(request.Context(), callTime)
	defer cancel()
	response, err := a.client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, longest))
	return text, response.StatusCode, err
}
