package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"cutroom/shared/platform/awsclient"
)

// event is a request from CloudFormation to a custom resource (CloudFormation User Guide, "Custom
// resource request objects").
type event struct {
	// RequestType is "Create", "Update" or "Delete".
	RequestType        string
	RequestID          string
	ResponseURL        string
	StackID            string
	LogicalResourceID  string
	PhysicalResourceID string
	ResourceProperties properties
}

// properties holds the resource's properties, as infra writes them.
type properties struct {
	Cluster        string
	TaskDefinition string
	Container      string
	Subnets        []string
	SecurityGroups []string
	// PublicAddress is "true" or "false", because CloudFormation sends only strings.
	PublicAddress string
	// LogGroup is the container's log group, in which to find the reason for a failure.
	LogGroup string
}

type answer struct {
	Status             string
	Reason             string `json:",omitempty"`
	PhysicalResourceID string `json:"PhysicalResourceId"`
	StackID            string `json:"StackId"`
	RequestID          string `json:"RequestId"`
	LogicalResourceID  string `json:"LogicalResourceId"`
}

// resourceID is the physical id of the resource. It never changes, because CloudFormation would
// delete the resource with the old id.
const resourceID = "smoke"

const (
	// longestAnswer is the maximum size of a response to CloudFormation, in bytes of JSON (AWS
	// CloudFormation User Guide, "Custom resource response objects").
	longestAnswer = 4096
	// answerTries is the maximum number of attempts to send a response. The pause between attempts doubles each time.
	// If all fail, CloudFormation waits for the resource's entire timeout.
	answerTries, answerPause = 5, time.Second
)

func answerTo(e event, failure error) answer {
	a := answer{
		Status: "SUCCESS", PhysicalResourceID: resourceID, StackID: e.StackID, RequestID: e.RequestID,
		LogicalResourceID: e.LogicalResourceID,
	}
	if e.PhysicalResourceID != "" {
		a.PhysicalResourceID = e.PhysicalResourceID
	}
	if failure != nil {
		a.Status, a.Reason = "FAILED", failure.Error()
	}
	return a
}

func newClient() *http.Client {
	return &http.Client{Transport: awsclient.Transport(0), Timeout: awsclient.CallTime}
}

// encode returns the response as JSON, with as much of the reason as CloudFormation accepts.
func (a answer) encode() ([]byte, error) {
	whole := strings.ToValidUTF8(a.Reason, "")
	for kept := len(whole); ; kept /= 2 {
		a.Reason = strings.ToValidUTF8(whole[:kept], "")
		body, err := json.Marshal(a)
		if err != nil || len(body) <= longestAnswer || kept == 0 {
			return body, err
		}
	}
}

func (a answer) send(ctx context.Context, client *http.Client, url string) error {
	body, err := a.encode()
	if err != nil {
		return fmt.Errorf("respond to CloudFormation: %w", err)
	}
	pause := answerPause
	for try := 1; ; try++ {
		if err = put(ctx, client, url, body); err == nil || try == answerTries {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

// put uploads a body to a signed URL, whose signature covers no content type.
func put(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return errors.New("respond to CloudFormation: invalid response URL")
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("respond to CloudFormation: %w", withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("respond to CloudFormation: status %d", response.StatusCode)
	}
	return nil
}

type stacks struct{ client *cloudformation.Client }

func newStacks(config aws.Config) *stacks {
	return &stacks{cloudformation.NewFromConfig(config, func(o *cloudformation.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, 0)
	})}
}

func (s *stacks) rollsBack(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	found, err := s.client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &id})
	if err != nil {
		return false, fmt.Errorf("describe the stack: %w", err)
	}
	if len(found.Stacks) != 1 {
		return false, fmt.Errorf("describe the stack: %s does not exist", id)
	}
	return strings.Contains(string(found.Stacks[0].StackStatus), "ROLLBACK"), nil
}
