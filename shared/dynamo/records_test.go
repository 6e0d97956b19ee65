package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/awstest"
	"cutroom/shared/credential/credentialtest"
	"cutroom/shared/dynamo"
	"cutroom/shared/file/filetest"
)

// client makes a client of the local AWS as the programs do.
func client(cloud *awstest.Cloud) *dynamodb.Client { return dynamo.NewClient(cloud.Config()) }

func TestKeys(t *testing.T) {
	cloud := awstest.Start(t)
	credentialtest.Run(t, func(t *testing.T) credentialtest.Harness {
		return credentialtest.Harness{Store: dynamo.NewKeys(client(cloud), cloud.MakeTable(t, "credentials"))}
	})
}

func TestFiles(t *testing.T) {
	cloud := awstest.Start(t)
	filetest.Run(t, func(t *testing.T) filetest.Harness {
		return filetest.Harness{Store: dynamo.NewFiles(client(cloud), cloud.MakeTable(t, "files"))}
	})
}
