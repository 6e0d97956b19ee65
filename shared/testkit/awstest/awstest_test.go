package awstest_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
)

func TestCloudHasWhatTheServiceNeeds(t *testing.T) {
	cloud := awstest.Start(t)
	tables := cloud.MakeTables(t)
	client := dynamodb.NewFromConfig(cloud.Config())
	for _, want := range dynamo.Tables() {
		got, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(tables[want.Name])})
		if err != nil {
			t.Fatal(err)
		}
		if key := *got.Table.KeySchema[0].AttributeName; key != want.PartitionKey {
			t.Errorf("%s has the partition key %s, want %s", want.Name, key, want.PartitionKey)
		}
		if len(got.Table.GlobalSecondaryIndexes) != len(want.Indexes) {
			t.Errorf("%s has %d indexes, want %d", want.Name, len(got.Table.GlobalSecondaryIndexes), len(want.Indexes))
		}
		ttl, err := client.DescribeTimeToLive(t.Context(),
			&dynamodb.DescribeTimeToLiveInput{TableName: aws.String(tables[want.Name])})
		if err != nil {
			t.Fatal(err)
		}
		if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != want.TTL {
			t.Errorf("%s deletes by %q, want %q", want.Name, got, want.TTL)
		}
	}
	if cloud.MakeBucket(t) == cloud.MakeBucket(t) { //nolint:staticcheck // each call makes another
		t.Error("two buckets have one name")
	}
	queue := cloud.MakeQueue(t, 10)
	if _, err := sqs.NewFromConfig(cloud.Config()).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(queue.URL), MessageBody: aws.String("a"),
	}); err != nil {
		t.Error(err)
	}
}

func TestCloudEndsWithItsTest(t *testing.T) {
	var url string
	t.Run("a test", func(t *testing.T) { url = awstest.Start(t).URL })
	if response, err := http.Get(url); err == nil {
		response.Body.Close()
		t.Errorf("%s still answers", url)
	}
}
