package awstest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/await"
)

// queueTries is the maximum number of attempts to create a queue and get a response that contains its URL.
const queueTries = 3

// counter makes resource names unique.
type counter struct{ made atomic.Int64 }

// isMade reports whether an error means that the resource already exists. Names are used only once,
// so the failed call must be a retry after a lost response.
func isMade(err error) bool {
	var code interface{ ErrorCode() string }
	if !errors.As(err, &code) {
		return false
	}
	switch code.ErrorCode() {
	case "ResourceInUseException", "BucketAlreadyOwnedByYou", "StateMachineAlreadyExists", "ResourceExistsException":
		return true
	}
	return false
}

func (c *counter) name(kind string) string { return fmt.Sprintf("test%d-%s", c.made.Add(1), kind) }

// MakeTables creates all of the service's tables and maps their names in the schema, such as
// "jobs", to their actual names.
func (c *Cloud) MakeTables(t T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, table := range dynamo.Tables() {
		names[table.Name] = c.makeTable(t, table)
	}
	return names
}

// MakeTable creates one of the service's tables and returns its actual name.
func (c *Cloud) MakeTable(t T, name string) string {
	t.Helper()
	for _, table := range dynamo.Tables() {
		if table.Name == name {
			return c.makeTable(t, table)
		}
	}
	t.Fatalf("the schema has no table %q", name)
	return ""
}

func (c *Cloud) makeTable(t T, table dynamo.Table) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	client := dynamodb.NewFromConfig(c.Config())
	name := c.made.name(table.Name)
	input := &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: dynamotypes.BillingModePayPerRequest,
		KeySchema: keys(table.PartitionKey, table.SortKey),
	}
	attributes := map[string]bool{table.PartitionKey: true, table.SortKey: true}
	for _, index := range table.Indexes {
		projection := &dynamotypes.Projection{ProjectionType: dynamotypes.ProjectionTypeAll}
		if len(index.Includes) > 0 {
			projection = &dynamotypes.Projection{ProjectionType: dynamotypes.ProjectionTypeInclude,
				NonKeyAttributes: index.Includes}
		}
		attributes[index.PartitionKey], attributes[index.SortKey] = true, true
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, dynamotypes.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keys(index.PartitionKey, index.SortKey),
			Projection: projection,
		})
	}
	for attribute := range attributes {
		if attribute != "" {
			input.AttributeDefinitions = append(input.AttributeDefinitions, dynamotypes.AttributeDefinition{
				AttributeName: aws.String(attribute), AttributeType: dynamotypes.ScalarAttributeTypeS,
			})
		}
	}
	if view, streams := viewOf(table); streams {
		input.StreamSpecification = &dynamotypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	if _, err := client.CreateTable(ctx, input); err != nil && !isMade(err) {
		t.Fatalf("make the table %s: %v", name, err)
	}
	if table.TTL != "" {
		if _, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(name),
			TimeToLiveSpecification: &dynamotypes.TimeToLiveSpecification{
				AttributeName: aws.String(table.TTL), Enabled: aws.Bool(true),
			},
		}); err != nil {
			t.Fatalf("set the time to live of %s: %v", name, err)
		}
	}
	return name
}

// viewOf returns the view type of a table's stream. ok is false if it has no stream.
func viewOf(table dynamo.Table) (dynamotypes.StreamViewType, bool) {
	if table.StreamsNewImages {
		return dynamotypes.StreamViewTypeNewImage, true
	}
	return dynamotypes.StreamViewTypeOldImage, table.StreamsOldImages
}

func keys(partition, sort string) []dynamotypes.KeySchemaElement {
	schema := []dynamotypes.KeySchemaElement{{AttributeName: aws.String(partition), KeyType: dynamotypes.KeyTypeHash}}
	if sort != "" {
		schema = append(schema, dynamotypes.KeySchemaElement{AttributeName: aws.String(sort),
			KeyType: dynamotypes.KeyTypeRange})
	}
	return schema
}

// MakeBucket creates an empty bucket and returns its name. Clients must use path-style addressing,
// because the local AWS has no host names.
func (c *Cloud) MakeBucket(t T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	client := s3.NewFromConfig(c.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	name := c.made.name("bucket")
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket: aws.String(name),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{
			LocationConstraint: s3types.BucketLocationConstraint(Region),
		},
	}); err != nil && !isMade(err) {
		t.Fatalf("make the bucket %s: %v", name, err)
	}
	return name
}

func (c *Cloud) MakeSecret(t T, name, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	client := secretsmanager.NewFromConfig(c.Config())
	_, err := client.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text})
	if err != nil && !isMade(err) {
		t.Fatalf("make the secret %s: %v", name, err)
	}
	made, err := client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &name})
	if err != nil {
		t.Fatalf("find the secret %s: %v", name, err)
	}
	return *made.ARN
}

type Queue struct {
	URL, ARN                     string
	DeadLetterURL, DeadLetterARN string
}

// MakeQueue creates a queue that moves messages to a dead-letter queue after maxReceives receives.
func (c *Cloud) MakeQueue(t T, maxReceives int) Queue {
	t.Helper()
	var q Queue
	q.DeadLetterURL, q.DeadLetterARN = c.makeQueue(t, nil)
	q.URL, q.ARN = c.makeQueue(t, map[string]string{
		string(sqstypes.QueueAttributeNameRedrivePolicy): fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`,
			q.DeadLetterARN, maxReceives),
	})
	return q
}

func (c *Cloud) makeQueue(t T, attributes map[string]string) (url, arn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	client := sqs.NewFromConfig(c.Config())
	name := c.made.name("queue")
	// Under load, the local AWS sometimes responds without a URL. Calling CreateQueue again with
	// the same name and attributes returns the existing queue.
	for range queueTries {
		created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			t.Fatalf("make the queue %s: %v", name, err)
		}
		if url := aws.ToString(created.QueueUrl); url != "" {
			return url, fmt.Sprintf("arn:aws:sqs:%s:%s:%s", Region, Account, name)
		}
	}
	t.Fatalf("make the queue %s: the local AWS responded %d times without its URL", name, queueTries)
	return "", ""
}

// MakeStateMachine creates a state machine and returns its ARN. The local AWS does not support
// TimeoutSecondsPath, so a definition that must time out needs TimeoutSeconds.
func (c *Cloud) MakeStateMachine(t T, definition string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	name := c.made.name("jobs")
	if _, err := sfn.NewFromConfig(c.Config()).CreateStateMachine(ctx, &sfn.CreateStateMachineInput{
		Name: &name, Definition: &definition, RoleArn: aws.String("arn:aws:iam::" + Account + ":role/jobs"),
	}); err != nil && !isMade(err) {
		t.Fatalf("make a state machine: %v", err)
	}
	return fmt.Sprintf("arn:aws:states:%s:%s:stateMachine:%s", Region, Account, name)
}
