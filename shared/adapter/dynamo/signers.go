package dynamo

import (
	"context"
	"hash/fnv"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Signers keeps the certificates that workers sign results by, in the table of jobs: who
// verifies results knows the service's own by them, and needs no access to the key.
type Signers struct {
	client *dynamodb.Client
	table  string
}

// NewSigners returns the signers that the table of jobs holds.
func NewSigners(client *dynamodb.Client, table string) *Signers { return &Signers{client, table} }

func signersKey() item { return jobKey("engine", "signers") }

// Add keeps the certificates of an identity, in PEM, beside those that are kept already. To
// add them again changes nothing.
//
// Errors: fault.Unavailable.
func (s *Signers) Add(ctx context.Context, certificates string) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: signersKey(), UpdateExpression: aws.String("ADD #signers :new"),
		ExpressionAttributeNames: named("signers"), ExpressionAttributeValues: item{":new": texts(certificates)},
	})
	return storeError("keep the certificates of a signer", err)
}

// Certificates returns those of each identity that workers have signed by, in PEM, by one
// read, which is not consistent.
//
// Errors: fault.Unavailable.
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

func hashOf(id string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	return hash.Sum32()
}

const writesAtOnce = 8
