// Package ec2 finds a task's public addresses. Unlike package ecs, it does not link the SDK's ECS client, which would
// add 1 ms to a program's startup.
package ec2

import (
	"context"
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
	"github.com/aws/smithy-go"

	"cutroom/shared/platform/awsclient"
)

const (
	// addressTime is the timeout of Find. AWS associates a public address at about the time the containers start.
	addressTime  = time.Minute
	addressAgain = 2 * time.Second
	callTime     = 10 * time.Second
	// longestMetadata is the maximum size of the task's metadata, in bytes.
	longestMetadata = 64 << 10
)

var errNoPublic = errors.New("the task's interface has no public IPv4 address: " +
	"its subnet must be public, and its service must assign an address")

// TaskAddress finds the public addresses of the task that runs this program. ECS reports only the
// private address, so TaskAddress asks EC2. The task's role needs ec2:DescribeNetworkInterfaces,
// which AWS cannot restrict to specific interfaces.
type TaskAddress struct {
	metadata string
	config   aws.Config
	again    time.Duration
}

// NewTaskAddress takes the value of ECS_CONTAINER_METADATA_URI_V4.
func NewTaskAddress(metadataURI string, config aws.Config) (*TaskAddress, error) {
	base, err := url.Parse(metadataURI)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("ec2: %q is not the URI of a task's metadata", metadataURI)
	}
	return &TaskAddress{metadata: base.String(), config: config, again: addressAgain}, nil
}

// Find returns the task's IPv4 address, and its IPv6 addresses if it has any. It waits up to a minute.
func (a *TaskAddress) Find(ctx context.Context) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	var last error
	for {
		found, err := a.find(ctx)
		var failure smithy.APIError
		if err == nil || errors.As(err, &failure) && failure.ErrorFault() == smithy.FaultClient {
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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.metadata, nil)
	if err != nil {
		return network{}, fmt.Errorf("ec2: read the task's metadata: %w", err)
	}
	response, err := awsclient.HTTPClient(a.config, 0).Do(request)
	if err != nil {
		return network{}, fmt.Errorf("ec2: read the task's metadata: %w", err)
	}
	defer response.Body.Close()
	var answer struct{ Networks []network }
	err = json.NewDecoder(io.LimitReader(response.Body, longestMetadata)).Decode(&answer)
	if err != nil || response.StatusCode != http.StatusOK || len(answer.Networks) != 1 {
		return network{}, fmt.Errorf("ec2: the task's metadata does not describe exactly one network: status %d", response.StatusCode)
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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	text, err := awsclient.Call(ctx, a.config, "ec2", "", url.Values{
		"Action": {"DescribeNetworkInterfaces"}, "Version": {"2016-11-15"},
		"Filter.1.Name": {"mac-address"}, "Filter.1.Value.1": {own.MACAddress},
		"Filter.2.Name": {"private-ip-address"}, "Filter.2.Value.1": {own.IPv4Addresses[0]},
	}.Encode())
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
