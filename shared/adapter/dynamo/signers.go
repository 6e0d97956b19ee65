package dynamo

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Signers stores the certificates of workers that sign results. With them, a program that verifies results recognizes
// the service without access to the private key.
type Signers struct {
	client *dynamodb.Client
	table  string
}

func NewSigners(client *dynamodb.Client, table string) *Signers { return &Signers{client, table} }

func signersKey() item { return jobKey("engine", "signers") }

func (s *Signers) Add(ctx context.Context, certificates string) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: signersKey(), UpdateExpression: aws.String("ADD #signers :new"),
		ExpressionAttributeNames: named("signers"), ExpressionAttributeValues: item{":new": texts(certificates)},
	})
	return storeError("store the certificates of a signer", err)
}

// Certificates does not use a consistent read.
func (s *Signers) Certificates(ctx context.Context) ([]string, error) {
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: signersKey()})
	if err != nil {
		return nil, storeError("read the certificates of signers", err)
	}
	set, _ := found.Item["signers"].(*types.AttributeValueMemberSS)
	if set == nil {
		return nil, nil
	}
	return slices.Sorted(slices.Values(set.Value)), nil
}
